import { EventEmitter } from 'node:events';
import type { Batch, Consumer, EachBatchPayload, Kafka } from 'kafkajs';

/** One consumer of a {@link FakeKafka}, as the code under test holds it. */
export interface FakeConsumer {
  /** Where it was told to go on: `partition:offset`, in order. */
  readonly seeks: readonly string[];
  readonly isConnected: boolean;
  /** It has joined its group, for the first time or anew. */
  join(): void;
  /** A batch of these offsets was fetched. */
  give(partition: number, offsets: readonly number[]): Promise<void>;
  /** It can't go on. */
  crash(error: Error): void;
}

/** As much of kafkajs' client as a reader uses; what happens is what a test makes happen. */
export interface FakeKafka {
  readonly kafka: Kafka;
  /** Those that were made and run, the newest last. */
  readonly consumers: readonly FakeConsumer[];
  /** Names of the groups that were deleted. */
  readonly deletedGroups: readonly string[];
}

const EVENTS = {
  GROUP_JOIN: 'join',
  END_BATCH_PROCESS: 'end',
  REQUEST: 'request',
  STOP: 'stop',
  CRASH: 'crash',
};

export function fakeKafka(topic: string): FakeKafka {
  const consumers: FakeConsumer[] = [];
  const deletedGroups: string[] = [];

  const consumer = () => {
    const events = new EventEmitter();
    const seeks: string[] = [];
    let isConnected = false;
    let eachBatch: (payload: EachBatchPayload) => Promise<void>;
    const own = {
      events: EVENTS,
      on: (name: string, listener: (event: unknown) => void) => events.on(name, listener),
      connect: () => Promise.resolve((isConnected = true)),
      subscribe: () => Promise.resolve(),
      run: (config: { eachBatch: typeof eachBatch }) => {
        eachBatch = config.eachBatch;
        consumers.push({
          seeks,
          get isConnected() {
            return isConnected;
          },
          join: () => events.emit(EVENTS.GROUP_JOIN, {}),
          give: async (partition, offsets) => {
            const batch = batchOf(topic, partition, offsets);
            await eachBatch({ batch, pause: () => () => undefined } as unknown as EachBatchPayload);
            const lastOffset = batch.lastOffset();
            events.emit(EVENTS.END_BATCH_PROCESS, { payload: { partition, lastOffset } });
          },
          crash: (error) => {
            events.emit(EVENTS.STOP);
            events.emit(EVENTS.CRASH, { payload: { error } });
          },
        });
        return Promise.resolve();
      },
      seek: ({ partition, offset }: { partition: number; offset: string }) =>
        seeks.push(`${partition}:${offset}`),
      pause: () => undefined,
      resume: () => undefined,
      disconnect: () => Promise.resolve((isConnected = false)),
    };
    return own as unknown as Consumer;
  };
  const admin = () => ({
    connect: () => Promise.resolve(),
    disconnect: () => Promise.resolve(),
    deleteGroups: (names: string[]) => Promise.resolve(void deletedGroups.push(...names)),
  });
  return { kafka: { consumer, admin } as unknown as Kafka, consumers, deletedGroups };
}

function batchOf(topic: string, partition: number, offsets: readonly number[]): Batch {
  const messages = offsets.map((offset) => ({ offset: String(offset), timestamp: '0' }));
  return {
    topic,
    partition,
    messages,
    highWatermark: '1000',
    lastOffset: () => String(offsets.at(-1)),
  } as unknown as Batch;
}
