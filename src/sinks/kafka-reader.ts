import type { Kafka, KafkaMessage } from 'kafkajs';
import { ReplaySubject } from 'rxjs';
import type { Offsets } from './broker.ts';
import type { PartitionAnswer } from './fetch-answer.ts';
import { fetchLoops } from './fetch-loops.ts';
import { isOutOfRange } from './kafka-fetcher.ts';
import { committedBatches, messagesOf, recordBatches } from './record-batches.ts';
import { refuseLoss } from './refuse-loss.ts';

/** What of a partition has been read, in one go. */
export interface PartitionBatch {
  readonly partition: number;
  /** Committed ones, in order; none comes twice. */
  readonly messages: readonly KafkaMessage[];
  /** The offset to go on at: behind markers and gaps too. */
  readonly next: bigint;
}

export interface ReaderOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /** By partition, the first offset to read. Every partition is here. */
  readonly from: Offsets;
  /** By partition, the offset to end before: no further than it can be read now. */
  readonly ends: Offsets;
  /** Ends a partition sooner, before its first message of this time or later, ms since 1970. */
  readonly before?: number;
  /** Goes on behind the ends for ever, with partitions that are added as well. Default false. */
  readonly follow?: boolean;
  /** Whether a Kafka that goes away is waited for in silence, or is an error. Default it is waited for. */
  readonly isPatient?: boolean;
  /** Takes what was read; it may not wait, but call {@link TopicReader.pause}. */
  readonly onBatch: (batch: PartitionBatch) => void;
  /** Called once, when `onBatch` has had all up to the ends. */
  readonly onCaughtUp?: () => void;
}

export interface TopicReader {
  /** Resolves at the ends, unless it follows; rejects when it can't go on. */
  readonly done: Promise<void>;
  /** Reads no more of a partition until it is resumed. */
  pause(partition: number): void;
  resume(partition: number): void;
  /** Resolves when nothing is left of it here and at the broker. */
  close(): Promise<void>;
}

/**
 * Reads a topic from one set of offsets to another, `read_committed`, without a consumer group: where
 * it is only the reader knows.
 */
export function openReader(options: ReaderOptions): TopicReader {
  const { kafka, topic, from, ends, before = Infinity, follow = false, isPatient = true } = options;
  const { onBatch, onCaughtUp } = options;
  /** By partition, the offset to go on at. What was read last is last, so that none is left behind. */
  const next = new Map(from);
  const paused = new Set<number>();
  const behind = new Set(unread(from, ends).keys());
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const done = new Promise<void>((whenDone, whenFailed) => {
    resolve = whenDone;
    reject = whenFailed;
  });
  done.catch(() => undefined); // also where nobody waits for it any more

  const isWanted = (partition: number) =>
    (follow || behind.has(partition)) && !paused.has(partition);
  const wanted = (led: readonly number[]): Offsets => {
    for (const each of led) if (follow && !next.has(each)) next.set(each, 0n); // was added meanwhile
    return new Map([...next].filter(([each]) => led.includes(each) && isWanted(each)));
  };
  const finish = () => {
    onCaughtUp?.();
    if (!follow) resolve();
  };
  const moveTo = (partition: number, offset: bigint) => {
    next.delete(partition);
    next.set(partition, offset);
    if (!behind.has(partition) || offset < ends.get(partition)!) return;
    behind.delete(partition);
    if (behind.size === 0) finish();
  };

  const prepare = async (answer: PartitionAnswer, at: bigint, hasAll: boolean) => {
    const { partition, aborted, lastStableOffset } = answer;
    if (isOutOfRange(answer)) return refuseLoss({ kafka, topic, partition, at });
    const batches = recordBatches(answer.records);
    const last = batches.at(-1);
    let after = last ? BigInt(last.lastOffset) + 1n : at;
    if (hasAll && !last && lastStableOffset > at) after = lastStableOffset; // compaction has left nothing
    const end = follow ? undefined : ends.get(partition);
    const committed = committedBatches(batches, aborted);
    const [begin, stop] = [Number(at), Number(end ?? Infinity)];
    let messages: KafkaMessage[] = (await Promise.all(committed.map(messagesOf)))
      .flat() // the first batch may begin before the offset that was asked for
      .filter(({ offset }) => Number(offset) >= begin && Number(offset) < stop);
    const late = messages.findIndex(({ timestamp }) => Number(timestamp) >= before);
    if (late >= 0 && end !== undefined) {
      messages = messages.slice(0, late);
      after = end; // what is between is not wanted
    }
    return { partition, messages, next: after };
  };
  const take = (batch: PartitionBatch) => {
    const { partition, next: after } = batch;
    if (!isWanted(partition) || after <= next.get(partition)!) return;
    onBatch(batch);
    moveTo(partition, after);
  };

  const leave$ = new ReplaySubject<void>(1);
  const loops =
    follow || behind.size > 0
      ? fetchLoops({
          kafka,
          topic,
          isPatient,
          leave$,
          wanted,
          prepare: (answers, asked) => {
            // Brokers fill an answer in the order of the request, up to its size.
            const isEmpty = answers.every(({ records }) => records.length === 0);
            const [first] = asked.keys();
            const all = answers.map((each) => {
              const { partition } = each;
              return prepare(each, asked.get(partition)!, isEmpty || partition === first);
            });
            return Promise.all(all);
          },
          take: (batches) => batches.forEach(take),
        })
      : undefined;
  loops?.done.catch(reject);
  if (behind.size === 0) finish();

  return {
    done,
    pause: (partition) => void paused.add(partition),
    resume: (partition) => {
      paused.delete(partition);
      loops?.wake();
    },
    close: async () => {
      leave$.next();
      await loops?.done.catch(() => undefined); // `done` has it
    },
  };
}

/** The ends of those partitions that have something before them. */
export function unread(from: Offsets, ends: Offsets): Map<number, bigint> {
  return new Map([...ends].filter(([partition, end]) => end > from.get(partition)!));
}
