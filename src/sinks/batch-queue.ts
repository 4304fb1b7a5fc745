import type { Offsets } from './broker.ts';
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
  const queues = new Map<number, PartitionBatch[]>();
  const behind = unread(from, ends);

  const queue = (partition: number) => {
    let batches = queues.get(partition);
    if (!batches) queues.set(partition, (batches = []));
    return batches;
  };
  /** What has nothing to show has nothing to wait for, either. */
  const headTime = (partition: number): number => {
    const message = queues.get(partition)?.[0]?.messages[0];
    return message ? Number(message.timestamp) : -Infinity;
  };
  const take = (): PartitionBatch | undefined => {
    for (const partition of behind.keys()) if (queue(partition).length === 0) return undefined;
    const [first, second] = [...queues.keys()]
      .filter((partition) => queue(partition).length > 0)
      .sort((a, b) => headTime(a) - headTime(b) || a - b);
    if (first === undefined) return undefined;
    const batches = queue(first);
    const batch = batches[0]!;
    const { messages } = batch;
    const isLater = ({ timestamp }: { timestamp: string }) => {
      const later = Number(timestamp) - headTime(second!);
      return later > 0 || (later === 0 && first > second!);
    };
    const until = second === undefined ? -1 : messages.findIndex(isLater);
    if (until < 0) return batches.shift();
    const next = BigInt(messages[until]!.offset);
    batches[0] = { ...batch, messages: messages.slice(until) };
    return { partition: first, messages: messages.slice(0, until), next };
  };
  return {
    put: (batch) => {
      const { partition, next } = batch;
      queue(partition).push(batch);
      const end = behind.get(partition);
      if (end !== undefined && next >= end) behind.delete(partition);
    },
    take,
    waiting: (partition) =>
      (queues.get(partition) ?? []).filter(({ messages }) => messages.length > 0).length,
    get isEmpty() {
      return [...queues.values()].every((batches) => batches.length === 0);
    },
  };
}
