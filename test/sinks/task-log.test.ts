import { asyncScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../src/errors.ts';
import type { Broker } from '../../src/sinks/broker.ts';
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

/** A log of a task that nobody had before, and what it did, in order. */
async function opened(failure?: Error) {
  const done: (Message[] | string)[] = [];
  let fails = false;
  const broker: Broker = {
    open: () => {
      done.push('open');
      return Promise.resolve({
        commit: (messages) => {
          done.push([...messages]);
          return fails ? Promise.reject(failure!) : Promise.resolve(new Map());
        },
        close: () => Promise.resolve(),
      });
    },
    clusterId: () => Promise.resolve('cluster'),
    ends: () => Promise.resolve(new Map()),
    readTail: () => Promise.resolve(),
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
    readImage: () => Promise.reject(new Error('there is nothing to read')),
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
      { version: 1, instance: 'this one', generation: 1, ...batch.cursor },
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
