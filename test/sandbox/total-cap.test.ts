import { afterEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { connect } from './client.ts';

let sandbox: Sandbox;
afterEach(() => sandbox?.close());

describe('a list that counts as search engines do', () => {
  it('shows and counts no more records than its cap, however many more there are', async () => {
    sandbox = await startSandbox({ records: { orders: 60 }, totalCap: 50 });
    const { page } = await connect(sandbox);
    const last = await page('orders', { offset: 40, pageSize: 20 });
    expect(last.data).toHaveLength(10);
    expect(last.pagination).toMatchObject({ total_records: 50, has_next_page: false });
    expect((await page('orders', { offset: 50, pageSize: 20 })).data).toEqual([]);
  });

  it('tells an estimate of how many records there are', async () => {
    sandbox = await startSandbox({ records: { orders: 60 }, totalStep: 50 });
    const { page } = await connect(sandbox);
    const { data, pagination } = await page('orders', { pageSize: 100 });
    expect([data.length, pagination.total_records]).toEqual([60, 50]);
  });
});
