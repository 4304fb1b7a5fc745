import { NEVER, Observable, Subject } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { Published } from '../../src/observe/hooks.ts';
import { listEvents } from '../../src/pipeline/list-events.ts';
import { Confirmations } from '../../src/streams/diff/confirmations.ts';
import { newCursor } from '../../src/pipeline/checkpoint/cursor.ts';
import { fakeCheckpoint, SNAPSHOT_AT } from '../support/fake-checkpoint.ts';
import { BUSY, FREE_LANES, fakeTask } from '../support/fake-account.ts';
import type { Answering } from '../support/fake-account.ts';
import type { ResyncJob } from '../../src/account/signal-jobs.ts';
import { SchemaEvolution } from '../../src/pipeline/codec/schema-evolution.ts';
import { ORDERS } from '../support/orders.ts';
import { pageElements } from '../../src/schemas/json/json-bytes.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import type {
  Checkpoint,
  StoreReads,
  TaskBatch,
  TaskNotes,
} from '../../src/pipeline/checkpoint/checkpoint.ts';
import type { Answer } from '../../src/streams/decode/response.ts';
import { Body } from '../../src/streams/http/body.ts';
import type { ListQuery } from '../../src/streams/http/page-request.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';
import { PageRecords } from '../../src/streams/records/page-records.ts';
import { SimFolder, storeOf } from '../sim/sim-store.ts';
import { atOnce } from '../support/at-once.ts';
import { memory } from '../support/task-memory.ts';

/** A list request that waits for its answer. */
interface Asked {
  readonly query: ListQuery;
  /** Answers with these records, as text; tells the keys of those that were known by their bytes. */
  readonly answer: (
    records: readonly string[],
    envelope?: Partial<Pick<Answer, 'total' | 'hasNext'>>,
  ) => string[];
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

/** The events of orders after the initial snapshot, whose requests are answered by hand. */
async function orders(
  config: Partial<Config> = {},
  more: Partial<Checkpoint> = {},
  reads: Partial<StoreReads> = {},
) {
  const asked: Asked[] = [];
  const answering: Answering = (query, clock, decode) =>
    new Observable<Answer>((subscriber) => {
      const begin = clock.begin();
      const answer: Asked['answer'] = (records, envelope) => {
        const page = new Body(Buffer.from(`{"data":[${records.join()}]}`));
        const parts = atOnce(
          pageElements(page.bytes, ['data'], (at) => decode(page, at)),
        )!.elements;
        const found = new PageRecords(parts, page);
        const data = found.all();
        subscriber.next({
          data,
          records: found,
          ...{ total: records.length, hasNext: false, ...envelope },
          span: clock.answered(begin),
          serverTime: SNAPSHOT_AT,
        });
        subscriber.complete();
        return data.flatMap(({ key, image }) => (image?.kind === 'published' ? [key!] : []));
      };
      asked.push({ query, answer });
    });
  const ids: string[] = [];
  const register: Registry['register'] = (_, schema) => {
    const text = JSON.stringify(schema);
    if (!ids.includes(text)) ids.push(text);
    return Promise.resolve(ids.indexOf(text) + 1);
  };
  const registry: Partial<Registry> = { latest: () => Promise.resolve(undefined), register };
  const book = await SchemaEvolution.open({
    registry: registry as Registry,
    subject: 's',
    list: ORDERS,
  });

  const store = storeOf(new SimFolder(), () => Promise.resolve()).task('orders');
  const commits: TaskBatch[] = [];
  const keeps: TaskNotes[] = [];
  let sweep = { ...NO_SWEEP, beganAt: Date.now() };
  let held: Promise<void> | undefined;
  const log = fakeCheckpoint({
    store: { ...store, ...reads },
    commit: async (batch) => {
      commits.push(batch);
      await held;
      await store.put(batch.images, memory, batch);
    },
    storeNotes: async (notes) => {
      keeps.push(notes);
      await store.put([], memory, notes);
    },
    ...more,
    get sweep() {
      return sweep;
    },
  });
  const published: Published[] = [];
  const errors: unknown[] = [];
  const requests$ = new Subject<ResyncJob>();
  const acknowledge = ({ id }: { readonly id: string }) => ({
    topic: 'wine.signals',
    key: id,
    value: Buffer.of(),
  });
  const subscription = listEvents({
    task: fakeTask('orders', config, answering),
    lanes: FREE_LANES,
    evolution: book,
    checkpoint: log,
    confirmations: new Confirmations({ now: () => Date.now() }),
    key: { keyFields: ['order_number'], beganAt: null, wasEmpty: false },
    resyncs: {
      resyncs$: requests$,
      resyncAck: acknowledge,
      certifications$: NEVER,
      certifyAck: acknowledge,
      ackCommitted: () => undefined,
    },
  }).subscribe({ next: (each) => published.push(each), error: (error) => errors.push(error) });
  onTestFinished(() => subscription.unsubscribe());

  /** The oldest request that has not been answered and passes. */
  const next = async (isOne: (query: ListQuery) => boolean = () => true): Promise<Asked> => {
    await until(() => asked.some(({ query }) => isOne(query)));
    return asked.splice(
      asked.findIndex(({ query }) => isOne(query)),
      1,
    )[0]!;
  };
  const poll = () => next(({ from }) => from !== undefined);
  const whole = () => next(({ from }) => from === undefined);
  const events = ({ changes }: Published) => changes.map(({ op, key }) => `${op} ${key}`);
  return {
    book,
    store,
    commits,
    keeps,
    published,
    errors,
    poll,
    whole,
    /** A poll that brings these records: what was known of them, and what it has published. */
    polled: async (...records: string[]) => {
      const { length } = published;
      const known = (await poll()).answer(records);
      await until(() => published.length > length);
      return { known, events: events(published[length]!) };
    },
    eventsOf: (place: number) => events(published[place]!),
    resync: () => requests$.next({ id: 'again', resource: 'orders', key: null, since: null }),
    sweepNumber: (number: number) => (sweep = { ...sweep, number }),
    /** Holds up commits until it is called. */
    hold: () => {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return () => {
        held = undefined;
        release();
      };
    },
  };
}

const order = (key: number, more = '') => `{"order_number":${key}${more && `,${more}`}}`;
const [PAID, OPEN] = ['"payment_status":"paid"', '"payment_status":"open"'];
const REFUNDED = '"payment_status":"refunded"';
const keysOf = ({ payloadDigests = new Map() }: TaskNotes) => [...payloadDigests.keys()].sort();

describe('orders that are encoded as they arrive', () => {
  it('are new in an initial snapshot only if they were made behind its beginning', async () => {
    const firstRead = { startedAt: SNAPSHOT_AT, position: null, done: false };
    const cursor = { ...newCursor('this one'), firstRead, since: SNAPSHOT_AT };
    const { whole, polled, published, eventsOf, commits } = await orders({}, { cursor });
    const created = (time: string) => `"created_at":"${time}"`;
    (await whole()).answer([
      order(1, created('2025-12-31T23:59:59Z')),
      order(2, `${created('2026-01-01T00:00:01Z')},"updated_at":"2026-01-01T00:00:00Z"`),
      order(3),
    ]);
    await until(() => published.length > 0);
    expect(eventsOf(0)).toEqual(['r 1', 'c 2', 'r 3']);
    // It may have moved to where the initial snapshot had been already: the next poll is too late for that.
    const missed = [order(4, created('2025-12-31T23:59:59Z')), order(5)];
    expect(await polled(...missed)).toMatchObject({ events: ['r 4', 'c 5'] });
    expect(await polled(order(6, created('2026-01-01T00:00:01Z')))).toMatchObject({
      events: ['c 6'],
    });
    const late = order(7, created('2025-12-31T23:59:59Z'));
    expect(await polled(late)).toMatchObject({ events: ['c 7'] });
    expect(commits.at(-1)!.cursor.firstRead).toMatchObject({ done: true, caughtUp: true });
  });
});

describe('orders that come in the bytes of last time', () => {
  it('publish nothing, and are marked as seen all the same', async () => {
    const { polled, keeps, commits, published, store, sweepNumber } = await orders();
    const page = [order(1, PAID), order(2)];
    expect(await polled(...page)).toEqual({ known: [], events: ['c 1', 'c 2'] });
    expect(await polled(...page)).toEqual({ known: ['1', '2'], events: [] });
    expect([commits.length, keeps.length, published[1]!.unchanged]).toEqual([1, 0, 2]);
    sweepNumber(4);
    expect(await polled(order(3), ...page)).toEqual({ known: ['1', '2'], events: ['c 3'] });
    sweepNumber(5);
    expect(await polled(...page)).toEqual({ known: ['1', '2'], events: [] });
    expect(keeps).toMatchObject([{ seen: { keys: ['1', '2'], sweep: 5, bySweep: false } }]);
    expect(store.isUnseen('1', 5)).toBe(false);
  });

  it('are known again after they have changed, or were found to be the same in other bytes', async () => {
    const { polled, store } = await orders();
    await polled(order(1, PAID), order(2));
    expect(await polled(order(1, OPEN), ' {"order_number": 2 }')).toEqual({
      known: [],
      events: ['u 1'],
    });
    expect(await polled(order(1, OPEN), order(2))).toEqual({ known: ['1'], events: [] });
    expect(await polled(order(1, REFUNDED), order(2))).toEqual({ known: ['2'], events: ['u 1'] });
    expect(store.count()).toBe(2);
  });

  it('are compared in full, where another page has changed them before their turn', async () => {
    const { polled, poll, hold, published, eventsOf, commits, store, book } = await orders();
    await polled(order(1, PAID), order(2), order(3));
    const release = hold();
    (await poll()).answer([order(1, OPEN), order(2)], { total: 3, hasNext: true });
    await until(() => commits.length === 2);
    // Back to what it was, as it still is stored: unchanged only until the other page is, and a lagging replica's answer from then on.
    const known = (await poll()).answer([order(2), order(1, PAID), order(3)]);
    expect(known).toEqual(['2', '1', '3']);
    release();
    await until(() => published.length === 3);
    expect([eventsOf(1), eventsOf(2)]).toEqual([['u 1'], []]);
    expect(published[2]!.unchanged).toBe(2);
    expect(book.values.decode(store.get('1')!.bytes)).toEqual({
      order_number: 1,
      payment_status: 'open',
    });
  });

  it('are never known where something is hidden of them', async () => {
    const drop = [{ resource: 'orders', path: ['notes'] }] as const;
    const { polled, commits, keeps } = await orders({ pii: { ...BUSY.pii, drop } });
    const page = [order(1, '"notes":"ring"')];
    expect((await polled(...page)).events).toEqual(['c 1']);
    for (let n = 0; n < 2; n++) expect(await polled(...page)).toEqual({ known: [], events: [] });
    expect([...commits, ...keeps].map(keysOf).flat()).toEqual([]);
  });
});

describe('an order of which a volatile field alone differs', () => {
  const volatileFields = [{ resource: 'orders', path: ['viewed'] }] as const;
  const viewed = (n: number, more = '') => order(1, `"viewed":${n}${more}`);

  it('makes no event, nor keeps its bytes; an event that has another reason has the newest value', async () => {
    const { polled, commits, keeps, store, book } = await orders({ volatileFields });
    const stored = () => book.values.decode(store.get('1')!.bytes).viewed;
    expect((await polled(viewed(1))).events).toEqual(['c 1']);
    for (const n of [2, 3]) expect((await polled(viewed(n))).events).toEqual([]);
    expect([stored(), commits.length, keeps.map(keysOf).flat()]).toEqual([1, 1, []]);
    expect((await polled(viewed(4, `,${OPEN}`))).events).toEqual(['u 1']);
    expect(stored()).toBe(4);
  });

  it('is an event where nothing is said of that field', async () => {
    const { polled } = await orders();
    await polled(viewed(1));
    expect((await polled(viewed(2))).events).toEqual(['u 1']);
  });

  it('is published again with its newest value', async () => {
    const { polled, whole, resync, published, store, book } = await orders({ volatileFields });
    await polled(viewed(1));
    resync();
    (await whole()).answer([viewed(2)]);
    await until(() => published.some(({ lane }) => lane === 'resync'));
    const [again] = published.find(({ lane }) => lane === 'resync')!.changes;
    expect([again?.op, again?.before?.viewed, again?.after?.viewed]).toEqual(['r', 1, 2]);
    expect(book.values.decode(store.get('1')!.bytes).viewed).toBe(2);
  });
});

describe('the bytes that are kept', () => {
  it('are those of orders that have changed and of those that have not', async () => {
    const { polled, commits, keeps, store, book } = await orders();
    const bytes = book.values.encode({ order_number: 2 });
    await store.put([{ key: '2', sequence: 1, image: { schemaId: 1, bytes } }], memory);
    await polled(order(1), order(2));
    expect(commits.map(keysOf)).toEqual([['1', '2']]);
    expect(store.payloadDigest('1')).toMatchObject({ length: order(1).length, updatedAt: null });
    await polled(order(1), `${order(2)} `.replace(':', ': '));
    expect(keeps.map(keysOf)).toEqual([['2']]); // the other one's are kept already
    expect((await polled(order(1), order(2))).known).toEqual(['1']);
  });

  it('are not those of an order that is too large', async () => {
    const { polled, commits, store } = await orders();
    await polled(order(1, PAID));
    const large = order(1, `"notes":"${'n'.repeat(1_100_000)}"`);
    expect((await polled(large, order(2))).events).toEqual(['u 1', 'c 2']);
    expect(keysOf(commits[1]!)).toEqual(['2']);
    expect(commits[1]!.messages[0]!.topic).toBe('wine.orders');
    expect(commits[1]!.messages.map(({ topic }) => topic)).toContain('wine.dead-letters');
    expect(store.payloadDigest('1')?.length).toBe(order(1, PAID).length); // the stored image is still that
    expect((await polled(large)).known).toEqual([]);
    expect((await polled(order(1, PAID))).known).toEqual(['1']);
  });

  it('are not those of an order of which nobody can tell whether it is older, though it is published again', async () => {
    const { polled, poll, whole, resync, published, eventsOf, commits, store } = await orders();
    await polled(order(1, PAID), order(2));
    const [polling] = [await poll()];
    resync();
    const again = await whole(); // both are under way
    polling.answer([order(1, OPEN)]);
    await until(() => published.length === 2);
    again.answer([order(1, '"payment_status":"void"'), order(2)]);
    await until(() => published.some(({ lane }) => lane === 'resync'));
    const place = published.findIndex(({ lane }) => lane === 'resync');
    expect(eventsOf(place)).toEqual(['r 1', 'r 2']);
    const batch = commits.find(({ images }) => images.length === 2 && images[0]!.sequence > 2)!;
    // Nothing is known of the one that was published again beside another answer.
    expect([keysOf(batch), store.payloadDigest('1')]).toEqual([['2'], undefined]);
    const reread = await whole();
    expect(reread.query).toEqual({ key: '1' });
  });

  it('are not those of an order that SNAPSHOT_AT_FROM leaves out', async () => {
    const startFrom = SNAPSHOT_AT;
    const { whole, resync, published, commits, keeps, eventsOf } = await orders({
      poll: { ...BUSY.poll, startFrom },
    });
    resync();
    const old = order(1, '"updated_at":"2025-12-31T00:00:00Z"');
    (await whole()).answer([old, order(2, '"updated_at":"2026-01-02T00:00:00Z"')]);
    await until(() => published.length > 0);
    expect(eventsOf(0)).toEqual(['c 2']);
    expect([...commits, ...keeps].flatMap(keysOf)).toEqual(['2']);
  });
});

it('bad records make a dead letter each, however many there are and however often they are read', async () => {
  const { polled, commits } = await orders();
  const letters = () => commits.flatMap(({ messages }) => messages).length;
  const bad = Array.from({ length: 2_001 }, (_, n) => `{"n":${n}}`);
  for (let n = 0; n < 3; n++) await polled(...bad, bad[0]!);
  expect(letters()).toBe(2_001);
  await polled(...bad.slice(1), '{"n":0.5}');
  expect(letters()).toBe(2_002);
});

it('a page that was encoded before the schema has grown is encoded again', async () => {
  const { polled, poll, whole, resync, hold, published, commits, book, store } = await orders();
  await polled(order(1, PAID));
  const release = hold();
  const total = 3;
  (await poll()).answer([order(1, OPEN), order(2)], { total, hasNext: true });
  await until(() => commits.length === 2);
  const values = book.values;
  (await poll()).answer([order(2), order(3, PAID)], { total });
  resync();
  (await whole()).answer([order(4, '"vineyard":"north"')]);
  await until(() => book.values !== values);
  release();
  await until(() => published.length === 4);
  expect(published[2]!.changes[0]!.after).toEqual({ order_number: 3, payment_status: 'paid' });
  expect([store.get('2')!.schemaId, store.get('3')!.schemaId]).toEqual([1, 2]);
  expect(book.values.decode(store.get('3')!.bytes)).toEqual({
    order_number: 3,
    payment_status: 'paid',
  });
  // What was published before is decoded by what has encoded it.
  expect(published[1]!.changes.map(({ after }) => after)).toEqual([
    { order_number: 1, payment_status: 'open' },
    { order_number: 2 },
  ]);
});

it('a store that fails as orders arrive says so when their turn has come, and is not taken for the API', async () => {
  const damage = () => {
    throw new CellarstreamError('STATE_DAMAGED', 'the stored images are damaged');
  };
  const { poll, errors } = await orders({}, {}, { payloadDigest: damage, get: damage });
  expect((await poll()).answer([order(1)])).toEqual([]);
  await until(() => errors.length > 0);
  expect(errors).toMatchObject([{ code: 'STATE_DAMAGED' }]);
});
