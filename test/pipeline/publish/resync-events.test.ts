import { beforeEach, describe, expect, it } from 'vitest';
import type { Resynced } from '../../../src/observe/hooks.ts';
import type { ListHooks } from '../../../src/observe/list-hooks.ts';
import { ResyncEvents } from '../../../src/pipeline/publish/resync-events.ts';
import type { ResyncStep } from '../../../src/pipeline/reads/read-batch.ts';
import type { ResyncJob } from '../../../src/account/signal-jobs.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import { keyedRecord, WINE_STAMPS } from '../../support/records.ts';

const bytes = (record: JsonObject) => Buffer.from(JSON.stringify(record));
const codec = {
  encode: bytes,
  decode: (image: Buffer) => JSON.parse(image.toString()) as JsonObject,
};
const order = (n: number, status = 'paid', updated_at = '2026-01-01T00:00:00Z') => ({
  order_number: n,
  status,
  updated_at,
});
const keyed = (...records: ReturnType<typeof order>[]) =>
  records.map((record) => keyedRecord(String(record.order_number), record));
/** What a page of records came to. */
const page = (
  records: ReturnType<typeof order>[],
  changes: Change[] = [],
  refreshed: JsonObject[] = [],
) => ({
  read: { records: keyed(...records) },
  changes,
  refreshed: new Map(
    refreshed.map((record) => [String(record.order_number as number), bytes(record)]),
  ),
});
const change = (before: JsonObject | null, after: ReturnType<typeof order>): Change => ({
  key: String(after.order_number),
  op: before ? 'u' : 'c',
  before,
  after,
  images: { before: before && bytes(before), after: bytes(after) },
  changed: [],
  updatedAt: Date.parse(after.updated_at),
});

let published: Map<string, Buffer>;
let acknowledged: string[];
let told: Omit<Resynced, 'resource'>[];
let hooks: Pick<ListHooks, 'onResync'>;
beforeEach(() => {
  published = new Map();
  acknowledged = [];
  told = [];
  hooks = { onResync: (each) => told.push(each) };
});
const events = () =>
  new ResyncEvents({
    resyncs: {
      resyncAck: ({ id }, { status }, count) => ({
        topic: 'wine.signals',
        key: id,
        value: Buffer.from(`${status} ${count}`),
      }),
      ackCommitted: ({ id }) => acknowledged.push(id),
    },
    codec: () => codec,
    stamps: WINE_STAMPS,
    images: { get: (key) => published.get(key) },
    hooks,
  });
const step = (id: string, more: Partial<ResyncJob> = {}, isLast = false): ResyncStep => ({
  resync: { id, resource: 'orders', key: null, since: null, ...more },
  ...(isLast && { outcome: { status: 'done', message: null } }),
});
const publish = (...records: ReturnType<typeof order>[]) =>
  records.forEach((record) => published.set(String(record.order_number), bytes(record)));

describe('resyncEvents', () => {
  it('makes an r of each record, from the image that is published, with nothing changed', () => {
    publish(order(1), order(2, 'packed'));
    // The reading is older than what is published: that stays the last word.
    const again = events().republish(step('a'), page([order(1), order(2, 'paid')]));
    expect(again).toMatchObject([
      { key: '1', op: 'r', before: order(1), after: order(1), changed: [] },
      { key: '2', op: 'r', before: order(2, 'packed'), after: order(2, 'packed'), changed: [] },
    ]);
    for (const { images } of again) expect(images.before).toBe(images.after);
    expect(again[0]!.updatedAt).toBe(Date.parse('2026-01-01T00:00:00Z'));
  });

  it('takes the image that the page itself leaves, and nothing that it publishes for the first time', () => {
    publish(order(1));
    const [changed, created] = [order(1, 'packed'), order(2)];
    const changes = [change(order(1), changed), change(null, created)];
    const again = events().republish(step('a'), page([changed, created, order(3)], changes));
    expect(again).toMatchObject([{ key: '1', op: 'r', before: changed, after: changed }]);
  });

  it('gives volatile fields as they came, beside the image that is published', () => {
    publish(order(1));
    const seen = { ...order(1), viewed: 7 };
    const again = events().republish(step('a'), page([order(1)], [], [seen]));
    expect(again).toMatchObject([{ op: 'r', before: order(1), after: seen, changed: [] }]);
  });

  it('tells of a key once a request, on however many pages it is', () => {
    publish(order(1), order(2), order(3));
    const all = events();
    const keys = (id: string, ...records: ReturnType<typeof order>[]) =>
      all.republish(step(id), page(records)).map(({ key }) => key);
    expect(keys('a', order(1), order(2))).toEqual(['1', '2']);
    expect(keys('a', order(2), order(3))).toEqual(['3']);
    expect(keys('b', order(2))).toEqual(['2']);
  });

  it('leaves out what was modified before the time that is asked for; not what has no time', () => {
    const [early, late] = [order(1), order(2, 'paid', '2026-02-01T00:00:00Z')];
    const timeless = { ...order(3), updated_at: '' };
    publish(early, late, timeless);
    const since = Date.parse('2026-02-01T00:00:00Z');
    const again = events().republish(step('a', { since }), page([early, late, timeless]));
    expect(again.map(({ key }) => key)).toEqual(['2', '3']);
  });

  it('acknowledges with the last step, with all that was published for it', () => {
    const all = events();
    expect(all.acknowledge(step('a'), 5)).toEqual([]);
    all.stepCommitted(step('a'));
    const last = step('a', {}, true);
    expect(all.acknowledge(last, 2).map(({ value }) => String(value))).toEqual(['done 7']);
    expect([acknowledged, told]).toEqual([[], []]);
    all.stepCommitted(last);
    expect(acknowledged).toEqual(['a']);
    expect(told).toEqual([{ id: 'a', status: 'done', events: 7, message: null }]);
    const next = all.acknowledge(step('b', {}, true), 1);
    expect(next.map(({ value }) => String(value))).toEqual(['done 1']);
  });
});
