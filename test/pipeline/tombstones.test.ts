import { lastValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { compareBatches } from '../../src/pipeline/compare-batches.ts';
import type { ReadBatch } from '../../src/pipeline/reads/read-batch.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { Confirmations } from '../../src/streams/diff/confirmations.ts';
import { LogicalClock } from '../../src/streams/http/logical-clock.ts';
import { MAX_LAG_MS } from '../../src/streams/http/response-age.ts';
import { PUBLISHED } from '../../src/streams/records/page-record.ts';
import { keyedRecord, WINE_STAMPS } from '../support/records.ts';

const codec = {
  encode: (record: object) => Buffer.from(JSON.stringify(record)),
  decode: (bytes: Buffer) => JSON.parse(bytes.toString()) as JsonObject,
};

interface Row extends JsonObject {
  readonly id: string;
  readonly updated_at: string;
  readonly deleted?: boolean;
}

const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`;
const live = (id: string, minute: number): Row => ({ id, updated_at: at(minute) });
const deleted = (id: string, minute: number): Row => ({ ...live(id, minute), deleted: true });

interface More {
  readonly lane?: ReadBatch['lane'];
  /** How much older the response is than its request, in ms. */
  readonly staleMs?: number;
  /** The records are recognized by their bytes as those that were published. */
  readonly isRecognized?: boolean;
}

/** A list that shows its deleted records, as it is read page after page; each is an hour later than the one before. */
function list(deletedBy: JsonObject = { at: '/deleted', is: true }) {
  const images = new Map<string, Buffer>();
  const clock = new LogicalClock();
  let now = 0;
  const confirmations = new Confirmations({ now: () => now });
  const compare = compareBatches({
    task: {
      list: { deleted: deletedBy },
      config: { poll: { startFrom: undefined } },
    } as never,
    store: {
      ...{ get: () => undefined, payloadDigest: () => undefined, isUnseen: () => false },
      run: () => undefined,
    },
    evolution: { values: codec },
    images: { get: (key) => images.get(key) },
    stamps: WINE_STAMPS,
    ...{ clock, volatile: undefined, personal: undefined, wasEmpty: false, confirmations },
    snapshot: () => ({ startedAt: 0, position: null, done: true, caughtUp: true }),
  });
  const read = async (rows: readonly Row[], { lane = 'reread', ...more }: More = {}) => {
    now += 3_600_000;
    const { staleMs = 0, isRecognized = false } = more;
    const begin = clock.begin();
    const span = clock.answered(begin);
    const batch = {
      lane,
      keyed: rows.map((row) => keyedRecord(row.id, row, isRecognized ? { image: PUBLISHED } : {})),
      ...{ runs: [], rejected: [], rejectedAt: [], span, age: { asOf: now - staleMs, staleMs } },
      settle: () => undefined,
      ...(lane === 'sweep' && { step: { kind: 'asked', key: rows[0]?.id } }),
    } as unknown as ReadBatch;
    const { changes, read } = await lastValueFrom(of(batch).pipe(compare));
    for (const {
      key,
      images: { after },
    } of changes) {
      if (after) images.set(key, after);
      else images.delete(key);
    }
    clock.settle(begin);
    const events = changes.map(({ op, key }) => `${op} ${key}`);
    return { events, leftOut: read.leftOut, keys: read.keys, changes };
  };
  const events = async (...[rows, more]: Parameters<typeof read>) =>
    (await read(rows, more)).events;
  return { read, events, images };
}

describe('a record that the list shows as deleted', () => {
  it('is deleted at once, and once', async () => {
    const { events } = list();
    expect(await events([live('a', 1), live('b', 1)])).toEqual(['c a', 'c b']);
    expect(await events([deleted('a', 2), live('b', 1)])).toEqual(['d a']);
    expect(await events([deleted('a', 2), live('b', 1)])).toEqual([]);
    expect(await events([deleted('a', 3)])).toEqual([]);
  });

  it('has its last published image as the one before, and none after', async () => {
    const { read } = list();
    await read([live('a', 1)]);
    const { changes } = await read([deleted('a', 2)]);
    expect(changes[0]).toMatchObject({ op: 'd', before: live('a', 1), after: null });
  });

  it('gives no event where it was never published', async () => {
    const { events } = list();
    expect(await events([deleted('a', 1), live('b', 1)], { lane: 'poll' })).toEqual(['c b']);
  });

  it('is created again when it comes back', async () => {
    const { events } = list();
    await events([live('a', 1)]);
    await events([deleted('a', 2)]);
    expect(await events([live('a', 3)])).toEqual(['c a']);
    expect(await events([deleted('a', 4)])).toEqual(['d a']);
  });

  it.each<ReadBatch['lane']>(['poll', 'sweep', 'reread', 'resync'])(
    'is deleted whatever it was read for: %s',
    async (lane) => {
      const { events } = list();
      await events([live('a', 1)]);
      expect(await events([deleted('a', 2)], { lane })).toEqual(['d a']);
    },
  );

  it('is known by the value at its place, of any kind', async () => {
    const { events } = list({ at: '/state/name', is: 'archived' });
    const row = (name: string) => ({ ...live('a', 1), state: { name } });
    expect(await events([row('open')])).toEqual(['c a']);
    expect(await events([row('archived')])).toEqual(['d a']);
  });

  it('counts as read, and as left out', async () => {
    const { read } = list();
    expect(await read([deleted('a', 1), live('b', 1)])).toMatchObject({
      keys: ['a', 'b'],
      leftOut: ['a'],
    });
  });
});

describe('a response that shows a record as deleted as it was earlier', () => {
  it('deletes nothing where the published record is newer by its stamp', async () => {
    const { events } = list();
    await events([live('a', 1)]);
    await events([deleted('a', 2)]);
    await events([live('a', 3)]);
    expect(await events([deleted('a', 2)])).toEqual([]); // from a lagging replica
    expect(await events([deleted('a', 3)])).toEqual(['d a']);
  });

  it('deletes nothing where it comes from a cache', async () => {
    const { events } = list();
    await events([live('a', 1)]);
    expect(await events([deleted('a', 2)], { staleMs: MAX_LAG_MS + 1 })).toEqual([]);
    expect(await events([deleted('a', 2)])).toEqual(['d a']);
  });
});

it('a resync deletes what was published before the description told how deleted records look', async () => {
  const { events, images } = list();
  images.set('a', codec.encode(deleted('a', 1)));
  const isRecognized = true;
  expect(await events([deleted('a', 1)], { isRecognized })).toEqual([]);
  expect(await events([deleted('a', 1)], { isRecognized, lane: 'resync' })).toEqual(['d a']);
});
