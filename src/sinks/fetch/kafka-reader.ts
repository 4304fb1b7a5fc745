// Reads a topic from one set of offsets to another without a consumer group; no message is skipped silently.

import type { Kafka } from 'kafkajs';
import { ReplaySubject } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Offsets, Isolation } from '../sink.ts';
import { MalformedBytes } from './codecs.ts';
import type { PartitionAnswer, FetcherOptions } from './kafka-fetcher.ts';
import { fetchLoops } from './fetch-loops.ts';
import { isOutOfRange } from './kafka-fetcher.ts';
import { committedBatches, isNoMarker, messagesOf, recordBatches } from './record-batches.ts';
import type { LogMessage } from './record-batches.ts';
import { topicBounds, topicSettings } from '../client/topic-facts.ts';

/** What of a partition has been read, in one go. */
export interface PartitionBatch {
  readonly partition: number;
  /** In order; none comes twice. */
  readonly messages: readonly LogMessage[];
  /** The offset to go on at: behind markers and gaps too. */
  readonly next: bigint;
}

/** What of a topic is to be read. */
export interface Range {
  /** By partition, the first offset to read. Every partition is here. */
  readonly from: Offsets;
  /** By partition, the offset to end before: no further than it can be read now. */
  readonly ends: Offsets;
  /** Ends a partition sooner, before its first message of this time or later, ms since 1970. Default nowhere. */
  readonly before?: number;
}

export interface ReaderOptions extends FetcherOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly range: Range;
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
  /** Resolves when nothing is left of it. */
  close(): Promise<void>;
}

/**
 * Reads a topic from one set of offsets to another without a consumer group: where it is only the reader knows.
 */
export function openReader(options: ReaderOptions): TopicReader {
  const { kafka, topic, follow = false, isPatient = true, isolation = 'committed' } = options;
  const { onBatch, onCaughtUp, waitMs } = options;
  const { from, ends, before = Infinity } = options.range;
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
  const wanted = (partitions: Iterable<number>): Offsets => {
    if (follow) for (const each of partitions) if (!next.has(each)) next.set(each, 0n); // was added
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
  /** Answers in a row with nothing in them, by partition, although there was room. */
  const nothing = new Map<number, number>();
  const prepare = async (answer: PartitionAnswer, at: bigint, hadRoom: boolean): Promise<Read> => {
    const { partition, records } = answer;
    const readable = isolation === 'committed' ? answer.lastStableOffset : answer.highWatermark;
    if (isOutOfRange(answer)) return refuseLoss({ kafka, topic, partition, at });
    if (records.length > 0) {
      nothing.delete(partition);
      const read = await contentOf(topic, answer, at, isolation);
      if (!read && hadRoom) throw unreadable(topic, partition, at);
      return { partition, at, messages: [], next: at, ...read };
    }
    // Nothing of the one before comes any more, and what comes of the new one is not what was asked for.
    const end = follow ? undefined : ends.get(partition);
    const isShort = end !== undefined && readable < end;
    const isSuspicious = isShort || (hadRoom && readable > at);
    const times = isSuspicious ? (nothing.get(partition) ?? 0) + 1 : 0;
    if (isShort && times === ENOUGH) return refuseLoss({ kafka, topic, partition, at: end });
    const isOver = times === ENOUGH && (await isCompacted());
    nothing.set(partition, times % ENOUGH);
    return { partition, at, messages: [], next: isOver ? readable : at };
  };
  const take = ({ partition, at, messages, next: read }: Read) => {
    // It may have been paused, or fetched from another leader, while this was on its way.
    if (!isWanted(partition) || at !== next.get(partition) || read === at) return;
    const end = follow ? undefined : ends.get(partition);
    const batch = end === undefined ? { messages, next: read } : upTo(end, before, messages, read);
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
          isPatient,
          leave$,
          wanted,
          prepare: (answers, asked) => {
            const room = hadRoom(answers, asked);
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
      await loops?.done.catch(() => undefined); // `done` has it
    },
  };
}

/** What a partition held from an offset on. */
interface Read extends PartitionBatch {
  readonly at: bigint;
}

/**
 * So many answers in a row that bring nothing, each of which waits for something: then compaction has
 * left nothing up to the end, or the end is one of a topic that was made anew since. A broker answers so, too, while
 * it can't reach its remote storage; Kafka keeps no compacted topic there. (And a new leader tells of
 * a sooner end at first.)
 */
const ENOUGH = 8;

/**
 * Partitions that an answer had room for. Brokers fill it in the order of the request: of the first that
 * has anything a batch comes at least, however large, and nothing is kept from those before it.
 */
function hadRoom(answers: readonly PartitionAnswer[], asked: Offsets): ReadonlySet<number> {
  const byPartition = new Map(answers.map((answer) => [answer.partition, answer]));
  const room = new Set<number>();
  for (const partition of asked.keys()) {
    room.add(partition);
    if (byPartition.get(partition)?.records.length !== 0) break;
  }
  return room;
}

/** What is to be read of an answer from an offset on; undefined where it holds no whole batch. */
async function contentOf(
  topic: string,
  { partition, records, aborted }: PartitionAnswer,
  at: bigint,
  isolation: Isolation,
) {
  const batches = recordBatches(records);
  const last = batches.at(-1);
  if (!last) return undefined;
  const wanted =
    isolation === 'committed' ? committedBatches(batches, aborted) : batches.filter(isNoMarker);
  const messages = await Promise.all(
    wanted.map((batch) =>
      messagesOf(batch).catch((error: unknown) => {
        throw malformed(error, topic, partition, batch.baseOffset);
      }),
    ),
  );
  const first = Number(at); // a batch may begin before it
  return {
    messages: messages.flat().filter(({ offset }) => Number(offset) >= first),
    next: BigInt(last.lastOffset) + 1n,
  };
}

/** Of what was read, what stands before an end, and before the first message of a time, ms since 1970. */
function upTo(end: bigint, before: number, messages: readonly LogMessage[], next: bigint) {
  const inside = messages.filter(({ offset }) => Number(offset) < Number(end));
  const late = inside.findIndex(({ timestamp }) => Number(timestamp) >= before);
  if (late < 0) return { messages: inside, next };
  return { messages: inside.slice(0, late), next: end }; // what is between is not wanted
}

function unreadable(topic: string, partition: number, at: bigint): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `the batch at offset ${at} of partition ${partition} of ${topic} is not whole: read on from a later offset`,
    { context: { concerns: 'topic', topic, partition } },
  );
}

function malformed(error: unknown, topic: string, partition: number, offset: number): unknown {
  if (!(error instanceof MalformedBytes)) return error;
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `the batch at offset ${offset} of partition ${partition} of ${topic} can't be read (${error.message}): read on from a later offset`,
    { cause: error, context: { concerns: 'topic', topic, partition } },
  );
}

/** The ends of those partitions that have something before them. */
export function unread(from: Offsets, ends: Offsets): Map<number, bigint> {
  return new Map([...ends].filter(([partition, end]) => end > from.get(partition)!));
}

/** A partition that is read, and the offset that is next. */
interface ReadPlace {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly partition: number;
  readonly at: bigint;
}

/**
 * Tells why a broker says that this offset is out of range: nobody may pass over in silence what is not
 * there any more.
 *
 * @throws CellarstreamError `POSITION`: retention has taken the next message, or the topic was made
 * anew; `KAFKA_UNREACHABLE`: asked again, the brokers say that it is there.
 */
async function refuseLoss(place: ReadPlace): Promise<never> {
  const { kafka, topic, partition, at } = place;
  const bounds = await topicBounds({ kafka }, topic);
  const { low, high } = bounds.get(partition) ?? { low: 0n, high: 0n };
  if (low > at) throw deletedBefore(place, low);
  if (high < at) throw madeAnew(place, high);
  throw new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `the brokers do not agree whether partition ${partition} of ${topic} has an offset ${at}`,
    { context: { topic, partition } },
  );
}

function deletedBefore({ topic, partition, at }: ReadPlace, low: bigint) {
  return new CellarstreamError(
    'POSITION',
    `offsets ${at} to ${low - 1n} of partition ${partition} of ${topic} were deleted before they were read: begin at ${low} or later, and raise the topic's retention.ms`,
    { context: { topic, partition } },
  );
}

function madeAnew({ topic, partition, at }: ReadPlace, end: bigint) {
  return new CellarstreamError(
    'POSITION',
    `partition ${partition} of ${topic} ends at ${end} and not at ${at} as before: the topic was made anew. Begin at its beginning`,
    { context: { topic, partition } },
  );
}
