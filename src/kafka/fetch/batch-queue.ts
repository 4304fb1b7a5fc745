// Queues of fetched batches: in the order of their arrival, or merged by timestamp.

import type { Offsets } from '../log.ts';
import { unreadEnds } from './kafka-reader.ts';
import type { PartitionBatch } from './kafka-reader.ts';

export interface BatchQueue {
  put(batch: PartitionBatch): void;
  /**
   * Removes and returns the next messages, all from one partition: the batch that is next, or its beginning if the queue's order continues
   * with another partition before the batch ends. Undefined while no batch is ready.
   */
  take(): PartitionBatch | undefined;
  /** Number of queued batches of this partition, without batches that contain no messages. */
  waiting(partition: number): number;
  readonly isEmpty: boolean;
}

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
 * Creates a queue that merges partitions by timestamp; at equal timestamps the lower partition number comes first. A batch is ready once
 * every partition either has a batch in the queue or has reached its offset in `ends`, so that no older message can follow. After its end
 * offset a partition must receive no more batches.
 */
export function timeOrder(from: Offsets, ends: Offsets): BatchQueue {
  const queues = new Map<number, Queued[]>();
  const behind = unreadEnds(from, ends);

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

/** A queued batch. Its messages before the index `at` have been taken. */
interface Queued {
  readonly batch: PartitionBatch;
  at: number;
}

/**
 * Returns the timestamp of the message at index `at`, in epoch ms. For an empty batch, which has none, returns -Infinity, so that the batch
 * is taken first.
 */
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
