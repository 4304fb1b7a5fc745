import type { Address, Call } from '../client/protocol.ts';
import {
  array,
  compactString,
  int16,
  int32,
  int64,
  int8,
  NO_TAGS,
  string,
} from '../client/protocol.ts';
import type { Isolation, ProducerIdentity } from '../sink.ts';

// The requests of a producer. The versions are those that all brokers from Kafka 2.7 on speak, and that say all that a producer
// has to know.

/** Some partitions of a topic. */
export interface OfTopic<T> {
  readonly topic: string;
  readonly partitions: readonly T[];
}

export interface Metadata {
  /** Names the cluster. */
  readonly clusterId: string;
  readonly brokers: readonly (Address & { readonly id: number })[];
  readonly topics: readonly (OfTopic<Led> & { readonly errorCode: number })[];
}

/** A partition, and the broker that leads it. */
export interface Led {
  readonly partition: number;
  /** -1 where there is none. */
  readonly leader: number;
  /** How often the leader has changed: who says less has not heard of it. */
  readonly leaderEpoch: number;
}

/** Where each broker is, by its id. */
export function addressesIn({ brokers }: Metadata): ReadonlyMap<number, Address> {
  return new Map(brokers.map(({ id, host, port }) => [id, { host, port }]));
}

export function metadata(topics: readonly string[]): Call<Metadata> {
  return {
    name: 'Metadata',
    key: 3,
    version: 7,
    body: Buffer.concat([array(topics, string), int8(0)]), // no topic is made for having been asked for
    read: (answer) => {
      const brokers = answer.array(() => {
        const broker = { id: answer.int32(), host: answer.string()!, port: answer.int32() };
        answer.string(); // its rack
        return broker;
      });
      const clusterId = answer.string() ?? '';
      answer.int32(); // its controller
      const ofTopics = answer.array(() => {
        const head = { errorCode: answer.int16(), topic: answer.string()! };
        answer.int8(); // whether it is internal
        const partitions = answer.array(() => {
          answer.int16(); // an error: then it has no leader
          const found = {
            partition: answer.int32(),
            leader: answer.int32(),
            leaderEpoch: answer.int32(),
          };
          for (let lists = 3; lists > 0; lists--) answer.array(() => answer.int32()); // replicas
          return found;
        });
        return { ...head, partitions };
      });
      return { clusterId, brokers, topics: ofTopics };
    },
  };
}

/** What a leader says of one of its partitions. */
export interface Listed {
  readonly partition: number;
  readonly errorCode: number;
  readonly offset: bigint;
}

/** By the protocol. */
const ISOLATION = { uncommitted: 0, committed: 1 } as const;

/**
 * Where partitions begin, or where what is to be read ends. A leader that is none any more, and has not heard of it, refuses
 * who knows of a newer one (KIP-320).
 */
export function listOffsets(
  which: 'earliest' | 'latest',
  of: { readonly topic: string; readonly led: readonly Led[]; readonly isolation: Isolation },
): Call<readonly Listed[]> {
  const { topic, led, isolation } = of;
  const NO_REPLICA = -1;
  const TIME = { latest: -1n, earliest: -2n };
  return {
    name: 'ListOffsets',
    key: 2,
    version: 4,
    body: Buffer.concat([
      int32(NO_REPLICA),
      int8(ISOLATION[isolation]),
      array([topic], (name) =>
        Buffer.concat([
          string(name),
          array(led, ({ partition, leaderEpoch }) =>
            Buffer.concat([int32(partition), int32(leaderEpoch), int64(TIME[which])]),
          ),
        ]),
      ),
    ]),
    read: (answer) =>
      answer
        .array(() => {
          answer.string(); // the topic
          return answer.array(() => {
            const head = { partition: answer.int32(), errorCode: answer.int16() };
            answer.int64(); // its time
            const offset = answer.int64();
            answer.int32(); // the epoch of the leader that wrote it
            return { ...head, offset };
          });
        })
        .flat(),
  };
}

/** None yet: whoever asks so fences every other producer of the id. */
export const NOBODY: ProducerIdentity = { producerId: -1n, epoch: -1 };

/**
 * A new identity. Who gives its own gets the next epoch of it, unless another producer of the id was
 * opened since: that is PRODUCER_FENCED (KIP-360).
 */
export function initProducerId(options: {
  /** Null without transactions. */
  readonly transactionalId: string | null;
  readonly transactionTimeoutMs: number;
  readonly own: ProducerIdentity;
}): Call<ProducerIdentity & { readonly errorCode: number }> {
  const { transactionalId, transactionTimeoutMs, own } = options;
  return {
    name: 'InitProducerId',
    key: 22,
    version: 4,
    isFlexible: true,
    body: Buffer.concat([
      compactString(transactionalId),
      int32(transactionTimeoutMs),
      identity(own),
      NO_TAGS,
    ]),
    read: (answer) => {
      return { errorCode: answer.int16(), producerId: answer.int64(), epoch: answer.int16() };
    },
  };
}

export function addPartitionsToTxn(
  transactionalId: string,
  own: ProducerIdentity,
  topics: readonly OfTopic<number>[],
): Call<readonly OfTopic<{ readonly partition: number; readonly errorCode: number }>[]> {
  return {
    name: 'AddPartitionsToTxn',
    key: 24,
    version: 1,
    body: Buffer.concat([
      string(transactionalId),
      identity(own),
      array(topics, ({ topic, partitions }) =>
        Buffer.concat([string(topic), array(partitions, int32)]),
      ),
    ]),
    read: (answer) => {
      return answer.array(() => ({
        topic: answer.string()!,
        partitions: answer.array(() => ({
          partition: answer.int32(),
          errorCode: answer.int16(),
        })),
      }));
    },
  };
}

/** What a leader says of a batch. */
export interface Produced {
  readonly partition: number;
  readonly errorCode: number;
  /** Of its first record; -1 where there is none to tell. */
  readonly baseOffset: bigint;
}

export function produce(
  transactionalId: string | null,
  /** Most ms until as many replicas have it as it takes. */
  timeoutMs: number,
  topics: readonly OfTopic<{ readonly partition: number; readonly batch: Buffer }>[],
): Call<readonly OfTopic<Produced>[]> {
  const ALL_IN_SYNC = -1;
  return {
    name: 'Produce',
    key: 0,
    version: 7,
    saysThrottle: 'behind',
    body: Buffer.concat([
      string(transactionalId),
      int16(ALL_IN_SYNC),
      int32(timeoutMs),
      int32(topics.length),
      ...topics.flatMap(({ topic, partitions }) => [
        string(topic),
        int32(partitions.length),
        ...partitions.flatMap(({ partition, batch }) => [
          int32(partition),
          int32(batch.length),
          batch,
        ]),
      ]),
    ]),
    read: (answer) =>
      answer.array(() => ({
        topic: answer.string()!,
        partitions: answer.array(() => {
          const produced = {
            partition: answer.int32(),
            errorCode: answer.int16(),
            baseOffset: answer.int64(),
          };
          answer.int64(); // the broker's time, where that is the topic's
          answer.int64(); // where the log begins
          return produced;
        }),
      })),
  };
}

export function endTxn(
  transactionalId: string,
  own: ProducerIdentity,
  outcome: 'commit' | 'abort',
): Call<{ readonly errorCode: number }> {
  return {
    name: 'EndTxn',
    key: 26,
    version: 1,
    body: Buffer.concat([
      string(transactionalId),
      identity(own),
      int8(outcome === 'commit' ? 1 : 0),
    ]),
    read: (answer) => {
      return { errorCode: answer.int16() };
    },
  };
}

/** How far an id's transaction is: `PrepareCommit` as long as the markers of one that is committed are being written. */
export function describeTransaction(
  transactionalId: string,
): Call<{ readonly errorCode: number; readonly state: string }> {
  const ONE = 1;
  return {
    name: 'DescribeTransactions',
    key: 65,
    version: 0,
    isFlexible: true,
    body: Buffer.concat([int8(ONE + 1), compactString(transactionalId), NO_TAGS]),
    read: (answer) => {
      answer.uvarint(); // how many: it is one
      const errorCode = answer.int16();
      answer.compactString(); // the id
      return { errorCode, state: answer.compactString() ?? '' };
    },
  };
}

function identity({ producerId, epoch }: ProducerIdentity): Buffer {
  const bytes = Buffer.allocUnsafe(8 + 2);
  bytes.writeInt16BE(epoch, bytes.writeBigInt64BE(producerId));
  return bytes;
}
