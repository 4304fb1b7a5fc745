import { createHash } from 'node:crypto';
import { asyncScheduler } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { CompactedView } from '../../../src/kafka/fetch/compacted-view.ts';
import type { StampedMessage, TailMessage } from '../../../src/kafka/log.ts';
import type { TransactionalLog, Message } from '../../../src/sinks/sink.ts';
import { newCursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import type { Cursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import { openCheckpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { TaskBatch } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { ImageUpdate, TaskMemory, TaskStore } from '../../../src/state/store.ts';
import { NO_SWEEP } from '../../../src/streams/paging/sweep-progress.ts';

const TASK = 'estate/orders';
const event: Message = { topic: 'wine.orders', key: '7', value: Buffer.from('an event') };
const status: Message = { topic: 'wine.order-status-changes', key: '7', value: Buffer.from('x') };
const image: ImageUpdate = {
  key: '7',
  sequence: 1,
  image: { schemaId: 1, bytes: Buffer.from('') },
};
const DIGEST = createHash('sha256').update('7\n1').digest('hex').slice(0, 16);
const batch: TaskBatch = {
  messages: [event, status],
  images: [image],
  cursor: {
    sequence: 1,
    firstRead: { startedAt: 5, position: null, done: true },
    since: 9,
    keyFields: ['order_number'],
  },
};

interface Circumstances {
  readonly canBeAsked?: boolean;
  readonly memory?: TaskMemory;
  /** When readers can see what is committed. Default at once. */
  readonly visible?: Promise<void>;
}

/** A log of a task whose topics hold this, and what it did, in order. Default nothing. */
async function opened(
  failure?: Error,
  held: readonly (TailMessage & { topic: string })[] = [],
  { canBeAsked = true, memory, visible = Promise.resolve() }: Circumstances = {},
) {
  const kept: TaskMemory[] = [];
  const done: (Message[] | string)[] = [];
  let fails = false;
  const endOf = (topic: string) => BigInt(held.filter((message) => message.topic === topic).length);
  const broker: TransactionalLog = {
    open: () => {
      done.push('open');
      return Promise.resolve({
        producer: { producerId: 1n, epoch: 0 },
        commit: (messages) => {
          done.push([...messages]);
          return fails ? Promise.reject(failure!) : Promise.resolve(new Map());
        },
        awaitVisible: () => {
          done.push('visible');
          return visible;
        },
        bounds: (topic) => broker.bounds(topic),
        close: () => Promise.resolve(),
      });
    },
    clusterId: () => Promise.resolve('cluster'),
    ends: (topic) => Promise.resolve(new Map([[0, endOf(topic)]])),
    bounds: (topic) => Promise.resolve(new Map([[0, { low: 0n, high: endOf(topic) }]])),
    readTail: ({ topic, from, onMessages }) =>
      onMessages(
        held.filter(
          (message) => message.topic === topic && BigInt(message.offset) >= (from.get(0) ?? 0n),
        ),
      ),
    compacted: (topic, bounds) =>
      new CompactedView<StampedMessage>((_, onMessages) => {
        const found = held.filter((message) => message.topic === topic);
        onMessages(found.map((message) => ({ ...message, timestamp: '0' })));
        return Promise.resolve();
      }).asOf(bounds),
  };
  const store: Partial<TaskStore> = {
    memory: () => memory,
    count: () => 0,
    storedKeys: () => ({ keys: [], next: undefined }),
    sequence: () => undefined,
    put: (images, now) => {
      kept.push(now);
      done.push(`stored ${images.length}`);
      return Promise.resolve();
    },
  };
  const log = await openCheckpoint({
    log: broker,
    store: store as TaskStore,
    names: {
      task: TASK,
      topic: 'wine.orders',
      cursorTopic: 'wine.cursors',
      transactionalId: 'cellarstream.wine.estate.orders',
    },
    instance: 'this one',
    readImage: (event) =>
      Promise.resolve({ sequence: Number(event.toString().split(' ')[1]), image: null }),
    claimState: {},
    canRequestRecords: canBeAsked,
    scheduler: asyncScheduler,
  });
  done.length = 0; // it has claimed the task
  fails = failure !== undefined;
  return { log, done, kept };
}

const cursorIn = (messages: readonly Message[]) =>
  messages
    .filter(({ topic, key }) => topic === 'wine.cursors' && key === TASK)
    .map(({ value }) => JSON.parse(value!.toString()) as Cursor);

describe('a commit of a task', () => {
  it('is one: events and the cursor that says so, together; images after it', async () => {
    const { log, done } = await opened();
    await log.commit(batch);
    const [messages, ...rest] = done;
    expect(rest).toEqual(['visible', 'stored 1']);
    expect(messages).toEqual([event, status, expect.objectContaining({ topic: 'wine.cursors' })]);
    expect(cursorIn(messages as Message[])).toEqual([
      {
        version: 1,
        instance: 'this one',
        generation: 1,
        heldSince: expect.any(Number),
        ...batch.cursor,
        partitions: 1,
        starts: {},
        ends: { 0: '0' },
        // sha256 of '7', a newline and '1'
        live: { sequence: 1, losses: 0, partitions: [{ records: 1, digest: DIGEST }] },
      },
    ]);
    expect(log.cursor).toMatchObject(batch.cursor);
  });

  it('is over when readers can see it, and stores the images meanwhile', async () => {
    let seen = () => undefined as void;
    const visible = new Promise<void>((resolve) => (seen = resolve));
    const { log, done } = await opened(undefined, [], { visible });
    let isOver = false;
    const commit = log.commit(batch).then(() => (isOver = true));
    await vi.waitFor(() => expect(done.at(-1)).toBe('stored 1'));
    expect(isOver).toBe(false);
    seen();
    await commit;
  });

  it('without an event is waited for by nobody', async () => {
    const { log, done } = await opened();
    await log.commit({ ...batch, messages: [], images: [] });
    expect(done).not.toContain('visible');
  });

  it('that fails is not made again, and leaves images and cursor as they were', async () => {
    const failure = new CellarstreamError('COMMIT_FAILED', 'nobody knows');
    const { log, done } = await opened(failure);
    await expect(log.commit(batch)).rejects.toBe(failure);
    expect(done).toHaveLength(1);
    expect(log.cursor).toMatchObject({ sequence: 0, since: null });
  });
});

describe('a task that is taken over', () => {
  describe('while its newest cursor is hidden', () => {
    // Behind the beginning of another task's open transaction nothing of the cursors can be read.
    const none = { records: 0, digest: '0'.repeat(16) };
    const live = { sequence: 4, losses: 0, partitions: [none] };
    const cursor = JSON.stringify({ ...newCursor('another'), sequence: 4, live });
    const message = (topic: string, offset: string, key: string, value: string) => {
      const partition = 0;
      return { topic, partition, offset, key: Buffer.from(key), value: Buffer.from(value) };
    };
    const held = [
      message('wine.cursors', '0', TASK, cursor),
      message('wine.orders', '0', '7', 'event 9'),
      message('wine.orders', '1', '8', 'event 8'),
    ];
    /** The store has read so much of the topic. */
    const memory = (end: string, whole: number, found: number): TaskMemory => ({
      ...{ home: '4 cluster wine.orders', ends: { 0: end }, cursorEnd: '1', cursor },
      ...{ whole, found, schemaIds: [], sweep: null },
    });

    it('goes on behind the last sequence that it reads', async () => {
      const { log } = await opened(undefined, held);
      expect(log.cursor.sequence).toBe(9);
    });

    it.each([
      ['was brought up to it', memory('2', 9, 0)],
      ['was to be brought up to it, which was cut short', memory('2', 7, 2)],
    ])('goes on behind the last sequence of its store, which %s', async (_, stored) => {
      const { log, kept } = await opened(undefined, held, { memory: stored });
      expect(log.cursor.sequence).toBe(9);
      expect(kept.at(-1)).toMatchObject({ whole: 9 });
    });
  });

  describe('by a process with a store of before', () => {
    const live = { sequence: 0, losses: 0, partitions: [{ records: 0, digest: '0'.repeat(16) }] };
    const cursor = { ...newCursor('another'), generation: 4, live };
    const message = {
      topic: 'wine.cursors',
      partition: 0,
      offset: '0',
      key: Buffer.from(TASK),
      value: Buffer.from(JSON.stringify(cursor)),
    };
    const keptAt = 1_000;
    const third = { number: 3, beganAt: 800, at: 900 };
    const proving = [third];
    const remembered = (sweep: object, sweepGeneration?: number): TaskMemory => ({
      ...{ home: '4 cluster wine.orders', ends: {}, cursorEnd: '1', whole: 0, found: 0 },
      ...{ cursor: JSON.stringify(cursor), schemaIds: [], sweep: JSON.stringify(sweep) },
      ...(sweepGeneration !== undefined && { sweepGeneration }),
    });
    const sweep = { ...NO_SWEEP, number: 3, proving, keptAt };

    it('goes on with the proofs that were begun', async () => {
      const options = { canBeAsked: false, memory: remembered(sweep, 4) };
      const { log, kept } = await opened(undefined, [message], options);
      const now = log.sweep.keptAt;
      expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
      expect(log.sweep).toEqual({
        ...sweep,
        proving: [{ ...third, beganAt: now - 200, at: now - 100 }],
        keptAt: now,
      });
      expect(kept.at(-1)).toMatchObject({ sweep: JSON.stringify(log.sweep), sweepGeneration: 5 });
    });

    it.each([
      ['another process has had the list since', remembered(sweep, 3)],
      ['nobody knows who had it', remembered(sweep)],
    ])('begins them anew where %s', async (_, memory) => {
      const { log } = await opened(undefined, [message], { canBeAsked: false, memory });
      expect(log.sweep).toMatchObject({ number: 3, proving: [], askedUpTo: null, askedAt: null });
    });
  });
});
