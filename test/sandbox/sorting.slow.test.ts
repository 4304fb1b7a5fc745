import { afterEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, Sandbox, Sort } from '../../src/sandbox/index.ts';
import { toSettings } from '../../src/sandbox/options.ts';
import { Random } from '../../src/sandbox/random.ts';
import { selectPage } from '../../src/sandbox/list-page.ts';
import { SortedIds } from '../../src/sandbox/sorted-ids.ts';
import { RecordStore } from '../../src/sandbox/store.ts';
import { connect, handClock, readAll } from './client.ts';

const SORTS: readonly Sort[] = ['key-asc', 'key-desc', 'updated-asc', 'updated-desc'];

let sandbox: Sandbox;
afterEach(() => sandbox?.close());

const textOf = (order: JsonObject) => order.updated_at as string;
const timeOf = (order: JsonObject) => Date.parse(textOf(order));
const texts = (orders: readonly JsonObject[]) => orders.map((order) => JSON.stringify(order));
const numberOf = (order: JsonObject) => Number(order.order_number);

function sorted(orders: readonly JsonObject[], sort: Sort): JsonObject[] {
  const rising = [...orders].sort((a, b) =>
    sort.startsWith('key')
      ? numberOf(a) - numberOf(b)
      : timeOf(a) - timeOf(b) || numberOf(a) - numberOf(b),
  );
  return sort.endsWith('desc') ? rising.reverse() : rising;
}

describe('sort', () => {
  it.each(SORTS.flatMap((sort) => (['ms', 'day'] as const).map((unit) => [sort, unit] as const)))(
    '%s is a total order while things change, by a clock of one %s',
    async (sort, updatedAtResolution) => {
      const clock = handClock();
      const now = clock.now;
      const records = { orders: 300 };
      sandbox = await startSandbox({
        now,
        sort,
        updatedAtResolution,
        records,
        quotaPerMinute: 1e6,
      });
      const { page } = await connect(sandbox);
      for (let round = 0; round < 4; round++) {
        const truth = [...sandbox.truth.records('orders')] as JsonObject[];
        expect(texts(await readAll(page, 'orders', 97))).toEqual(texts(sorted(truth, sort)));
        const from = new Date(now() - (round % 2 ? 900 : 4) * 86_400_000).toISOString();
        const inWindow = truth.filter((order) => textOf(order) >= from);
        const query = {
          modifiedFromDate: from,
          modifiedToDate: '2099-01-01',
          offset: 3,
          pageSize: 50,
        };
        expect(texts((await page('orders', query)).data)).toEqual(
          texts(sorted(inWindow, sort).slice(3, 53)),
        );
        sandbox.changeSome(75);
        sandbox.remove('orders', numberOf(truth[round * 40]!));
        clock.pass(round === 1 ? -5 * 86_400_000 : 1_000); // clocks of servers go back, too
      }
    },
  );

  it('reorders ties from request to request when told to, and nothing else', async () => {
    sandbox = await startSandbox({
      now: handClock().now,
      records: { orders: 3_000 },
      sort: 'updated-desc',
      updatedAtResolution: 'day',
      shuffleTies: true,
    });
    const { page } = await connect(sandbox);
    const first = await readAll(page, 'orders', 1_000);
    const [once, again] = [await page('orders'), await page('orders')];
    expect(once.data.map(timeOf)).toEqual(again.data.map(timeOf));
    expect(once.data).not.toEqual(again.data);
    expect(first.map(timeOf)).toEqual([...first].map(timeOf).sort((a, b) => b - a));
  });
});

describe('a window of very many', () => {
  const settings = toSettings({ now: handClock().now, records: { orders: 40_000 } });
  const table = new RecordStore(settings, settings.now).table('orders');
  const ids = Array.from({ length: 40_000 }, (_, id) => id);
  for (const gone of [5, 20_000, 39_000]) table.remove(gone);

  it.each(SORTS.flatMap((sort) => [true, false].map((inclusive) => [sort, inclusive] as const)))(
    'is paged in %s as a small one is, inclusive: %s',
    (sort, inclusive) => {
      const [from, to] = [table.updatedAt(4_000), table.updatedAt(36_000)];
      const matching = ids.filter((id) => {
        const at = table.updatedAt(id);
        return table.has(id) && (inclusive ? at >= from && at <= to : at > from && at < to);
      });
      if (sort.startsWith('updated')) {
        matching.sort((a, b) => table.updatedAt(a) - table.updatedAt(b) || a - b);
      }
      if (sort.endsWith('desc')) matching.reverse();
      expect(matching.length).toBeGreaterThan(20_000);
      for (const offset of [0, 999, 15_000, matching.length - 3, matching.length]) {
        const window = { from, to, inclusive };
        const page = selectPage(table, { offset, limit: 10, sort, window });
        expect(page).toEqual({ ids: matching.slice(offset, offset + 10), total: matching.length });
      }
    },
  );
});

describe('SortedIds', () => {
  it('agrees with an array, through growth, splits and shrinking to nothing', () => {
    const random = new Random(3);
    const weight = Array.from({ length: 6_000 }, () => random.below(50));
    const compare = (a: number, b: number) => weight[a]! - weight[b]! || a - b;
    let oracle = Array.from({ length: 2_000 }, (_, id) => id).sort(compare);
    const list = new SortedIds((a, b) => compare(a, b) < 0, Uint32Array.from(oracle));
    for (let id = 2_000; id < 6_000; id++) {
      list.add(id);
      oracle.push(id);
    }
    oracle.sort(compare);
    const check = () => {
      expect(list.size).toBe(oracle.length);
      expect([...list.chunks()].flatMap((stretch) => [...stretch])).toEqual(oracle);
      for (const place of [0, 1, 1_023, 1_024, 2_999, oracle.length - 1]) {
        expect(list.slice(place, place + 5)).toEqual(oracle.slice(place, place + 5));
      }
      expect(list.rank((id) => weight[id]! < 25)).toBe(
        oracle.filter((id) => weight[id]! < 25).length,
      );
    };
    check();
    while (oracle.length > 0) {
      const gone = new Set(Array.from({ length: 500 }, () => random.pick(oracle)));
      for (const id of gone) list.remove(id);
      oracle = oracle.filter((id) => !gone.has(id));
      if (oracle.length < 200) {
        for (const id of oracle) list.remove(id);
        oracle = [];
      }
      check();
    }
    list.add(7);
    expect(list.slice(0, 9)).toEqual([7]);
    expect(() => list.remove(8)).toThrow('no id 8');
  });
});
