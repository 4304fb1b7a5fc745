// Fetched batches in the order in which they are handed over: as they came, or by time.

import type { Offsets } from '../sink.ts';
import { unread } from './kafka-reader.ts';
import type { PartitionBatch } from './kafka-reader.ts';

/** Batches that were fetched and not taken yet. */
export interface BatchQueue {
  put(batch: PartitionBatch): void;
  /** The next one, or a part of it; undefined when there is none yet. */
  take(): PartitionBatch | undefined;
  /** How many batches of a partition wait that have messages. */
  waiting(partition: number): number;
  readonly isEmpty: boolean;
}

/** Batches in the order in which they came. */
export function arrivalOrder(): BatchQueue {
  const batches: PartitionBatch[] = [];
  const count = new Map<number, number>();
  const add = ({ partition, messages }: PartitionBatch, more: number) => {
    if (messages.length > 0) count.set(partition, (count.get(partition) ?? 0) + more);
  };
  return {
    put: (batch) => {
      batches.push(batch);
      add(batch, 1);
    },
    take: () => {
      const batch = batches.shift();
      if (batch) add(batch, -1);
      return batch;
    },
    waiting: (partition) => count.get(partition) ?? 0,
    get isEmpty() {
      return batches.length === 0;
    },
  };
}

/**
 * Partitions merged by the time of their messages, up to the ends: as far as these go, a message is
 * taken when there is no older one at the head of any other partition. Of equal times the lower
 * partition is first. Behind the ends partitions are not waited for: one may stay silent for ever.
 */
export function timeOrder(from: Offsets, ends: Offsets): BatchQueue {
  const queues = new Map<number, Queued[]>();
  const behind = unread(from, ends);

  const queue = (partition: number) => {
    let queued = queues.get(partition);
    if (!queued) queues.set(partition, (queued = []));
    return queued;
  };
  const take = (): PartitionBatch | undefined => {
    for (const partition of behind.keys()) if (queue(partition).length === 0) return undefined;
    let first: { partition: number; time: number } | undefined;
    let second = first;
    for (const [partition, [head]] of queues) {
      if (!head) continue;
      const one = { partition, time: timeOf(head, head.at) };
      if (!first || isBefore(one, first)) [first, second] = [one, first];
      else if (!second || isBefore(one, second)) second = one;
    }
    if (!first) return undefined;
    const { partition } = first;
    const queued = queue(partition);
    const head = queued[0]!;
    const { messages } = head.batch;
    const begin = head.at;
    let end = begin;
    while (
      end < messages.length &&
      (!second || isBefore({ partition, time: timeOf(head, end) }, second))
    ) {
      end += 1;
    }
    if (end === messages.length) {
      queued.shift();
      return { ...head.batch, messages: messages.slice(begin) };
    }
    head.at = end;
    const next = BigInt(messages[end]!.offset);
    return { partition, messages: messages.slice(begin, end), next };
  };
  return {
    put: (batch) => {
      const { partition, next } = batch;
      queue(partition).push({ batch, at: 0 });
      const end = behind.get(partition);
      if (end !== undefined && next >= end) behind.delete(partition);
    },
    take,
    waiting: (partition) =>
      (queues.get(partition) ?? []).filter(({ batch }) => batch.messages.length > 0).length,
    get isEmpty() {
      return [...queues.values()].every((queued) => queued.length === 0);
    },
  };
}

/** A batch of which the messages before `at` have been taken. */
interface Queued {
  readonly batch: PartitionBatch;
  at: number;
}

/** What has nothing to show has nothing to wait for, either. */
function timeOf({ batch }: Queued, at: number): number {
  const message = batch.messages[at];
  return message ? Number(message.timestamp) : -Infinity;
}

function isBefore(
  a: { readonly partition: number; readonly time: number },
  b: { readonly partition: number; readonly time: number },
): boolean {
  return a.time < b.time || (a.time === b.time && a.partition < b.partition);
}
