import {
  asyncScheduler,
  concat,
  filter,
  firstValueFrom,
  lastValueFrom,
  map,
  NEVER,
  of,
  take,
  timer,
  toArray,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Api } from '../../src/account/api.ts';
import type { Config } from '../../src/config/config.ts';
import type { Destination } from '../../src/sinks/topics/destination.ts';
import type { Lanes } from '../../src/account/quotas.ts';
import { resourceEvents } from '../../src/pipeline/resource-events.ts';
import type { Resync, TaskResyncs } from '../../src/account/resync-requests.ts';
import { openSchemaEvolution } from '../../src/pipeline/encode/schema-evolution.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json/json.ts';
import { orderSchema } from '../../src/resources/orders/order.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import { Secret } from '../../src/core/secret.ts';
import { newCursor } from '../../src/pipeline/checkpoint/cursor.ts';
import type { TaskBatch, Checkpoint, TaskNotes } from '../../src/pipeline/checkpoint/checkpoint.ts';
import type { LogicalClock } from '../../src/streams/http/logical-clock.ts';
import type { Answer, ListQuery } from '../../src/streams/http/request.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';
import type { Limit } from '../../src/streams/quota/token-bucket.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
/** What the server's clock moves on between two requests. */
const STEP_MS = 1_000;

/** A list that gets a new order, stamped by the server's clock, before each request; it has no other. */
function growingList() {
  let orders = 0;
  const now = () => START + orders * STEP_MS;
  const list =
    (_: unknown, clock?: LogicalClock) =>
    (query: ListQuery): Observable<Answer> => {
      orders += 1;
      const order = { order_number: orders, updated_at: new Date(now()).toISOString() };
      const data = query.orderNumber === undefined ? [order] : [];
      const begin = clock!.begin();
      return timer(0).pipe(
        map(() => ({
          data,
          pagination: { total_records: data.length, has_next_page: false },
          span: clock!.answered(begin),
          serverTime: now(),
        })),
      );
    };
  return { now, api: { tokens: { token$: of({ serverTime: START }) }, list } as unknown as Api };
}

const pass = <T>(source: Observable<T>) => source;
const lanes: Lanes = {
  poll: pass,
  lookBack: pass,
  firstRead: pass,
  sweep: pass,
  whole: pass,
  ask: pass,
  spacingMs: () => 0,
  paceMs: 0,
};
const config = {
  account: 'estate',
  poll: {
    intervalMs: 1,
    lookbackMs: 10_000,
    pageSize: 100,
    sweepIntervalMs: 86_400_000,
    deleteLimitPercent: 5,
    deleteProofMs: 0,
  },
  pii: { drop: [], mask: [], hmac: [], hmacKey: undefined },
  volatileFields: [],
} as unknown as Config;
const destination: Destination = {
  records: (resource) => `wine.${resource}`,
  statusChanges: { topic: 'wine.order-status-changes', schemaId: 2 },
  deadLetters: { topic: 'wine.dead-letters', schemaId: 3 },
  cursors: 'wine.cursors',
  ledger: 'ledger',
  partitions: new Map(),
  maxMessageBytes: new Map(),
  look: () => Promise.resolve([]),
};
const registry: Partial<Registry> = {
  latest: () => Promise.resolve(undefined),
  register: () => Promise.resolve(1),
};

/** The events of orders after the first read, from a log that does as it is told. */
async function events(
  api: Api,
  more: Partial<Checkpoint>,
  resyncs?: TaskResyncs,
  pii = config.pii,
) {
  const book = await openSchemaEvolution({
    registry: registry as Registry,
    subject: 'wine.orders-value',
    resource: 'orders',
    described: orderSchema,
  });
  const log: Partial<Checkpoint> = {
    cursor: {
      ...newCursor('this one'),
      firstRead: { startedAt: START, position: null, done: true },
      since: START,
    },
    sweep: { ...NO_SWEEP, beganAt: Date.now() },
    get: () => undefined,
    count: () => 0,
    isRejected: () => false,
    unread: () => 0,
    isUnseen: () => false,
    commit: () => Promise.resolve(),
    keep: () => Promise.resolve(),
    ...more,
  };
  const published$ = resourceEvents({
    resource: 'orders',
    config: { ...config, pii },
    api,
    lanes,
    destination,
    book,
    checkpoint: log as Checkpoint,
    keyFields: ['order_number'],
    beganAt: null,
    wasEmpty: false,
    stop$: NEVER,
    resyncs,
    scheduler: asyncScheduler,
    hooks: {},
  });
  return { book, published$ };
}

describe('the cursor that is committed with a poll', () => {
  it("moves on, and never past the server's time as the poll began", async () => {
    const { now, api } = growingList();
    const commits: { since: number | null; at: number }[] = [];
    const { published$ } = await events(api, {
      commit: ({ cursor }) => {
        commits.push({ since: cursor.since, at: now() });
        return Promise.resolve();
      },
    });
    await lastValueFrom(published$.pipe(take(6)));

    expect(commits).toHaveLength(6);
    for (const { since, at } of commits) expect(since).toBeLessThanOrEqual(at);
    expect(commits.at(-1)!.since).toBeGreaterThan(START);
  });
});

describe('an order that the API has no more', () => {
  it('is deleted, unless somebody has seen it since it was found to be missing', async () => {
    const bytes = new Map<string, Buffer>();
    const { book, published$ } = await events(growingList().api, {
      sweep: { ...NO_SWEEP, number: 3, phase: 'removing', proof: 'exact', askedAt: 1 },
      count: () => 1_000,
      unseen: () => ({ keys: ['700', '800'], next: undefined }),
      isUnseen: (key, since) => key === '800' && since === 3,
      get: (key) =>
        bytes.has(key) ? { sequence: 1, schemaId: 1, bytes: bytes.get(key)! } : undefined,
    });
    for (const key of ['700', '800']) {
      bytes.set(key, book.values.encode({ order_number: Number(key) }));
    }
    const swept$ = published$.pipe(filter(({ lane }) => lane === 'sweep'));
    const swept = await lastValueFrom(swept$.pipe(take(2), toArray()));

    const changes = swept.flatMap((each) => each.changes.map(({ op, key }) => [op, key]));
    expect(changes).toEqual([['d', '800']]);
  });

  it('is not, the first time that it is asked for; and not asked for again where that tells nothing', async () => {
    const { api } = growingList();
    /** 700 is gone; of 800 the answer contradicts itself. */
    const list = (...all: Parameters<Api['list']>) => {
      const ask = api.list(...all);
      return (query: ListQuery, limit: Limit) =>
        ask(query, limit).pipe(
          map((answer) =>
            'orderNumber' in query
              ? {
                  ...answer,
                  data: [],
                  pagination: {
                    ...answer.pagination,
                    total_records: query.orderNumber === '800' ? 1 : 0,
                  },
                }
              : answer,
          ),
        );
    };
    const kept: TaskNotes[] = [];
    const { published$ } = await events(
      { ...api, list },
      {
        sweep: { ...NO_SWEEP, number: 3, phase: 'removing', proof: 'exact' },
        count: () => 1_000,
        unseen: () => ({ keys: ['700', '800'], next: undefined }),
        isUnseen: () => true,
        keep: (notes) => Promise.resolve(void kept.push(notes)),
      },
    );
    const swept$ = published$.pipe(filter(({ lane }) => lane === 'sweep'));
    const swept = await lastValueFrom(swept$.pipe(take(3), toArray()));

    expect(swept.flatMap(({ changes }) => changes)).toEqual([]);
    const found = kept.filter(({ sweep }) => sweep?.askedUpTo ?? sweep?.askedAt);
    expect(found.map(({ sweep, seen }) => [sweep?.askedUpTo, seen?.keys])).toEqual([
      ['700', []],
      ['800', ['800']],
      [null, []],
    ]);
    expect(found[2]!.sweep!.askedAt).toBeGreaterThan(0);
  });
});

describe('an order with personal fields', () => {
  const PERSONAL = { email: 'jane@example.com', notes: 'ring twice' };
  const pii: Config['pii'] = {
    ...config.pii,
    drop: [{ resource: 'orders', path: ['notes'] }],
    hmac: [{ resource: 'orders', path: ['email'] }],
    hmacKey: new Secret('a key that nobody guesses'),
  };
  /** What is committed for a list of these records, beside images that were stored before. */
  const committed = async (
    data: readonly JsonValue[],
    stored: Readonly<Record<string, JsonObject>> = {},
  ) => {
    const answer = (clock: LogicalClock): Answer => ({
      data,
      pagination: { total_records: data.length, has_next_page: true },
      span: clock.answered(clock.begin()),
      serverTime: START,
    });
    const list = (_: unknown, clock?: LogicalClock) => () =>
      timer(0).pipe(map(() => answer(clock!)));
    const api = { tokens: { token$: of({ serverTime: START }) }, list } as unknown as Api;
    const batches: TaskBatch[] = [];
    const images = new Map<string, Buffer>();
    const more: Partial<Checkpoint> = {
      get: (key) =>
        images.has(key) ? { sequence: 1, schemaId: 1, bytes: images.get(key)! } : undefined,
      commit: (batch) => Promise.resolve(void batches.push(batch)),
      cursor: newCursor('this one'),
    };
    const { book, published$ } = await events(api, more, undefined, pii);
    for (const [key, record] of Object.entries(stored)) images.set(key, book.values.encode(record));
    const { changes } = await firstValueFrom(
      published$.pipe(filter(({ lane }) => lane === 'first-read')),
    );
    const { cursor, rejects, ...batch } = batches.find((each) => each.cursor.firstRead.position)!;
    const written = [
      ...batch.messages.map(({ value }) => value),
      ...batch.images.map(({ image }) => image?.bytes),
    ];
    const text = Buffer.concat(written.map((bytes) => bytes ?? Buffer.alloc(0))).toString();
    return { changes, text, position: cursor.firstRead.position!, rejects };
  };

  it('is published and stored without them', async () => {
    const order = { order_number: 1, payment_status: 'paid' };
    const { changes, text } = await committed([{ ...order, ...PERSONAL }]);
    const email = expect.stringMatching(/^hmac-sha256:[0-9a-f]{64}$/) as unknown;
    expect(changes.map(({ after }) => after)).toEqual([{ ...order, email }]);
    expect(text).toMatch(/paid/);
    expect(text).not.toMatch(/jane|ring/);
  });

  it('is a dead letter without them, and so is what is no object', async () => {
    const { text } = await committed([{ ...PERSONAL, order_type: 'gift' }, 'jane@example.com']);
    expect(text).toMatch(/gift/);
    expect(text).not.toMatch(/jane|ring/);
  });

  it('leaves no trace of them in the cursor, nor in what tells rejects apart', async () => {
    const data = (notes: string) => {
      const numbers = [{ order_number: 1 }, { order_number: 2 }, {}];
      return numbers.map((order) => ({ ...order, ...PERSONAL, notes }));
    };
    const [one, other] = [await committed(data('ring')), await committed(data('knock'))];
    expect(one.position.anchors.flat()).not.toEqual([]);
    expect(other.position).toEqual(one.position);
    expect(one.rejects).toHaveLength(1);
    expect(other.rejects).toEqual(one.rejects);
  });

  it('shows nothing of them in `before`, though they were published once', async () => {
    const order = { order_number: 1, payment_status: 'paid', ...PERSONAL };
    const stored = { ...order, payment_status: 'open' };
    const { changes, text } = await committed([order], { 1: stored });
    const { before, after, changed } = changes[0]!;
    expect(before).toEqual({ ...after, payment_status: 'open' });
    expect(changed).toEqual(['email', 'notes', 'payment_status']);
    expect(text).not.toMatch(/jane|ring/);
  });
});

describe('an order that is to be published again', () => {
  const resync: Resync = { id: 'again', resource: 'orders', orderNumber: '1', since: null };
  const acknowledge: TaskResyncs['acknowledge'] = ({ id }, { status }, count) => ({
    topic: 'wine.signals',
    key: id,
    value: Buffer.from(`${status} ${count}`),
  });
  const list = (order: JsonObject) => {
    const answer = (query: ListQuery, clock: LogicalClock): Observable<Answer> => {
      const data = query.orderNumber === '1' ? [order] : [];
      const begin = clock.begin();
      return timer(0).pipe(
        map(() => ({
          data,
          pagination: { total_records: data.length, has_next_page: false },
          span: clock.answered(begin),
          serverTime: START,
        })),
      );
    };
    const list = (_: unknown, clock?: LogicalClock) => (query: ListQuery) => answer(query, clock!);
    return { tokens: { token$: of({ serverTime: START }) }, list } as unknown as Api;
  };
  /** What the request comes to, for an order that was published so and is so now. */
  const published = async (before: JsonObject, now: JsonObject, pii = config.pii) => {
    const images = new Map<string, Buffer>();
    const commits: TaskBatch[] = [];
    const told: string[] = [];
    const { book, published$ } = await events(
      list(now),
      {
        get: (key) =>
          images.has(key) ? { sequence: 1, schemaId: 1, bytes: images.get(key)! } : undefined,
        commit: (batch) => Promise.resolve(void commits.push(batch)),
      },
      {
        requests$: concat(of(resync), NEVER),
        acknowledge,
        acknowledged: ({ id }) => told.push(`${id} after ${commits.length} commits`),
      },
      pii,
    );
    images.set('1', book.values.encode(before));
    const again = await firstValueFrom(published$.pipe(filter(({ lane }) => lane === 'resync')));
    const { messages, images: stored } = commits.find((batch) =>
      batch.messages.some(({ key }) => key === 'again'),
    )!;
    const topics = messages.map(({ topic, key }) => `${topic} ${key}`);
    const bytes = Buffer.concat(messages.map(({ value }) => value ?? Buffer.alloc(0))).toString();
    return { ...again, topics, stored, told, bytes, ack: String(messages.at(-1)!.value) };
  };

  it('is an r, in one commit with the acknowledgement', async () => {
    const order = { order_number: 1, payment_status: 'paid' };
    const { changes, topics, stored, told, ack } = await published(order, order);
    expect(changes.map(({ op }) => op)).toEqual(['r']);
    expect(topics).toEqual(['wine.orders 1', 'wine.signals again']);
    expect(stored).toMatchObject([{ key: '1', sequence: 1 }]);
    expect([ack, told]).toEqual(['done 1', ['again after 1 commits']]);
  });

  it('is a u with its status changes before, where it has changed', async () => {
    const { changes, topics, ack } = await published(
      { order_number: 1, payment_status: 'paid' },
      { order_number: 1, payment_status: 'refunded' },
    );
    expect(changes.map(({ op }) => op)).toEqual(['u', 'r']);
    expect(changes[1]!.before).toEqual(changes[0]!.after);
    expect(topics).toEqual([
      'wine.orders 1',
      'wine.order-status-changes 1',
      'wine.orders 1',
      'wine.signals again',
    ]);
    expect(ack).toBe('done 2');
  });

  it('is a u and an r without what was published before it was to be hidden', async () => {
    const order = {
      order_number: 1,
      email: 'jane@example.com',
      notes: 'ring',
      payment_status: 'paid',
    };
    const hidden = { order_number: 1, email: '***', payment_status: 'paid' };
    const { changes, statusChanges, stored, bytes } = await published(order, order, {
      ...config.pii,
      drop: [{ resource: 'orders', path: ['notes'] }],
      mask: [{ resource: 'orders', path: ['email'] }],
    });
    expect(changes.map(({ op, changed }) => [op, changed])).toEqual([
      ['u', ['email', 'notes']],
      ['r', []],
    ]);
    for (const { before, after } of changes) expect([before, after]).toEqual([hidden, hidden]);
    expect(statusChanges).toEqual([]);
    const images = Buffer.concat(stored.map(({ image }) => image!.bytes)).toString();
    expect(bytes + images).toContain('paid');
    expect(bytes + images).not.toMatch(/jane|ring/);
  });

  it('is a dead letter alone, where its change is too large: nothing is built on what is not published', async () => {
    const { topics, ack } = await published(
      { order_number: 1, notes: 'n'.repeat(800_000) },
      { order_number: 1, notes: 'm'.repeat(200_000) },
    );
    expect(topics.at(0)).toBe('wine.dead-letters 1');
    expect(topics).not.toContain('wine.orders 1');
    expect(ack).toBe('done 0');
  });
});
