// Reads a topic from one set of offsets to another without a consumer group; no message is skipped silently.

import type { Kafka } from 'kafkajs';
import { ReplaySubject } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Offsets, Isolation } from '../log.ts';
import { MalformedBytes } from './codecs.ts';
import type { PartitionResponse, FetcherOptions } from './kafka-fetcher.ts';
import { fetchLoops } from './fetch-loops.ts';
import { isOutOfRange } from './kafka-fetcher.ts';
import { committedBatches, isDataBatch, messagesOf, recordBatches } from './record-batches.ts';
import type { LogMessage } from './record-batches.ts';
import { topicBounds, topicSettings } from '../client/topic-facts.ts';

/** Consecutive messages of one partition, and the offset that follows them. */
export interface PartitionBatch {
  readonly partition: number;
  /** Messages in the order of their offsets; none is delivered twice. */
  readonly messages: readonly LogMessage[];
  /** Offset at which to continue: after the messages, and after transaction markers and gaps that follow them. */
  readonly next: bigint;
}

/** The offsets of a topic to read, by partition. */
export interface Range {
  /** First offset to read, for every partition. */
  readonly from: Offsets;
  /** Offset before which to end, by partition. It must not be after the end of what can be read when the reader is opened. */
  readonly ends: Offsets;
  /** A partition also ends before its first message with this timestamp or a later one, in ms since 1970. Default: no limit. */
  readonly before?: number;
}

export interface ReaderOptions extends FetcherOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly range: Range;
  /** Whether to continue past the end offsets without limit, also with partitions that are added to the topic. Default false. */
  readonly follow?: boolean;
  /**
   * Whether outages of Kafka after the first connection are retried without limit and without a report; otherwise they are an error.
   * Default true.
   */
  readonly retriesOutages?: boolean;
  /** Receives each batch, synchronously. A slow consumer calls {@link TopicReader.pause}. */
  readonly onBatch: (batch: PartitionBatch) => void;
  /** Called once, when `onBatch` has received all messages before the end offsets. */
  readonly onCaughtUp?: () => void;
}

export interface TopicReader {
  /** Resolves when the end offsets of all partitions are reached, never with `follow`; rejects with an error that is not retried. */
  readonly done: Promise<void>;
  /** Stops reading a partition until it is resumed. A response in flight is dropped, and fetched again later. */
  pause(partition: number): void;
  resume(partition: number): void;
  /** Stops reading; resolves when the connections are closed. */
  close(): Promise<void>;
}

/** Reads a topic from one set of offsets to another without a consumer group: no offsets are committed to Kafka. */
export function openReader(options: ReaderOptions): TopicReader {
  const { kafka, topic, follow = false, retriesOutages = true, isolation = 'committed' } = options;
  const { onBatch, onCaughtUp, waitMs } = options;
  const { from, ends, before = Infinity } = options.range;
  /** Next offset to read, by partition. The partition that was read last comes last, so that all of them are fetched in turn. */
  const next = new Map(from);
  const paused = new Set<number>();
  const behind = new Set(unreadEnds(from, ends).keys());
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const done = new Promise<void>((whenDone, whenFailed) => {
    resolve = whenDone;
    reject = whenFailed;
  });
  done.catch(() => undefined); // must not go unhandled if the caller does not await it

  const isWanted = (partition: number) =>
    (follow || behind.has(partition)) && !paused.has(partition);
  const nextOffsets = (partitions: Iterable<number>): Offsets => {
    if (follow) for (const each of partitions) if (!next.has(each)) next.set(each, 0n); // a partition that was added
    return new Map([...next].filter(([each]) => isWanted(each)));
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

  const isCompacted = async () => {
    const settings = await topicSettings({ kafka }, topic, ['cleanup.policy']);
    return settings.get('cleanup.policy')?.includes('compact') ?? false;
  };
  /** Number of consecutive empty responses, by partition, where messages should exist; see {@link MAX_EMPTY_RESPONSES}. */
  const nothing = new Map<number, number>();
  const prepare = async (
    answer: PartitionResponse,
    at: bigint,
    hadRoom: boolean,
  ): Promise<FetchedBatch> => {
    const { partition, records } = answer;
    const readable = isolation === 'committed' ? answer.lastStableOffset : answer.highWatermark;
    if (isOutOfRange(answer)) return throwOffsetOutOfRange({ kafka, topic, partition, at });
    if (records.length > 0) {
      nothing.delete(partition);
      const read = await readableContent(topic, answer, at, isolation);
      if (!read && hadRoom) throw unreadableBatchError(topic, partition, at);
      return { partition, at, messages: [], next: at, ...read };
    }
    // A log that ends before the requested end may be of a recreated topic, which does not have the requested messages.
    const end = follow ? undefined : ends.get(partition);
    const isShort = end !== undefined && readable < end;
    const isSuspicious = isShort || (hadRoom && readable > at);
    const times = isSuspicious ? (nothing.get(partition) ?? 0) + 1 : 0;
    if (isShort && times === MAX_EMPTY_RESPONSES)
      return throwOffsetOutOfRange({ kafka, topic, partition, at: end });
    const isOver = times === MAX_EMPTY_RESPONSES && (await isCompacted());
    nothing.set(partition, times % MAX_EMPTY_RESPONSES);
    return { partition, at, messages: [], next: isOver ? readable : at };
  };
  const take = ({ partition, at, messages, next: read }: FetchedBatch) => {
    // The partition may have been paused, or fetched from another leader, while this response was in flight.
    if (!isWanted(partition) || at !== next.get(partition) || read === at) return;
    const end = follow ? undefined : ends.get(partition);
    const batch =
      end === undefined ? { messages, next: read } : truncateTo(end, before, messages, read);
    onBatch({ partition, ...batch });
    moveTo(partition, batch.next);
  };

  const leave$ = new ReplaySubject<void>(1);
  const loops =
    follow || behind.size > 0
      ? fetchLoops({
          kafka,
          topic,
          isolation,
          waitMs,
          retriesOutages,
          leave$,
          nextOffsets,
          prepare: (answers, asked) => {
            const room = partitionsWithCapacity(answers, asked);
            return Promise.all(
              answers.map((each) =>
                prepare(each, asked.get(each.partition)!, room.has(each.partition)),
              ),
            );
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
      await loops?.done.catch(() => undefined); // reported by `done`
    },
  };
}

/** A decoded response for one partition, and the offset `at` that was requested. */
interface FetchedBatch extends PartitionBatch {
  readonly at: bigint;
}

/**
 * Number of consecutive empty responses for a partition, each after the broker's full wait, after which its messages count as deleted:
 * compaction has removed all messages up to the end, or the topic was recreated and is shorter than requested. Too small: a broker that
 * can't reach its remote storage (which has no compacted topics), or a new leader that still reports an earlier end, is mistaken for that.
 */
const MAX_EMPTY_RESPONSES = 8;

/**
 * Returns the partitions for which a fetch response had space. Brokers fill a response in the order of the request, and the first partition
 * with records gets at least one batch, however large. So there was space for that partition and for all before it.
 */
function partitionsWithCapacity(
  answers: readonly PartitionResponse[],
  asked: Offsets,
): ReadonlySet<number> {
  const byPartition = new Map(answers.map((answer) => [answer.partition, answer]));
  const room = new Set<number>();
  for (const partition of asked.keys()) {
    room.add(partition);
    if (byPartition.get(partition)?.records.length !== 0) break;
  }
  return room;
}

/** Decodes the messages of a fetch response for one partition, from the offset `at` on; undefined if it contains no complete batch. */
async function readableContent(
  topic: string,
  { partition, records, aborted }: PartitionResponse,
  at: bigint,
  isolation: Isolation,
) {
  const batches = recordBatches(records);
  const last = batches.at(-1);
  if (!last) return undefined;
  const wanted =
    isolation === 'committed' ? committedBatches(batches, aborted) : batches.filter(isDataBatch);
  const messages = await Promise.all(
    wanted.map((batch) =>
      messagesOf(batch).catch((error: unknown) => {
        throw malformed(error, topic, partition, batch.baseOffset);
      }),
    ),
  );
  const first = Number(at); // the first batch may begin before the requested offset
  return {
    messages: messages.flat().filter(({ offset }) => Number(offset) >= first),
    next: BigInt(last.lastOffset) + 1n,
  };
}

/** Drops messages from offset `end` on, and from the first message with a timestamp of at least `before` on (ms since 1970). */
function truncateTo(end: bigint, before: number, messages: readonly LogMessage[], next: bigint) {
  const inside = messages.filter(({ offset }) => Number(offset) < Number(end));
  const late = inside.findIndex(({ timestamp }) => Number(timestamp) >= before);
  if (late < 0) return { messages: inside, next };
  return { messages: inside.slice(0, late), next: end }; // messages up to `end` are skipped
}

function unreadableBatchError(topic: string, partition: number, at: bigint): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `the batch at offset ${at} of partition ${partition} of ${topic} is incomplete: continue at a later offset`,
    { context: { concerns: 'topic', topic, partition } },
  );
}

function malformed(error: unknown, topic: string, partition: number, offset: number): unknown {
  if (!(error instanceof MalformedBytes)) return error;
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `the batch at offset ${offset} of partition ${partition} of ${topic} can't be read (${error.message}): continue at a later offset`,
    { cause: error, context: { concerns: 'topic', topic, partition } },
  );
}

/** Returns the end offsets of those partitions whose first offset to read (`from`) is before their end. */
export function unreadEnds(from: Offsets, ends: Offsets): Map<number, bigint> {
  return new Map([...ends].filter(([partition, end]) => end > from.get(partition)!));
}

/** The next offset to read in a partition, and the cluster to request the partition's bounds from. */
interface ReadPosition {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly partition: number;
  readonly at: bigint;
}

/**
 * Throws an error that says why a broker reports the next offset as out of range. Deleted messages must not be skipped silently.
 *
 * @throws CellarstreamError `POSITION` if the next message was deleted by retention, or the topic was recreated; `KAFKA_UNREACHABLE` if the
 * topic's bounds, requested again, do contain the offset.
 */
async function throwOffsetOutOfRange(position: ReadPosition): Promise<never> {
  const { kafka, topic, partition, at } = position;
  const bounds = await topicBounds({ kafka }, topic);
  const { low, high } = bounds.get(partition) ?? { low: 0n, high: 0n };
  if (low > at) throw recordsDeletedError(position, low);
  if (high < at) throw madeAnew(position, high);
  throw new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `the brokers do not agree whether partition ${partition} of ${topic} has an offset ${at}`,
    { context: { topic, partition } },
  );
}

function recordsDeletedError({ topic, partition, at }: ReadPosition, low: bigint) {
  return new CellarstreamError(
    'POSITION',
    `offsets ${at} to ${low - 1n} of partition ${partition} of ${topic} were deleted before they were read: begin at ${low} or later, and raise the topic's retention.ms`,
    { context: { topic, partition } },
  );
}

function madeAnew({ topic, partition, at }: ReadPosition, end: bigint) {
  return new CellarstreamError(
    'POSITION',
    `partition ${partition} of ${topic} ends at offset ${end}, before the requested offset ${at}: the topic was deleted and recreated. Begin at its beginning`,
    { context: { topic, partition } },
  );
}
