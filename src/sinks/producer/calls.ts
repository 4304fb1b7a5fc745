// Requests of a producer, in versions that all brokers since Kafka 2.7 support and whose responses contain all that a producer needs.

import type { Call } from '../../kafka/client/protocol.ts';
import {
  array,
  compactString,
  int16,
  int32,
  int8,
  NO_TAGS,
  string,
} from '../../kafka/client/protocol.ts';
import type { OfTopic } from '../../kafka/client/topic-calls.ts';
import type { ProducerIdentity } from '../sink.ts';

/** Identity of a producer that has none yet. An InitProducerId request with it fences every other producer of the transactional id. */
export const NO_PRODUCER: ProducerIdentity = { producerId: -1n, epoch: -1 };

/**
 * Creates an InitProducerId request. With {@link NO_PRODUCER} as `own`, the producer gets a new identity. With its current identity, it
 * gets the next epoch; if another producer of the transactional id was opened since, the request fails with PRODUCER_FENCED (KIP-360).
 */
export function initProducerId(options: {
  /** Transactional id; null for a producer without transactions. */
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

interface Produced {
  readonly partition: number;
  readonly errorCode: number;
  /** Offset of the batch's first message; -1 if the partition leader does not report it. */
  readonly baseOffset: bigint;
}

export function produce(
  transactionalId: string | null,
  /** Longest time that a partition leader may wait until all in-sync replicas have the batches, in ms. */
  timeoutMs: number,
  topics: readonly OfTopic<{ readonly partition: number; readonly batch: Buffer }>[],
): Call<readonly OfTopic<Produced>[]> {
  const ALL_IN_SYNC = -1;
  return {
    name: 'Produce',
    key: 0,
    version: 7,
    throttlePosition: 'behind',
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
          answer.int64(); // log append time
          answer.int64(); // log start offset
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

/**
 * Creates a DescribeTransactions request. In the response, `state` is `PrepareCommit` while the markers of a committed transaction are
 * being written.
 */
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
      answer.uvarint(); // number of transactions: one
      const errorCode = answer.int16();
      answer.compactString(); // transactional id
      return { errorCode, state: answer.compactString() ?? '' };
    },
  };
}

function identity({ producerId, epoch }: ProducerIdentity): Buffer {
  const bytes = Buffer.allocUnsafe(8 + 2);
  bytes.writeInt16BE(epoch, bytes.writeBigInt64BE(producerId));
  return bytes;
}
