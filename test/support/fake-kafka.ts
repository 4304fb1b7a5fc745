import type { Kafka } from 'kafkajs';
import { batchBytes } from './record-bytes.ts';
import type { PartitionAnswer } from '../../src/sinks/fetch/fetch-answer.ts';

/** A fetch that a broker has been sent and has not answered. */
export interface FakeFetch {
  readonly leader: number;
  /** What is asked for, in order: `partition:offset`. */
  readonly asked: readonly string[];
  /** How long the broker is to wait for something new, ms. */
  readonly waitMs: number;
  answer(...partitions: readonly FakeAnswer[]): void;
  fail(error: Error): void;
}

export type FakeAnswer = Partial<PartitionAnswer> & {
  readonly partition: number;
  /** Of messages, each in a batch of its own. */
  readonly offsets?: readonly number[];
};

/** As much of kafkajs' client as a reader uses; what happens is what a test makes happen. */
export interface FakeKafka {
  readonly kafka: Kafka;
  /** By partition, who leads it. */
  readonly leaders: Map<number, number>;
  /** Connections that were opened, and those that were closed. */
  readonly counts: { opened: number; closed: number };
  /** What comes of connecting, from now on: nothing at all, for ever. */
  refuse: Error | 'silence' | undefined;
  /** `cleanup.policy`. Default compact. */
  policy: string;
  /** The first and last offsets of partitions, as an admin client is told. */
  readonly bounds: Map<number, readonly [low: number, high: number]>;
  /** The next fetch that any broker is sent. */
  nextFetch(): Promise<FakeFetch>;
}

interface Request {
  readonly encode: () => Promise<unknown>;
}

interface Unanswered {
  readonly nodeId: string;
  readonly done: Promise<unknown>;
  readonly reject: (error: Error) => void;
}

/** The cluster's part is what `kafka-fetcher.ts` takes out of kafkajs. */
export function fakeKafka(): FakeKafka {
  const fetches: FakeFetch[] = [];
  const waiting: ((fetch: FakeFetch) => void)[] = [];
  const put = (fetch: FakeFetch) => {
    const first = waiting.shift();
    if (first) first(fetch);
    else fetches.push(fetch);
  };
  const counts = { opened: 0, closed: 0 };
  const leaders = new Map([
    [0, 1],
    [1, 1],
  ]);
  const bounds = new Map<number, readonly [number, number]>();

  const cluster = () => {
    const unanswered = new Set<Unanswered>();
    /** The second of each broker is for fetches. */
    const connection = (isItsFetch: (one: Unanswered) => boolean) => ({
      isConnected: () => true,
      rejectRequests: (error: Error) =>
        [...unanswered].filter(isItsFetch).forEach(({ reject }) => reject(error)),
      disconnect: () => Promise.resolve(),
    });
    let isOpen = false;
    return {
      connect: async () => {
        if (fake.refuse === 'silence') await new Promise(() => undefined);
        if (fake.refuse instanceof Error) throw fake.refuse;
        counts.opened += 1;
        isOpen = true;
      },
      disconnect: async () => {
        // As kafkajs waits for them.
        await Promise.allSettled([...unanswered].map(({ done }) => done));
        if (isOpen) counts.closed += 1;
        isOpen = false;
      },
      connectionPoolBuilder: { build: () => Promise.reject(new Error('nobody asks for one')) },
      addTargetTopic: () => Promise.resolve(),
      refreshMetadataIfNecessary: () => Promise.resolve(),
      findTopicPartitionMetadata: () =>
        [...leaders].map(([partitionId, leader]) => ({ partitionId, leader })),
      findBroker: ({ nodeId }: { readonly nodeId: string }) =>
        Promise.resolve({
          connectionPool: {
            send: ({ request }: { readonly request: Request }) => send(nodeId, request, unanswered),
            pool: [connection(() => false), connection((one) => one.nodeId === nodeId)],
          },
        }),
    };
  };
  const send = async (nodeId: string, request: Request, unanswered: Set<Unanswered>) => {
    const { asked, waitMs } = askedOf(await request.encode());
    let giveUp!: (error: Error) => void;
    const done = new Promise<unknown>((resolve, reject) => {
      const answer = (...partitions: readonly FakeAnswer[]) =>
        resolve({ clientSideThrottleTime: 0, errorCode: 0, partitions: partitions.map(full) });
      giveUp = reject;
      put({ leader: Number(nodeId), asked, waitMs, answer, fail: reject });
    });
    const one = { nodeId, done, reject: giveUp };
    unanswered.add(one);
    return done.finally(() => unanswered.delete(one));
  };
  const admin = () => ({
    connect: () => Promise.resolve(),
    disconnect: () => Promise.resolve(),
    describeConfigs: ({
      resources: [topic],
    }: {
      readonly resources: readonly { readonly name: string }[];
    }) =>
      Promise.resolve({
        resources: [
          {
            resourceName: topic!.name,
            configEntries: [{ configName: 'cleanup.policy', configValue: fake.policy }],
          },
        ],
      }),
    fetchTopicOffsets: () =>
      Promise.resolve(
        [...bounds].map(([partition, [low, high]]) => ({
          partition,
          low: String(low),
          high: String(high),
        })),
      ),
  });
  const fake: FakeKafka = {
    // What kafkajs keeps to itself is in none of its types.
    kafka: { admin, [Symbol('private:Kafka:createCluster')]: cluster } as unknown as Kafka,
    leaders,
    counts,
    bounds,
    refuse: undefined,
    policy: 'compact',
    nextFetch: () => {
      const first = fetches.shift();
      return first ? Promise.resolve(first) : new Promise((resolve) => waiting.push(resolve));
    },
  };
  return fake;
}

function full({ offsets = [], ...answer }: FakeAnswer): PartitionAnswer {
  return {
    errorCode: 0,
    highWatermark: answer.lastStableOffset ?? 0n,
    lastStableOffset: 0n,
    aborted: [],
    records: Buffer.concat(offsets.map((offset) => batchBytes({ records: [{ offset }] }))),
    ...answer,
  };
}

/** The partitions and offsets of an encoded fetch of one topic, and how long it waits. */
function askedOf(encoded: unknown): Pick<FakeFetch, 'asked' | 'waitMs'> {
  const { buffer } = encoded as { readonly buffer: Buffer };
  const waitMs = buffer.readInt32BE(4);
  let at = 4 + 4 + 4 + 4 + 1 + 4 + 4 + 4; // up to the topic's name
  at += 2 + buffer.readInt16BE(at);
  const count = buffer.readInt32BE(at);
  at += 4;
  const asked = Array.from({ length: count }, (_, n) => {
    const from = at + n * 28;
    return `${buffer.readInt32BE(from)}:${buffer.readBigInt64BE(from + 8)}`;
  });
  return { asked, waitMs };
}
