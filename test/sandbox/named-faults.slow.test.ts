import { Command } from 'commander';
import { afterEach, describe, expect, it } from 'vitest';
import { sandboxFlags, sandboxOptions } from '../../src/commands/sandbox-flags.ts';
import type { SandboxFlags } from '../../src/commands/sandbox-flags.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { NAMED_FAULTS } from '../../src/sandbox/named-faults.ts';
import { connect } from './client.ts';

let sandbox: Sandbox | undefined;
afterEach(() => sandbox?.close());

const options = (...words: string[]) => {
  const command = sandboxFlags(new Command()).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  return sandboxOptions(command.parse(words, { from: 'user' }).opts<SandboxFlags>());
};

/** A client of a sandbox with 230 orders and these faults. */
async function serving(...faults: string[]) {
  const words = faults.flatMap((fault) => ['--fault', fault]);
  sandbox = await startSandbox(
    options('--orders', '230', '--rate', '0', '--latency', '0', ...words),
  );
  const client = await connect(sandbox);
  return async (offset: number, pageSize: number, dates: Record<string, string> = {}) => {
    const answer = await client.get('orders', { offset, pageSize, ...dates });
    if (answer.status !== 200) return answer.status;
    const { data, pagination } = (await answer.json()) as {
      data: { order_number: number }[];
      pagination: {
        current_offset?: number;
        page_size?: number;
        has_next_page: boolean;
        total_records: number;
      };
    };
    const [first] = data;
    const { current_offset: at, page_size: size, has_next_page: more } = pagination;
    const { total_records: total } = pagination;
    return {
      from: first && first.order_number - 100_001,
      count: data.length,
      at,
      size,
      more,
      total,
    };
  };
}

describe('--fault', () => {
  it('offset-rounded', async () => {
    const page = await serving('offset-rounded');
    expect(await page(90, 100)).toMatchObject({
      from: 0,
      count: 100,
      at: 0,
      size: 100,
      more: true,
    });
    expect(await page(190, 100)).toMatchObject({ from: 100, at: 100 });
  });
  it('offset-nearest', async () => {
    const page = await serving('offset-nearest');
    expect(await page(90, 100)).toMatchObject({ from: 100, at: 100 });
    expect(await page(149, 100)).toMatchObject({ from: 100, at: 100 });
  });
  it('offset-multiple-only', async () => {
    const page = await serving('offset-multiple-only');
    expect(await page(90, 100)).toBe(400);
    expect(await page(200, 100)).toMatchObject({ from: 200, count: 30, more: false });
  });
  it('offset-wraps', async () => {
    const page = await serving('offset-wraps');
    expect(await page(200, 100)).toMatchObject({ from: 200, count: 30, more: true });
    expect(await page(300, 100)).toMatchObject({ from: 0, count: 100, at: 0, more: true });
  });
  it('offset-echoed', async () => {
    const page = await serving('offset-rounded', 'offset-echoed');
    expect(await page(90, 100)).toMatchObject({ from: 0, at: 90, size: 100 });
  });
  it('page-capped', async () => {
    const page = await serving('page-capped=70');
    expect(await page(10, 1_000)).toMatchObject({ from: 10, count: 70, size: 70, more: true });
    expect(await page(10, 20)).toMatchObject({ count: 20, size: 20 });
  });
  it('page-fixed', async () => {
    const page = await serving('page-fixed');
    expect(await page(10, 1_000)).toMatchObject({ count: 50, size: 50, more: true });
    expect(await page(10, 1)).toMatchObject({ count: 50, size: 50 });
  });
  it('poison-record', async () => {
    const page = await serving('poison-record');
    expect(await page(0, 100)).toBe(500);
    expect(await page(94, 1)).toBe(500);
    expect(await page(95, 100)).toMatchObject({ from: 95 });
    expect(await page(0, 94)).toMatchObject({ count: 94 });
  });
  it('large-page-504', async () => {
    const page = await serving('large-page-504=100');
    expect(await page(0, 101)).toBe(504);
    expect(await page(0, 100)).toMatchObject({ count: 100 });
  });
  it.each([
    ['dates-refused', 403],
    ['dates-refused=429', 429],
    ['dates-504', 504],
    ['dates-blocked', 403],
  ])('%s', async (fault, status) => {
    const page = await serving(fault);
    expect(await page(0, 10)).toMatchObject({ from: 0, count: 10 });
    expect(await page(0, 10, { modifiedFromDate: '2026-03-05' })).toBe(status);
  });
  it.each([
    ['end-in-future-empty', { count: 0, total: 0 }],
    ['end-in-future-500', 500],
  ])('%s', async (fault, shown) => {
    const page = await serving(fault);
    const ending = (ms: number) => ({
      modifiedFromDate: '1990-01-01',
      modifiedToDate: new Date(Date.now() + ms).toISOString(),
    });
    expect(await page(0, 10, ending(-1_000))).toMatchObject({ from: 0, count: 10 });
    const answer = await page(0, 10, ending(60_000));
    if (typeof shown === 'number') expect(answer).toBe(shown);
    else expect(answer).toMatchObject(shown);
  });
  it('total-capped', async () => {
    const page = await serving('total-capped=200');
    expect(await page(100, 100)).toMatchObject({ count: 100, total: 200, more: false });
    expect(await page(200, 100)).toMatchObject({ count: 0, total: 200 });
  });
  it('total-estimated', async () => {
    const page = await serving('total-estimated=100');
    expect(await page(0, 230)).toMatchObject({ count: 230, total: 200, more: false });
    expect(await page(0, 220)).toMatchObject({ total: 200, more: true });
    for (let n = 0; n < 60; n++) sandbox!.create('orders');
    expect(await page(0, 300)).toMatchObject({ count: 290, total: 200 });
  });
  it('wrong-index', async () => {
    const page = await serving('wrong-index=5000');
    expect(await page(0, 300)).toMatchObject({ count: 230, total: 230 });
    sandbox!.skewClock(61_000);
    const { count, total } = (await page(0, 300)) as { count: number; total: number };
    expect(count).toBeGreaterThan(200);
    expect(count).toBeLessThan(230);
    expect(total).toBe(count);
    sandbox!.skewClock(66_000);
    expect(await page(0, 300)).toMatchObject({ count: 230, total: 230 });
  });
  it('offset-limited', async () => {
    const page = await serving('offset-limited=100');
    expect(await page(99, 100)).toMatchObject({ from: 99, count: 100 });
    expect(await page(100, 1)).toBe(400);
  });
  it('window-limited', async () => {
    const page = await serving('window-limited=100');
    expect(await page(50, 50)).toMatchObject({ from: 50, count: 50 });
    expect(await page(50, 51)).toBe(400);
  });
  it('refuses an unknown name, and a value that does not fit', () => {
    expect(() => options('--fault', 'no-such')).toThrow(
      'unknown fault no-such: choose one of offset-rounded',
    );
    expect(() => options('--fault', 'page-capped=x')).toThrow('a whole number is needed');
    expect(() => options('--fault', 'offset-rounded=1')).toThrow('takes no value');
  });
});

it('a fault can be limited to pages far behind', async () => {
  const page = await serving();
  sandbox!.fault({ kind: 'status', status: 504, pageSizeOver: 10, offsetFrom: 100 });
  expect(await page(99, 100)).toMatchObject({ from: 99 });
  expect(await page(100, 100)).toBe(504);
  expect(await page(100, 10)).toMatchObject({ from: 100 });
});

it('every named fault starts', async () => {
  for (const name of Object.keys(NAMED_FAULTS)) {
    const started = await startSandbox(options('--orders', '1', '--fault', name));
    await started.close();
  }
});
