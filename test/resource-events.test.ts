import { asyncScheduler, filter, lastValueFrom, map, NEVER, of, take, timer, toArray } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Api } from '../src/api.ts';
import type { Config } from '../src/config.ts';
import type { Destination } from '../src/destination.ts';
import type { Lanes } from '../src/quotas.ts';
import { resourceEvents } from '../src/resource-events.ts';
import { openSchemaBook } from '../src/schema-book.ts';
import { orderSchema } from '../src/schemas/order.ts';
import type { Registry } from '../src/schemas/registry.ts';
import { newCursor } from '../src/sinks/cursor.ts';
import type { TaskLog } from '../src/sinks/task-log.ts';
import type { ReadClock } from '../src/streams/read-clock.ts';
import type { Answer, ListQuery } from '../src/streams/request.ts';
import { NO_SWEEP } from '../src/streams/sweep-progress.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
/** What the server's clock moves on between two requests. */
const STEP_MS = 1_000;

/** A list that gets a new order, stamped by the server's clock, before each request; it has no other. */
function growingList() {
  let orders = 0;
  const now = () => START + orders * STEP_MS;
  const list =
    (_: unknown, clock?: ReadClock) =>
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
const lanes: Lanes = { poll: pass, firstRead: pass, sweep: pass, whole: pass, ask: pass, spacingMs: () => 0 }; // prettier-ignore
const config = {
  account: 'estate',
  poll: {
    intervalMs: 1,
    lookbackMs: 60_000,
    pageSize: 100,
    sweepIntervalMs: 86_400_000,
    deleteLimitPercent: 5,
  },
} as Config;
const destination: Destination = {
  records: (resource) => `wine.${resource}`,
  statusChanges: { topic: 'wine.order-status-changes', schemaId: 2 },
  deadLetters: { topic: 'wine.dead-letters', schemaId: 3 },
  cursors: 'wine.cursors',
  partitions: new Map(),
};
const registry: Partial<Registry> = {
  latest: () => Promise.resolve(undefined),
  register: () => Promise.resolve(1),
};

/** The events of orders after the first read, from a log that does as it is told. */
async function events(api: Api, more: Partial<TaskLog>) {
  const book = await openSchemaBook({
    registry: registry as Registry,
    subject: 'wine.orders-value',
    resource: 'orders',
    described: orderSchema,
  });
  const log: Partial<TaskLog> = {
    cursor: {
      ...newCursor('this one'),
      firstRead: { startedAt: START, position: null, done: true },
      since: START,
    },
    sweep: { ...NO_SWEEP, beganAt: Date.now() },
    get: () => undefined,
    rejects: () => [],
    unread: () => 0,
    isUnseen: () => false,
    commit: () => Promise.resolve(),
    keep: () => Promise.resolve(),
    ...more,
  };
  const published$ = resourceEvents({
    resource: 'orders',
    config,
    api,
    lanes,
    destination,
    book,
    log: log as TaskLog,
    keyFields: ['order_number'],
    beganAt: null,
    wasEmpty: false,
    stop$: NEVER,
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
      sweep: { ...NO_SWEEP, number: 3, phase: 'removing', proof: 'exact' },
      count: () => 1_000,
      unseen: () => ({ keys: ['700', '800'], next: undefined }),
      isUnseen: (key, since) => key === '800' && since === 3,
      get: (key) => bytes.has(key) ? { sequence: 1, schemaId: 1, bytes: bytes.get(key)! } : undefined, // prettier-ignore
    });
    for (const key of ['700', '800']) {
      bytes.set(key, book.values.encode({ order_number: Number(key) }));
    }
    const swept$ = published$.pipe(filter(({ lane }) => lane === 'sweep'));
    const swept = await lastValueFrom(swept$.pipe(take(2), toArray()));

    const changes = swept.flatMap((each) => each.changes.map(({ op, key }) => [op, key]));
    expect(changes).toEqual([['d', '800']]);
  });
});
