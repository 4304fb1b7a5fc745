import {
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
import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { listEvents } from '../../src/pipeline/list-events.ts';
import { Confirmations } from '../../src/streams/diff/confirmations.ts';
import { newCursor } from '../../src/pipeline/checkpoint/cursor.ts';
import { fakeCheckpoint, SNAPSHOT_AT } from '../support/fake-checkpoint.ts';
import { BUSY, decoded, FREE_LANES, fakeTask } from '../support/fake-account.ts';
import type { Answering } from '../support/fake-account.ts';
import type { ResyncJob, TaskJobs } from '../../src/account/signal-jobs.ts';
import { SchemaEvolution } from '../../src/pipeline/codec/schema-evolution.ts';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json/json.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { ORDERS } from '../support/orders.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import { Secret } from '../../src/core/secret.ts';
import type {
  Checkpoint,
  StoreReads,
  TaskBatch,
  TaskNotes,
} from '../../src/pipeline/checkpoint/checkpoint.ts';
import { NO_SWEEP } from '../../src/streams/paging/sweep-progress.ts';

/** What the server's clock moves on between two requests. */
const STEP_MS = 1_000;

/** A list that gets a new order, stamped by the server's clock, before each request; it has no other. */
function growingList() {
  let orders = 0;
  const now = () => SNAPSHOT_AT + orders * STEP_MS;
  const answer: Answering = (query, clock, decode) => {
    orders += 1;
    const order = { order_number: orders, updated_at: new Date(now()).toISOString() };
    const data = decoded(query.key === undefined ? [order] : [], decode);
    const begin = clock.begin();
    return timer(0).pipe(
      map(() => ({
        data,
        total: data.length,
        hasNext: false,
        span: clock.answered(begin),
        serverTime: now(),
      })),
    );
  };
  return { now, answer };
}

const registry: Partial<Registry> = {
  latest: () => Promise.resolve(undefined),
  register: () => Promise.resolve(1),
};

/** The events of orders after the initial snapshot, from a log that does as it is told. */
async function events(
  answer: Answering,
  { reads, ...more }: Partial<Checkpoint> & { readonly reads?: Partial<StoreReads> },
  resyncs?: TaskJobs,
  pii = BUSY.pii,
) {
  const book = await SchemaEvolution.open({
    registry: registry as Registry,
    subject: 'wine.orders-value',
    list: ORDERS,
  });
  const published$ = listEvents({
    task: fakeTask('orders', { pii }, answer),
    lanes: FREE_LANES,
    evolution: book,
    checkpoint: fakeCheckpoint(more, reads),
    confirmations: new Confirmations({ now: () => Date.now() }),
    key: { keyFields: ['order_number'], beganAt: null, wasEmpty: false },
    resyncs,
  });
  return { book, published$ };
}

describe('the cursor that is committed with a poll', () => {
  it("moves on, and never past the server's time as the poll began", async () => {
    const { now, answer } = growingList();
    const commits: { since: number | null; at: number }[] = [];
    const { published$ } = await events(answer, {
      commit: ({ cursor }) => {
        commits.push({ since: cursor.since, at: now() });
        return Promise.resolve();
      },
    });
    await lastValueFrom(published$.pipe(take(6)));

    expect(commits).toHaveLength(6);
    for (const { since, at } of commits) expect(since).toBeLessThanOrEqual(at);
    expect(commits.at(-1)!.since).toBeGreaterThan(SNAPSHOT_AT);
  });
});

describe('the initial snapshot of an API without `Date`', () => {
  it('begins for its certificate when its first page was requested, however long that waited', async () => {
    const asOf = Date.now() - 60_000;
    const undated: Answering = (query, ...rest) =>
      growingList()
        .answer(query, ...rest)
        .pipe(map((page) => ({ ...page, serverTime: undefined, age: { asOf, staleMs: 0 } })));
    const began: (number | null | undefined)[] = [];
    const { published$ } = await events(undated, {
      cursor: newCursor('this one'),
      commit: ({ sweep }) => {
        began.push(sweep?.counts?.beganAt);
        return Promise.resolve();
      },
    });
    await firstValueFrom(published$.pipe(filter(({ lane }) => lane === 'first-read')));
    expect(began[0]).toBe(asOf);
  });
});

describe('an order that the API has no more', () => {
  it('is deleted, unless somebody has seen it since it was found to be missing', async () => {
    const bytes = new Map<string, Buffer>();
    const { book, published$ } = await events(growingList().answer, {
      sweep: { ...NO_SWEEP, number: 3, phase: 'removing', proof: 'exact', askedAt: 1 },
      reads: {
        count: () => 1_000,
        unseen: () => ({ keys: ['700', '800'], next: undefined }),
        isUnseen: (key, since) => key === '800' && since === 3,
        get: (key) =>
          bytes.has(key) ? { sequence: 1, schemaId: 1, bytes: bytes.get(key)! } : undefined,
      },
    });
    for (const key of ['700', '800']) {
      bytes.set(key, book.values.encode({ order_number: Number(key) }));
    }
    const swept$ = published$.pipe(filter(({ lane }) => lane === 'sweep'));
    const swept = await lastValueFrom(swept$.pipe(take(3), toArray())); // the first is the limit's

    const changes = swept.flatMap((each) => each.changes.map(({ op, key }) => [op, key]));
    expect(changes).toEqual([['d', '800']]);
  });

  it('is not, the first time that it is asked for; and not asked for again where that tells nothing', async () => {
    const { answer } = growingList();
    /** 700 is gone; of 800 the answer contradicts itself. */
    const contradicting: Answering = (query, ...rest) =>
      answer(query, ...rest).pipe(
        map((found) => {
          if (query.key === undefined) return found;
          const total = query.key === '800' ? 1 : 0;
          return { ...found, data: [], total };
        }),
      );
    const kept: TaskNotes[] = [];
    const { published$ } = await events(contradicting, {
      sweep: { ...NO_SWEEP, number: 3, phase: 'removing', proof: 'exact' },
      reads: {
        count: () => 1_000,
        unseen: () => ({ keys: ['700', '800'], next: undefined }),
        isUnseen: () => true,
      },
      storeNotes: (notes) => Promise.resolve(void kept.push(notes)),
    });
    const swept$ = published$.pipe(filter(({ lane }) => lane === 'sweep'));
    const swept = await lastValueFrom(swept$.pipe(take(4), toArray()));

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
    ...BUSY.pii,
    drop: [{ resource: 'orders', path: ['notes'] }],
    hmac: [{ resource: 'orders', path: ['email'] }],
    hmacKey: new Secret('a key that nobody guesses'),
  };
  /** What is committed for a list of these records, beside images that were stored before. */
  const committed = async (
    data: readonly JsonValue[],
    stored: Readonly<Record<string, JsonObject>> = {},
  ) => {
    const answer: Answering = (_, clock, decode) =>
      timer(0).pipe(
        map(() => ({
          data: decoded(data, decode),
          total: data.length,
          hasNext: true,
          span: clock.answered(clock.begin()),
          serverTime: SNAPSHOT_AT,
        })),
      );
    const batches: TaskBatch[] = [];
    const images = new Map<string, Buffer>();
    const more: Parameters<typeof events>[1] = {
      reads: {
        get: (key) =>
          images.has(key) ? { sequence: 1, schemaId: 1, bytes: images.get(key)! } : undefined,
      },
      commit: (batch) => Promise.resolve(void batches.push(batch)),
      cursor: newCursor('this one'),
    };
    const { book, published$ } = await events(answer, more, undefined, pii);
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
  const resync: ResyncJob = { id: 'again', resource: 'orders', key: '1', since: null };
  const acknowledge: TaskJobs['resyncAck'] = ({ id }, { status }, count) => ({
    topic: 'wine.signals',
    key: id,
    value: Buffer.from(`${status} ${count}`),
  });
  const list =
    (order: JsonObject): Answering =>
    (query, clock, decode) => {
      const data = decoded(query.key === '1' ? [order] : [], decode);
      const begin = clock.begin();
      return timer(0).pipe(
        map(() => ({
          data,
          total: data.length,
          hasNext: false,
          span: clock.answered(begin),
          serverTime: SNAPSHOT_AT,
        })),
      );
    };
  /** What the request comes to, for an order that was published so and is so now. */
  const published = async (before: JsonObject, now: JsonObject, pii = BUSY.pii) => {
    const images = new Map<string, Buffer>();
    const commits: TaskBatch[] = [];
    const told: string[] = [];
    const { book, published$ } = await events(
      list(now),
      {
        reads: {
          get: (key) =>
            images.has(key) ? { sequence: 1, schemaId: 1, bytes: images.get(key)! } : undefined,
        },
        commit: (batch) => Promise.resolve(void commits.push(batch)),
      },
      {
        resyncs$: concat(of(resync), NEVER),
        resyncAck: acknowledge,
        certifications$: NEVER,
        certifyAck: () => ({ topic: 'wine.signals', key: 'none', value: null }),
        ackCommitted: ({ id }) => told.push(`${id} after ${commits.length} commits`),
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
    const ack = String(messages.at(-1)!.value);
    return { ...again, topics, stored, told, bytes, ack, first: messages[0]!.value! };
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
      ...BUSY.pii,
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
    const { topics, ack, first } = await published(
      { order_number: 1, notes: 'n'.repeat(800_000) },
      { order_number: 1, notes: 'm'.repeat(200_000) },
    );
    expect(topics.at(0)).toBe('wine.dead-letters 1');
    // The record was requested alone, so it came on no page.
    expect(deadLetterCodec.decode(unframe(first).payload).offset).toBeNull();
    expect(topics).not.toContain('wine.orders 1');
    expect(ack).toBe('done 0');
  });
});
