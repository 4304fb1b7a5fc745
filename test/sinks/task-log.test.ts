import { asyncScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../src/errors.ts';
import type { Broker, TailMessage } from '../../src/sinks/broker.ts';
import { newCursor } from '../../src/sinks/cursor.ts';
import type { Cursor } from '../../src/sinks/cursor.ts';
import type { Message } from '../../src/sinks/sink.ts';
import { openTaskLog } from '../../src/sinks/task-log.ts';
import type { TaskBatch } from '../../src/sinks/task-log.ts';
import type { ImageUpdate, TaskStore } from '../../src/state/store.ts';

const TASK = 'estate/orders';
const event: Message = { topic: 'wine.orders', key: '7', value: Buffer.from('an event') };
const status: Message = { topic: 'wine.order-status-changes', key: '7', value: Buffer.from('x') };
const image: ImageUpdate = { key: '7', sequence: 1, image: { schemaId: 1, bytes: Buffer.from('') } }; // prettier-ignore
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

/** A log of a task whose topics hold this, and what it did, in order. Default nothing. */
async function opened(failure?: Error, held: readonly (TailMessage & { topic: string })[] = []) {
  const done: (Message[] | string)[] = [];
  let fails = false;
  const endOf = (topic: string) => BigInt(held.filter((message) => message.topic === topic).length);
  const broker: Broker = {
    open: () => {
      done.push('open');
      return Promise.resolve({
        producer: { producerId: 1n, epoch: 0 },
        commit: (messages) => {
          done.push([...messages]);
          return fails ? Promise.reject(failure!) : Promise.resolve(new Map());
        },
        bounds: (topic) => broker.bounds(topic),
        close: () => Promise.resolve(),
      });
    },
    clusterId: () => Promise.resolve('cluster'),
    ends: (topic) => Promise.resolve(new Map([[0, endOf(topic)]])),
    bounds: (topic) => Promise.resolve(new Map([[0, { low: 0n, high: endOf(topic) }]])),
    readTail: ({ topic, onMessages }) =>
      onMessages(held.filter((message) => message.topic === topic)),
  };
  const store: Partial<TaskStore> = {
    memory: () => undefined,
    put: (images) => {
      done.push(`stored ${images.length}`);
      return Promise.resolve();
    },
  };
  const log = await openTaskLog({
    broker,
    store: store as TaskStore,
    task: TASK,
    topic: 'wine.orders',
    cursorTopic: 'wine.cursors',
    transactionalId: 'cellarstream.wine.estate.orders',
    instance: 'this one',
    readImage: (event) =>
      Promise.resolve({ sequence: Number(event.toString().split(' ')[1]), image: null }),
    tenure: {},
    canBeAsked: true,
    scheduler: asyncScheduler,
  });
  done.length = 0; // it has claimed the task
  fails = failure !== undefined;
  return { log, done };
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
    expect(rest).toEqual(['stored 1']);
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
      },
    ]);
    expect(log.cursor).toMatchObject(batch.cursor);
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
  it('goes on behind the last sequence that it reads, though its newest cursor is hidden', async () => {
    // Behind the beginning of another task's open transaction nothing of the cursors can be read.
    const cursor = { ...newCursor('another'), sequence: 4 };
    const message = (topic: string, key: string, value: string) => {
      const partition = 0;
      return { topic, partition, offset: '0', key: Buffer.from(key), value: Buffer.from(value) };
    };
    const held = [
      message('wine.cursors', TASK, JSON.stringify(cursor)),
      message('wine.orders', '7', 'event 9'),
      message('wine.orders', '8', 'event 8'),
    ];
    const { log } = await opened(undefined, held);
    expect(log.cursor.sequence).toBe(9);
  });
});
