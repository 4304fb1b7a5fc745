// Queues of fetched batches: in the order of their arrival, or merged by timestamp.

import type { Offsets } from '../log.ts';
import { unreadEnds } from './kafka-reader.ts';
import type { PartitionBatch } from './kafka-reader.ts';

export interface BatchQueue {
  put(batch: PartitionBatch): void;
  /**
   * Removes and returns the next messages in the queue's order: a queued batch, or a part of one.
   * Undefined while no batch is ready.
   */
  take(): PartitionBatch | undefined;
  /** Number of queued batches of this partition that contain messages. */
  waiting(partition: number): number;
  readonly isEmpty: boolean;
}

export function arrivalOrder(): BatchQueue {
  const batches: PartitionBatch[] = [];
  return {
    put: (batch) => batches.push(batch),
    take: () => batches.shift(),
    waiting: (partition) =>
      batches.filter((each) => each.partition === partition && each.messages.length > 0).length,
    get isEmpty() {
      return batches.length === 0;
    },
  };
}

/**
 * Creates a queue that merges partitions by timestamp. A batch is ready once every partition has a batch in the queue or has reached its
 * offset in `ends`. After its end offset a partition must receive no more batches.
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
    // An older message could still follow in this partition.
    for (const partition of behind.keys()) if (queue(partition).length === 0) return undefined;
    let first: Head | undefined;
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
      queue(partition).filter(({ batch }) => batch.messages.length > 0).length,
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
 * Returns the timestamp of the message at index `at`, in epoch ms. Returns -Infinity if there is no such message, so that an empty batch is
 * taken first.
 */
function timeOf({ batch }: Queued, at: number): number {
  const message = batch.messages[at];
  return message ? Number(message.timestamp) : -Infinity;
}

interface Head {
  readonly partition: number;
  /** Timestamp of the partition's next message, in epoch ms; -Infinity if the partition's next batch is empty. */
  readonly time: number;
}

function isBefore(a: Head, b: Head): boolean {
  return a.time < b.time || (a.time === b.time && a.partition < b.partition);
}
