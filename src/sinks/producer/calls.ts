// The requests of a producer. The versions are those that all brokers from Kafka 2.7 on speak, and that say all that a producer has to
// know.

import type { Call } from '../client/protocol.ts';
import { array, compactString, int16, int32, int8, NO_TAGS, string } from '../client/protocol.ts';
import type { OfTopic } from '../client/topic-calls.ts';
import type { ProducerIdentity } from '../sink.ts';

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
interface Produced {
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
