// Reads a topic from one set of offsets to another without a consumer group; no message is skipped silently.

import type { Kafka } from 'kafkajs';
import { ReplaySubject } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Offsets, Isolation } from '../log.ts';
import { MalformedBytes } from './codecs.ts';
import type { PartitionResponse, FetcherOptions } from './kafka-fetcher.ts';
import { FetchLoops } from './fetch-loops.ts';
import { isOutOfRange } from './kafka-fetcher.ts';
import { committedBatches, isDataBatch, messagesOf, recordBatches } from './record-batches.ts';
import type { LogMessage } from './record-batches.ts';
import { topicBounds, topicSettings } from '../client/topic-facts.ts';

/** Consecutive messages of one partition, and the offset that follows them. */
export interface PartitionBatch {
  readonly partition: number;
  /** Messages in the order of their offsets. No message is delivered twice. */
  readonly messages: readonly LogMessage[];
  /** Offset at which to continue reading: after the messages, and after the transaction markers and gaps that follow them. */
  readonly next: bigint;
}

/** Offsets at which to begin and end reading a topic, by partition. */
export interface Range {
  /** First offset to read, for every partition. */
  readonly from: Offsets;
  /**
   * Offset before which to end reading, by partition. Must not be larger than the end of the readable messages at the time when the reader
   * is opened.
   */
  readonly ends: Offsets;
  /**
   * Timestamp before which to end reading, in epoch ms. Each partition is read up to its first message with this timestamp or a later one.
   * Default: no limit. Ignored with `follow`.
   */
  readonly before?: number;
}

export interface ReaderOptions extends FetcherOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly range: Range;
  /** Whether to continue past the end offsets without limit, also with partitions that are added to the topic. Default false. */
  readonly follow?: boolean;
  /**
   * Whether outages after the first connection are retried without limit. If not, an outage rejects {@link TopicReader.done}. Default true.
   */
  readonly retriesOutages?: boolean;
  /** Receives each batch, synchronously. A handler that falls behind calls {@link TopicReader.pause}. */
  readonly onBatch: (batch: PartitionBatch) => void;
}

/**
 * Number of consecutive empty responses after which the expected messages of a partition count as missing: the topic was recreated, or
 * compaction has removed them. If it is too small, a topic counts as recreated when a new partition leader reports an earlier end for a
 * moment. If it is too large, reading stands still for longer.
 */
const MAX_EMPTY_RESPONSES = 8;

/** Decoded messages of a partition from a fetch that began at the offset `at`. */
interface FetchedBatch extends PartitionBatch {
  readonly at: bigint;
}

/** Reads a topic from one set of offsets to another, without a consumer group and without committing offsets to Kafka. */
export class TopicReader {
  readonly #options: ReaderOptions;
  readonly #isolation: Isolation;
  readonly #follow: boolean;
  /**
   * Next offset to read, by partition. The partition that was read most recently comes last, so that all partitions are fetched in turn.
   */
  readonly #next: Map<number, bigint>;
  /** Partitions that have not been read up to their end offset. */
  readonly #behind: Set<number>;
  readonly #paused = new Set<number>();
  /** Number of consecutive empty responses to fetches that should have returned messages, by partition. See {@link MAX_EMPTY_RESPONSES}. */
  readonly #emptyResponses = new Map<number, number>();
  readonly #leave$ = new ReplaySubject<void>(1);
  readonly #loops: FetchLoops<FetchedBatch[]> | undefined;
  /**
   * Resolves when all partitions have been read up to their end offsets. Never resolves with `follow`, or if {@link close} comes first.
   * Rejects with the first error that is not retried.
   */
  readonly done: Promise<void>;
  #resolveDone!: () => void;

  constructor(options: ReaderOptions) {
    const { kafka, topic, range, waitMs, follow = false, retriesOutages = true } = options;
    this.#options = options;
    this.#isolation = options.isolation ?? 'committed';
    this.#follow = follow;
    this.#next = new Map(range.from);
    this.#behind = new Set(unreadEnds(range.from, range.ends).keys());
    let reject!: (error: unknown) => void;
    this.done = new Promise<void>((whenDone, whenFailed) => {
      this.#resolveDone = whenDone;
      reject = whenFailed;
    });
    this.done.catch(() => undefined); // must not go unhandled if the caller does not await it
    if (follow || this.#behind.size > 0) {
      this.#loops = new FetchLoops({
        ...{ kafka, topic, isolation: this.#isolation, waitMs, retriesOutages },
        leave$: this.#leave$,
        nextOffsets: (partitions) => this.#nextOffsets(partitions),
        prepare: (answers, asked) => this.#prepareAll(answers, asked),
        take: (batches) => batches.forEach((batch) => this.#take(batch)),
      });
      this.#loops.done.catch(reject);
    }
    if (!follow && this.#behind.size === 0) this.#resolveDone();
  }

  /**
   * Stops reading a partition until `resume` is called. The partition's messages in a response that arrives meanwhile are dropped, and
   * fetched again later.
   */
  pause(partition: number): void {
    this.#paused.add(partition);
  }

  resume(partition: number): void {
    if (this.#paused.delete(partition)) this.#loops?.wake();
  }

  /** Stops reading; resolves when the connections are closed. */
  async close(): Promise<void> {
    this.#leave$.next();
    await this.#loops?.done.catch(() => undefined); // reported by `done`
  }

  #isWanted(partition: number): boolean {
    return (this.#follow || this.#behind.has(partition)) && !this.#paused.has(partition);
  }

  #nextOffsets(partitions: Iterable<number>): Offsets {
    if (this.#follow) {
      for (const each of partitions) if (!this.#next.has(each)) this.#next.set(each, 0n); // a partition that was added
    }
    return new Map([...this.#next].filter(([each]) => this.#isWanted(each)));
  }

  /** Returns the offset before which to stop reading the partition; undefined if the topic is followed without an end. */
  #endOf(partition: number): bigint | undefined {
    return this.#follow ? undefined : this.#options.range.ends.get(partition);
  }

  #prepareAll(answers: readonly PartitionResponse[], asked: Offsets) {
    const room = partitionsWithCapacity(answers, asked);
    return Promise.all(
      answers.map((each) =>
        this.#prepare(each, asked.get(each.partition)!, room.has(each.partition)),
      ),
    );
  }

  /**
   * Decodes one partition's part of a fetch response.
   *
   * @param at Offset from which the partition was fetched.
   * @param hadRoom Whether the response had space for a batch of this partition.
   * @throws CellarstreamError `POSITION`, `KAFKA_UNREACHABLE` or `KAFKA_REFUSED` if the messages at `at` were deleted or can't be read.
   */
  async #prepare(answer: PartitionResponse, at: bigint, hadRoom: boolean): Promise<FetchedBatch> {
    const { kafka, topic } = this.#options;
    const { partition, records } = answer;
    if (isOutOfRange(answer)) return throwOffsetOutOfRange(kafka, topic, partition, at);
    if (records.length === 0) {
      return { partition, at, messages: [], next: await this.#nextOfEmpty(answer, at, hadRoom) };
    }
    this.#emptyResponses.delete(partition);
    const content = await readableContent(topic, answer, at, this.#isolation).catch(
      (error: unknown) => {
        throw malformed(error, topic, partition, at);
      },
    );
    if (!content && hadRoom) throw unreadableBatchError(topic, partition, at);
    return { partition, at, messages: [], next: at, ...content };
  }

  /**
   * Returns the offset at which to continue after an empty response to a fetch from the offset `at`. This is `at` again or, if compaction
   * has removed all messages from `at` on, the end of the readable messages.
   *
   * @param hadRoom Whether the response had space for a message of the partition. If not, the response may be empty for lack of space.
   * @throws the error of {@link throwOffsetOutOfRange} if the topic counts as recreated.
   */
  async #nextOfEmpty(answer: PartitionResponse, at: bigint, hadRoom: boolean): Promise<bigint> {
    const { kafka, topic } = this.#options;
    const { partition, lastStableOffset, highWatermark } = answer;
    const readable = this.#isolation === 'committed' ? lastStableOffset : highWatermark;
    // A log that ends before the requested end may be of a recreated topic, which does not have the requested messages.
    const end = this.#endOf(partition);
    const isShort = end !== undefined && readable < end;
    const isSuspicious = isShort || (hadRoom && readable > at);
    const count = isSuspicious ? (this.#emptyResponses.get(partition) ?? 0) + 1 : 0;
    if (isShort && count === MAX_EMPTY_RESPONSES)
      return throwOffsetOutOfRange(kafka, topic, partition, end);
    // Without compaction, empty responses may come from a broker that can't reach its remote storage (KIP-405).
    const isDeleted = count === MAX_EMPTY_RESPONSES && (await this.#isCompacted());
    this.#emptyResponses.set(partition, count % MAX_EMPTY_RESPONSES);
    return isDeleted ? readable : at;
  }

  async #isCompacted(): Promise<boolean> {
    const { kafka, topic } = this.#options;
    const settings = await topicSettings({ kafka }, topic, ['cleanup.policy']);
    return settings.get('cleanup.policy')?.includes('compact') ?? false;
  }

  #take({ partition, at, messages, next }: FetchedBatch): void {
    // The partition may have been paused, or fetched from another leader, while this response was in flight.
    if (!this.#isWanted(partition) || at !== this.#next.get(partition) || next === at) return;
    const end = this.#endOf(partition);
    const { before = Infinity } = this.#options.range;
    const batch = end === undefined ? { messages, next } : truncateTo(end, before, messages, next);
    this.#options.onBatch({ partition, ...batch });
    this.#moveTo(partition, batch.next);
  }

  #moveTo(partition: number, offset: bigint): void {
    this.#next.delete(partition);
    this.#next.set(partition, offset);
    if (!this.#behind.has(partition) || offset < this.#options.range.ends.get(partition)!) return;
    this.#behind.delete(partition);
    if (!this.#follow && this.#behind.size === 0) this.#resolveDone();
  }
}

/**
 * Returns the partitions for which a fetch response had space: all up to and including the first one with messages. Brokers fill a response
 * in the order of the requested partitions.
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

/**
 * Decodes the messages for one partition in a fetch response, from the offset `at` on. Returns undefined if the response contains no
 * complete batch.
 */
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

/**
 * Cuts off the messages from the offset `end` on. Also cuts off the first message that is not older than `before` (epoch ms), and all after
 * it. Returns the remaining messages, and the offset at which to continue reading (`next`).
 */
function truncateTo(end: bigint, before: number, messages: readonly LogMessage[], next: bigint) {
  const inside = messages.filter(({ offset }) => Number(offset) < Number(end));
  const late = inside.findIndex(({ timestamp }) => Number(timestamp) >= before);
  if (late < 0) return { messages: inside, next };
  return { messages: inside.slice(0, late), next: end }; // messages up to `end` are skipped
}

function unreadableBatchError(
  topic: string,
  partition: number,
  at: bigint | number,
  problem = 'is incomplete',
  cause?: Error,
): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `the batch at offset ${at} of partition ${partition} of ${topic} ${problem}: to skip it in a replay, begin at an offset after this batch. If the service itself stops at it, and the topic is that of a list, delete the topic: the service creates it again and publishes all records of the list again, with op r`,
    { ...(cause && { cause }), context: { concerns: 'topic', topic, partition } },
  );
}

function malformed(
  error: unknown,
  topic: string,
  partition: number,
  offset: bigint | number,
): unknown {
  if (!(error instanceof MalformedBytes)) return error;
  return unreadableBatchError(topic, partition, offset, `can't be read (${error.message})`, error);
}

/**
 * Returns the end offsets of the partitions that have something to read: those whose end offset is after the first offset to read (`from`).
 */
export function unreadEnds(from: Offsets, ends: Offsets): Map<number, bigint> {
  return new Map([...ends].filter(([partition, end]) => end > from.get(partition)!));
}

/**
 * Throws the error for a fetch offset `at` that a broker has reported as out of range.
 *
 * @throws CellarstreamError `POSITION` if the message at `at` was deleted by retention, or the topic was recreated; otherwise
 * `KAFKA_UNREACHABLE`, as a retry may succeed.
 */
async function throwOffsetOutOfRange(
  kafka: Kafka,
  topic: string,
  partition: number,
  at: bigint,
): Promise<never> {
  const bounds = await topicBounds({ kafka }, topic);
  const { low, high } = bounds.get(partition) ?? { low: 0n, high: 0n };
  const where = `partition ${partition} of ${topic}`;
  const context = { topic, partition };
  if (low > at) {
    const message = `offsets ${at} to ${low - 1n} of ${where} were deleted before they were read: begin at ${low} or later, and raise the topic's retention.ms`;
    throw new CellarstreamError('POSITION', message, { context });
  }
  if (high < at) {
    const message = `${where} ends at offset ${high}, before the requested offset ${at}: the topic was deleted and recreated. Begin at its beginning`;
    throw new CellarstreamError('POSITION', message, { context });
  }
  const message = `the brokers do not agree whether ${where} has an offset ${at}`;
  throw new CellarstreamError('KAFKA_UNREACHABLE', message, { context });
}
