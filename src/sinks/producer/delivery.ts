// Sends batches to the leaders of their partitions, each exactly once.

import type { Brokers } from '../../kafka/client/brokers.ts';
import type { Patience } from '../../kafka/client/patience.ts';
import type { PartitionBatches } from './record-batch.ts';
import { produce } from './calls.ts';
import { nameOf, CallUnanswered, CallNotSent } from '../../kafka/client/protocol.ts';
import type { Address } from '../../kafka/client/protocol.ts';
import type { ProducerIdentity } from '../sink.ts';
import type { Leaders } from './leaders.ts';
import { errorAction, noLeaderError, partitionError } from '../../kafka/client/protocol-errors.ts';
import { recordBatch } from './record-batch.ts';

interface DeliveryOptions {
  readonly brokers: Brokers;
  readonly leaders: Leaders;
  /** Null for a producer without transactions. */
  readonly transactionalId: string | null;
  readonly identity: ProducerIdentity;
  readonly sequences: Sequences;
  readonly patience: Patience;
  /** Timestamp of the commit, in ms since 1970, to which records may add a `timestampOffset`. */
  readonly timestamp: number;
}

/** A partition to which all batches have been delivered, and the offset at which they end. */
export interface Delivered {
  readonly topic: string;
  readonly partition: number;
  /** Offset after the last record; undefined if the broker did not report it. */
  readonly end: bigint | undefined;
}

interface Delivery {
  /** The partitions that batches were delivered to, each with its end offset if that is known. */
  readonly delivered: readonly Delivered[];
  /** Whether a request got no response: a late copy of it may still reach the broker. */
  readonly lateCopyPossible: boolean;
}

/** How long a leader may wait for the other replicas to store a batch, in ms. Must be less than the response timeout. */
const REPLICATION_MS = 8_000;

/**
 * Sends batches to the leaders of their partitions: to all leaders in parallel, with one batch of each partition in flight. After a
 * transient error, or without a response, a batch is sent again to the current leader with the same bytes and the same sequence, by which
 * the leader detects duplicates.
 *
 * @throws kafkajs' error for an error code that no retry can resolve, and the errors of `patience` and `leaders`. Then it is unknown which
 * of the other batches were written.
 */
export async function deliver(
  all: readonly PartitionBatches[],
  options: DeliveryOptions,
): Promise<Delivery> {
  const { brokers, leaders, transactionalId, identity, sequences, patience, timestamp } = options;
  const delivered: Delivered[] = [];
  let lateCopyPossible = false;

  const stamped = (batches: PartitionBatches, index: number): PendingBatch | undefined => {
    const records = batches.batches[index];
    if (!records) return undefined;
    const { topic, partition } = batches;
    const sequence = sequences.next(topic, partition, records.count);
    const isTransactional = transactionalId !== null;
    const bytes = recordBatch(records, { ...identity, sequence, isTransactional, timestamp });
    return { batches, index, count: records.count, batch: bytes };
  };

  let waiting = all.flatMap((batches) => stamped(batches, 0) ?? []);
  while (waiting.length > 0) {
    const later: PendingBatch[] = [];
    const troubles: BatchFailure[] = [];
    const judge = (outgoing: PendingBatch, code: number, baseOffset: bigint) => {
      const { topic, partition } = outgoing.batches;
      const meaning = errorAction(code);
      if (meaning === 'done') {
        const next = stamped(outgoing.batches, outgoing.index + 1);
        const end = baseOffset < 0n ? undefined : baseOffset + BigInt(outgoing.count);
        if (next) later.push(next);
        else delivered.push({ topic, partition, end });
        return;
      }
      const error = partitionError(code, topic, partition);
      if (meaning !== 'again' && meaning !== 'soon' && meaning !== 'leader') throw error;
      later.push(outgoing);
      troubles.push({ error, hasMoved: meaning === 'leader' });
    };

    const send = async (address: Address, batches: readonly PendingBatch[]): Promise<void> => {
      let answer;
      try {
        answer = await brokers.send(
          address,
          produce(transactionalId, REPLICATION_MS, byTopic(batches)),
        );
      } catch (error) {
        if (!(error instanceof CallUnanswered || error instanceof CallNotSent)) throw error;
        lateCopyPossible ||= error instanceof CallUnanswered;
        later.push(...batches);
        troubles.push({ error, hasMoved: true });
        return;
      }
      const responses = new Map(
        answer.flatMap(({ topic, partitions }) =>
          partitions.map((each) => [`${topic} ${each.partition}`, each]),
        ),
      );
      for (const each of batches) {
        const { topic, partition } = each.batches;
        const response = responses.get(`${topic} ${partition}`);
        if (!response)
          throw new Error(`the Produce response lacks partition ${partition} of ${topic}`);
        judge(each, response.errorCode, response.baseOffset);
      }
    };

    const { ready, leaderless } = byLeader(waiting, leaders);
    later.push(...leaderless);
    const [one] = leaderless;
    if (one) {
      const { topic, partition } = one.batches;
      troubles.push({ error: noLeaderError(topic, partition), hasMoved: true });
    }
    // All requests are awaited before an error is thrown: none may be in flight when the transaction is aborted.
    const sent = await Promise.allSettled(
      ready.map(([address, batches]) => send(address, batches)),
    );
    for (const each of sent) if (each.status === 'rejected') throw each.reason;

    waiting = later;
    if (troubles.length === 0) continue;
    await patience.wait(troubles[0]!.error);
    if (troubles.some(({ hasMoved }) => hasMoved)) {
      await leaders.refresh().catch((error: unknown) => patience.wait(error));
    }
  }
  return { delivered, lateCopyPossible };
}

/** A batch that is being sent. Its bytes never change. */
interface PendingBatch {
  readonly batches: PartitionBatches;
  /** Index of this batch among the batches of its partition (`batches.batches`). */
  readonly index: number;
  readonly count: number;
  readonly batch: Buffer;
}

interface BatchFailure {
  readonly error: unknown;
  /** Whether another broker may lead the batch's partition by now. */
  readonly hasMoved: boolean;
}

function byLeader(waiting: readonly PendingBatch[], leaders: Leaders) {
  const ready = new Map<string, readonly [Address, PendingBatch[]]>();
  const leaderless: PendingBatch[] = [];
  for (const each of waiting) {
    const address = leaders.leaderOf(each.batches.topic, each.batches.partition);
    if (!address) {
      leaderless.push(each);
      continue;
    }
    const name = nameOf(address);
    const ofLeader = ready.get(name) ?? [address, []];
    ready.set(name, ofLeader);
    ofLeader[1].push(each);
  }
  return { ready: [...ready.values()], leaderless };
}

function byTopic(batches: readonly PendingBatch[]) {
  const topics = new Map<string, { partition: number; batch: Buffer }[]>();
  for (const { batches: of, batch } of batches) {
    const partitions = topics.get(of.topic) ?? [];
    topics.set(of.topic, partitions);
    partitions.push({ partition: of.partition, batch });
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }));
}

/** Number of different sequence numbers that batches can have: after the largest 31-bit number they restart at 0. */
const ALL_SEQUENCES = 2 ** 31;

/** Sequence numbers of one producer identity by partition, by which brokers detect duplicate and missing batches. */
export class Sequences {
  readonly #counts = new Map<string, number>();

  /** Returns the sequence number of the partition's next record, and advances it by `count` records. */
  next(topic: string, partition: number, count: number): number {
    const name = `${topic} ${partition}`;
    const first = this.#counts.get(name) ?? 0;
    this.#counts.set(name, (first + count) % ALL_SEQUENCES);
    return first;
  }
}
