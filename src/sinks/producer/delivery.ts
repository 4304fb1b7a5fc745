// Sends batches to the leaders of their partitions, each exactly once.

import type { Brokers } from '../../kafka/client/brokers.ts';
import type { Patience } from '../../kafka/client/patience.ts';
import type { PartitionBatches } from './record-batch.ts';
import { produce } from './calls.ts';
import { nameOf, CallUnanswered, CallNotSent } from '../../kafka/client/protocol.ts';
import type { Address } from '../../kafka/client/protocol.ts';
import type { ProducerIdentity } from '../sink.ts';
import type { Leaders } from './leaders.ts';
import {
  errorAction,
  missingPartitionError,
  noLeaderError,
  partitionError,
} from '../../kafka/client/protocol-errors.ts';
import { recordBatch } from './record-batch.ts';

interface DeliveryOptions {
  readonly brokers: Brokers;
  readonly leaders: Leaders;
  /** Transactional id; null for a producer without transactions. */
  readonly transactionalId: string | null;
  readonly identity: ProducerIdentity;
  readonly sequences: Sequences;
  readonly patience: Patience;
  /** Timestamp of the commit, in epoch ms. A message's `timestampOffset` is added to it. */
  readonly timestamp: number;
}

/** A partition whose batches were all written, with the offset after the last one. */
export interface Delivered {
  readonly topic: string;
  readonly partition: number;
  /** Offset after the last message that was written to the partition; undefined if the partition leader did not report it. */
  readonly end: bigint | undefined;
}

interface DeliveryResult {
  readonly delivered: readonly Delivered[];
  /** Whether a request got no response, or none for a batch. If so, a late copy of the request may still reach the broker. */
  readonly lateCopyPossible: boolean;
}

/**
 * How long a partition leader may wait for the other replicas to store a batch, in ms. Must be shorter than the response timeout, or a slow
 * leader counts as unreachable.
 */
const REPLICATION_MS = 8_000;

/**
 * Sends each batch to the leader of its partition. Several leaders get batches in parallel; a partition gets one batch at a time. After a
 * transient error or without a response, a batch is sent again with the same bytes and sequence number. The leader thus detects duplicates.
 *
 * @throws the error of a batch if no retry can resolve it, or if `options.patience` allows no further retry. It is then unknown which of
 * the batches were written.
 */
export function deliver(
  batches: readonly PartitionBatches[],
  options: DeliveryOptions,
): Promise<DeliveryResult> {
  return new Delivery(options).run(batches);
}

/** A batch that is being sent. The bytes of `batch` never change, also when it is sent again. */
interface PendingBatch {
  readonly batches: PartitionBatches;
  /** Index of this batch in `batches.batches`, the batches of its partition. */
  readonly index: number;
  readonly count: number;
  readonly batch: Buffer;
}

interface BatchFailure {
  readonly error: unknown;
  /** Whether another broker may have become the leader of the batch's partition. */
  readonly hasMoved: boolean;
}

/**
 * Delivery of all batches of one commit, in passes. In a pass, each partition gets at most one batch: the batch that failed in the previous
 * pass, or else its next one. After a failure, the next pass begins after a pause.
 */
class Delivery {
  readonly #options: DeliveryOptions;
  readonly #delivered: Delivered[] = [];
  #lateCopyPossible = false;
  /** Batches to be sent next, at the same time: at most one for each partition. */
  #next: PendingBatch[] = [];
  #failures: BatchFailure[] = [];

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  async run(all: readonly PartitionBatches[]): Promise<DeliveryResult> {
    const { leaders, patience } = this.#options;
    for (const batches of all) this.#add(batches, 0);
    while (this.#next.length > 0) {
      this.#failures = [];
      await this.#sendWaiting();
      const [first] = this.#failures;
      if (!first) continue;
      await patience.wait(first.error);
      if (this.#failures.some(({ hasMoved }) => hasMoved)) {
        await leaders.refresh().catch((error: unknown) => patience.wait(error));
      }
    }
    return { delivered: this.#delivered, lateCopyPossible: this.#lateCopyPossible };
  }

  /**
   * Adds the batch at `index` of a partition's batches to `#next`, the batches that are sent next. Returns false if the partition has no
   * batch at this index.
   */
  #add(batches: PartitionBatches, index: number): boolean {
    const records = batches.batches[index];
    if (!records) return false;
    const { sequences, identity, transactionalId, timestamp } = this.#options;
    const { count } = records;
    const sequence = sequences.next(batches.topic, batches.partition, count);
    const isTransactional = transactionalId !== null;
    const batch = recordBatch(records, { ...identity, sequence, isTransactional, timestamp });
    this.#next.push({ batches, index, count, batch });
    return true;
  }

  async #sendWaiting(): Promise<void> {
    const byLeader = new Map<string, readonly [Address, PendingBatch[]]>();
    const waiting = this.#next;
    this.#next = [];
    for (const each of waiting) {
      const { topic, partition } = each.batches;
      const address = this.#options.leaders.leaderOf(topic, partition);
      if (!address) {
        this.#fail([each], noLeaderError(topic, partition), true);
        continue;
      }
      const ofLeader = byLeader.get(nameOf(address)) ?? [address, []];
      byLeader.set(nameOf(address), ofLeader);
      ofLeader[1].push(each);
    }
    // All requests are awaited before an error is thrown: none may be in flight when the transaction is aborted.
    const sent = await Promise.allSettled(
      [...byLeader.values()].map(([address, batches]) => this.#send(address, batches)),
    );
    for (const each of sent) if (each.status === 'rejected') throw each.reason;
  }

  async #send(address: Address, batches: readonly PendingBatch[]): Promise<void> {
    const { brokers, transactionalId } = this.#options;
    let answer;
    try {
      const call = produce(transactionalId, REPLICATION_MS, byTopic(batches));
      answer = await brokers.send(address, call);
    } catch (error) {
      if (!(error instanceof CallUnanswered || error instanceof CallNotSent)) throw error;
      this.#lateCopyPossible ||= error instanceof CallUnanswered;
      this.#fail(batches, error, true);
      return;
    }
    for (const each of batches) {
      const { topic, partition } = each.batches;
      const response = answer
        .find((of) => of.topic === topic)
        ?.partitions.find((of) => of.partition === partition);
      if (response) this.#conclude(each, response.errorCode, response.baseOffset);
      else {
        this.#lateCopyPossible = true;
        this.#fail([each], missingPartitionError(address, 'Produce', topic, partition), true);
      }
    }
  }

  /** Handles the response of a partition leader for one batch. */
  #conclude(sent: PendingBatch, code: number, baseOffset: bigint): void {
    const { topic, partition } = sent.batches;
    const action = errorAction(code);
    if (action === 'done') {
      if (this.#add(sent.batches, sent.index + 1)) return;
      const end = baseOffset < 0n ? undefined : baseOffset + BigInt(sent.count);
      this.#delivered.push({ topic, partition, end });
      return;
    }
    const error = partitionError(code, topic, partition);
    if (action !== 'again' && action !== 'soon' && action !== 'leader') throw error;
    this.#fail([sent], error, action === 'leader');
  }

  #fail(batches: readonly PendingBatch[], error: unknown, hasMoved: boolean): void {
    this.#next.push(...batches);
    this.#failures.push({ error, hasMoved });
  }
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

/** Number of different sequence numbers. After 2^31 - 1, the next sequence number is 0. */
const ALL_SEQUENCES = 2 ** 31;

/** Sequence numbers of one producer identity, by partition. Brokers use them to detect duplicate and missing batches. */
export class Sequences {
  readonly #counts = new Map<string, number>();

  /**
   * Returns the producer's sequence number for the next message that it sends to the partition, and reserves `count` numbers from there on.
   */
  next(topic: string, partition: number, count: number): number {
    const name = `${topic} ${partition}`;
    const first = this.#counts.get(name) ?? 0;
    this.#counts.set(name, (first + count) % ALL_SEQUENCES);
    return first;
  }
}
