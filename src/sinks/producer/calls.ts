// Requests of a producer, in versions whose responses contain all that a producer needs.

import {
  array,
  compactString,
  createCall,
  int16,
  int32,
  int64,
  int8,
  NO_TAGS,
  string,
} from '../../kafka/client/protocol.ts';
import type { OfTopic } from '../../kafka/client/topic-calls.ts';
import type { ProducerIdentity } from '../sink.ts';

/**
 * Identity of a producer to which no broker has assigned one yet. An InitProducerId request that contains it fences every other producer of
 * the transactional id.
 */
export const NO_PRODUCER: ProducerIdentity = { producerId: -1n, epoch: -1 };

/**
 * Creates an InitProducerId request. The result depends on `own`:
 *
 * - {@link NO_PRODUCER}: the producer gets a new identity.
 * - The producer's current identity: the producer gets the next epoch. If another producer of the transactional id was opened since, the
 *   request fails with PRODUCER_FENCED (KIP-360).
 *
 * @param transactionalId Null for a producer without transactions.
 */
export function initProducerId(
  transactionalId: string | null,
  transactionTimeoutMs: number,
  own: ProducerIdentity,
) {
  return createCall(
    'InitProducerId',
    [compactString(transactionalId), int32(transactionTimeoutMs), identity(own), NO_TAGS],
    (answer) => ({
      errorCode: answer.int16(),
      producerId: answer.int64(),
      epoch: answer.int16(),
    }),
  );
}

export function addPartitionsToTxn(
  transactionalId: string,
  own: ProducerIdentity,
  topics: readonly OfTopic<number>[],
) {
  const added = array(topics, ({ topic, partitions }) => [string(topic), array(partitions, int32)]);
  return createCall(
    'AddPartitionsToTxn',
    [string(transactionalId), identity(own), added],
    (answer) =>
      answer.array(() => ({
        topic: answer.string()!,
        partitions: answer.array(() => ({ partition: answer.int32(), errorCode: answer.int16() })),
      })),
  );
}

/**
 * Creates a Produce request. In the response, `baseOffset` is the offset of a batch's first message; -1 if the partition leader does not
 * report it.
 */
export function produce(
  transactionalId: string | null,
  /** Longest time that a partition leader may wait until all in-sync replicas have the batches, in ms. */
  timeoutMs: number,
  topics: readonly OfTopic<{ readonly partition: number; readonly batch: Buffer }>[],
) {
  const ALL_IN_SYNC = -1;
  return createCall(
    'Produce',
    [
      string(transactionalId),
      int16(ALL_IN_SYNC),
      int32(timeoutMs),
      int32(topics.length),
      // Not encoded with `array`, which would copy the batches once more.
      ...topics.flatMap(({ topic, partitions }) => [
        string(topic),
        int32(partitions.length),
        ...partitions.flatMap(({ partition, batch }) => [
          int32(partition),
          int32(batch.length),
          batch,
        ]),
      ]),
    ],
    (answer) =>
      answer.array(() => ({
        topic: answer.string()!,
        partitions: answer.array(() => {
          const head = { partition: answer.int32(), errorCode: answer.int16() };
          const produced = { ...head, baseOffset: answer.int64() };
          answer.int64(); // log append time
          answer.int64(); // log start offset
          return produced;
        }),
      })),
  );
}

export function endTxn(
  transactionalId: string,
  own: ProducerIdentity,
  outcome: 'commit' | 'abort',
) {
  return createCall(
    'EndTxn',
    [string(transactionalId), identity(own), int8(outcome === 'commit' ? 1 : 0)],
    (answer) => ({ errorCode: answer.int16() }),
  );
}

/**
 * Creates a DescribeTransactions request. In the response, `state` is `PrepareCommit` while the markers of a committed transaction are
 * being written.
 */
export function describeTransaction(transactionalId: string) {
  const ONE = 1;
  return createCall(
    'DescribeTransactions',
    [int8(ONE + 1), compactString(transactionalId), NO_TAGS],
    (answer) => {
      answer.uvarint(); // number of transactions: one
      const errorCode = answer.int16();
      answer.compactString(); // transactional id
      return { errorCode, state: answer.compactString() ?? '' };
    },
  );
}

function identity({ producerId, epoch }: ProducerIdentity): Buffer {
  return Buffer.concat([int64(producerId), int16(epoch)]);
}
