import { afterEach, describe, expect, it } from 'vitest';
import { listPage } from '../../src/sandbox/list-page.ts';
import { toSettings } from '../../src/sandbox/options.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { RecordStore } from '../../src/sandbox/store.ts';

/** The shortest of several runs, in ms: what the machine's other work does not reach. */
function quickest(run: () => void, runs = 40): number {
  const times = Array.from({ length: runs }, () => {
    const begin = performance.now();
    run();
    return performance.now() - begin;
  });
  return Math.min(...times);
}

let sandbox: Sandbox | undefined;
afterEach(() => sandbox?.close());

it('starts with 100,000 orders without writing any of them', async () => {
  const memory = process.memoryUsage().heapUsed;
  sandbox = await startSandbox({ records: { orders: 100_000 } });
  expect(process.memoryUsage().heapUsed - memory).toBeLessThan(100_000 * 1_000); // a record has 2 KB
  expect(sandbox.truth.count('orders')).toBe(100_000);
});

describe('among a million orders', () => {
  const settings = toSettings({ records: { orders: 1_000_000 } });
  const view = { ...settings, estimate: (total: number) => total };
  const table = new RecordStore(settings, settings.now).table('orders');
  const to = settings.now();

  const make = (offset: number) => listPage(table, { offset, pageSize: 1_000 }, view);

  // Beside what the same machine takes at the same time: an absolute time would be one of a quiet machine.
  it('makes a page of 1,000 in less time than it takes to write its values as JSON, at the end as at the beginning', () => {
    for (const offset of [0, 500_000, 999_000]) {
      const page = JSON.parse(make(offset).toString()) as unknown;
      expect(quickest(() => make(offset))).toBeLessThan(quickest(() => JSON.stringify(page)));
    }
  });

  it('finds a window of few in less time than it takes to make a page', () => {
    const window = { from: settings.historyEndsAt - 600_000, to, inclusive: true };
    const query = { offset: 0, pageSize: 1_000, window };
    const few = quickest(() => listPage(table, query, view));
    expect(few).toBeLessThan(quickest(() => make(0)) / 2);
  });
});
