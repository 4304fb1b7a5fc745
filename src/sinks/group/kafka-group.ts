// A member of a consumer group on kafkajs: an offset is committed when everything before it is handled, and not sooner.

import type {
  Consumer,
  ConsumerConfig,
  EachBatchPayload,
  Kafka,
  KafkaMessage,
  TopicPartitionOffset,
} from 'kafkajs';
import { exhaustMap, firstValueFrom, interval, ReplaySubject, Subject, merge, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import kafkajs from 'kafkajs';
import { findCoordinator, askBrokers } from '../client/brokers.ts';
import { isWithoutCoordinator, memberError } from '../client/kafka-error.ts';
import { withoutIdleChecks } from '../client/kafkajs-inner.ts';
import { groupOffsets } from '../membership/group.ts';
import { askAbout, topicBounds } from '../client/topic-facts.ts';
import { CODECS, decompress } from '../fetch/codecs.ts';

/** Messages of one partition, in hand until what is made of them is done. */
export interface GroupBatch {
  readonly partition: number;
  /** In order. */
  readonly messages: readonly KafkaMessage[];
  /** Emits when the partition may be another's soon: begin nothing new, finish what is under way. */
  readonly halt$: Observable<void>;
  /** So many messages from the first on are handled: committed within a second, and at the end. */
  readonly handled: (count: number) => void;
}

/** A consumer group. */
interface Group {
  readonly id: string;
  /** Where it begins while it has no offsets. */
  readonly from: 'beginning' | 'latest';
  /** After this long without a sign of a member, it goes on without that one. */
  readonly sessionTimeoutMs: number;
}

interface GroupOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /** Of the topic. */
  readonly partitions: number;
  readonly group: Group;
  readonly scheduler: SchedulerLike;
  /** Its first value lets the member leave, once the batches in hand are done. */
  readonly leave$: Observable<unknown>;
  /** Called for several partitions at once. It may not reject: what goes wrong is its own affair. */
  readonly onBatch: (batch: GroupBatch) => Promise<void>;
  /** Told which partitions are this member's, each time the group has shared them out. */
  readonly onAssigned?: ((partitions: readonly number[]) => void) | undefined;
}

/** Between two commits of a batch. */
const COMMIT_MS = 1_000;
/** Between two heartbeats, at most: how soon a member hears that the group is changing. */
const MAX_HEARTBEAT_MS = 3_000;
/** How long the group waits for members that finish what is under way, unless sessions are longer. */
const REBALANCE_TIMEOUT_MS = 60_000;
/** How long a fetch waits for messages, and so leaving for a fetch. */
const FETCH_WAIT_MS = 500;

/**
 * Takes part in a consumer group until `leave$`, `read_committed`; resolves when the group is left.
 *
 * An offset is committed when everything before it is handled, and not sooner. When the group changes,
 * batches in hand are halted and their offsets committed before the partitions are given up. Heartbeats
 * go on as long as a batch takes. kafkajs fetches no further until all batches in hand are done.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE` where a new member may do; else `KAFKA_REFUSED`.
 */
export async function takePart(options: GroupOptions): Promise<void> {
  const { kafka, topic, leave$, onAssigned } = options;
  const { id, from, sessionTimeoutMs } = options.group;
  const member: ConsumerConfig = {
    groupId: id,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: Math.max(REBALANCE_TIMEOUT_MS, sessionTimeoutMs),
    heartbeatInterval: Math.min(MAX_HEARTBEAT_MS, sessionTimeoutMs / 6),
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
    // Else kafkajs begins again by itself, behind a timer that stopping it does not always reach.
    retry: { retries: 5, restartOnFailure: () => Promise.resolve(false) },
  };
  fillKafkajsCodecs();
  const joined$ = new Subject<void>();
  let consumer: Consumer | undefined;
  try {
    if (from === 'latest') {
      const { scheduler } = options;
      const lacking = () => endsIfWithoutOffsets(kafka, topic, id);
      if (!(await startAtEnd({ kafka, topic, member, lacking, leave$, scheduler }))) return;
    }
    consumer = withoutIdleChecks(kafka).consumer(member);
    const crash = crashOf(consumer);
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      joined$.next();
      onAssigned?.(payload.memberAssignment[topic] ?? []);
    });
    await consumer.connect();
    // Only where a group has no offset, or one of a message that is no longer there.
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: options.partitions,
      eachBatch: (payload) => inHand(payload, options, joined$),
    });
    await Promise.race([crash, firstValueFrom(leave$, { defaultValue: undefined })]);
  } catch (error) {
    throw memberError(await withReason(error, kafka, id), id);
  } finally {
    await consumer?.disconnect(); // waits for the batches in hand, and leaves the group
  }
}

/** How long brokers are asked why there is no coordinator, ms. */
const ASKED_MS = 2_000;

/** Replaces kafkajs' error about a missing coordinator, which lacks the brokers' answer, with one that contains it. */
async function withReason(error: unknown, kafka: Kafka, group: string): Promise<unknown> {
  if (!isWithoutCoordinator(error)) return error;
  const search = askBrokers({ kafka }, ASKED_MS, (brokers) =>
    findCoordinator(brokers, 'group', group),
  );
  return search.then(
    () => error, // there is one by now
    (reason: unknown) => reason,
  );
}

/** One batch: handed over, kept alive while it is worked on, committed. */
async function inHand(
  payload: EachBatchPayload,
  options: GroupOptions,
  joined$: Observable<void>,
): Promise<void> {
  const { batch } = payload;
  const { topic, partition, messages } = batch;
  const halt$ = new ReplaySubject<void>(1);
  let handled = 0;
  let committed = 0;
  let failure: { readonly error: unknown } | undefined;

  const commit = async (): Promise<void> => {
    if (handled === committed) return;
    const count = handled;
    // Behind the last message there may be transaction markers, which are nobody's to handle.
    const next = messages[count]?.offset ?? (BigInt(batch.lastOffset()) + 1n).toString();
    payload.resolveOffset((BigInt(next) - 1n).toString());
    await payload.commitOffsetsIfNecessary({
      topics: [{ topic, partitions: [{ partition, offset: next }] }],
    });
    committed = Math.max(committed, count);
  };
  const upkeep = async (): Promise<void> => {
    try {
      await payload.heartbeat();
      await commit();
    } catch (error) {
      // The group is changing, or the coordinator is away. Heartbeats go on: what is under way
      // may take longer than the session lasts.
      failure ??= { error };
      halt$.next();
    }
  };
  const everyMs = Math.min(COMMIT_MS, options.group.sessionTimeoutMs / 6);
  const kept = interval(everyMs, options.scheduler).pipe(exhaustMap(upkeep)).subscribe();
  // Where leaders move, kafkajs joins again over batches of other brokers that are in hand.
  kept.add(joined$.subscribe(halt$));
  try {
    await options.onBatch({
      partition,
      messages,
      halt$,
      handled: (count) => (handled = count),
    });
  } finally {
    kept.unsubscribe();
  }
  try {
    await commit();
  } catch (error) {
    failure ??= { error };
  }
  // kafkajs joins the group again, or fetches again: what is not committed comes again. A member that
  // leaves does neither; then it comes to another one.
  if (failure && payload.isRunning()) throw failure.error;
}

/** A group that is to begin at the end of a topic. */
export interface GroupStart {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly member: ConsumerConfig;
  /** Offsets that the group lacks, where its topic ends now: all of them, or none. */
  readonly lacking: () => Promise<readonly TopicPartitionOffset[]>;
  /** Its first value ends it. It must replay that value. */
  readonly leave$: Observable<unknown>;
  readonly scheduler: SchedulerLike;
}

/** Between two tries, ms: the leader is another member, and has not written the offsets yet. */
const PAUSE_MS = 250;

/**
 * Has a group that has no offsets yet begin at the end of a topic as of now, and writes that down in
 * its offsets: a member that ended before its first commit would else take the next one past whatever
 * came in between. A group that has offsets keeps them. Resolves with whether to go on: not
 * behind `leave$`.
 *
 * Of members that start together it's the leader who writes: one generation has one, and Kafka takes
 * no offsets of an older generation, so none are written over.
 */
export async function startAtEnd(start: GroupStart): Promise<boolean> {
  const { kafka, topic, member, lacking, leave$, scheduler } = start;
  let hasLeft = false;
  const left = firstValueFrom(leave$, { defaultValue: undefined }).then(() => {
    hasLeft = true;
  });
  left.catch(() => undefined); // to be awaited, unless the group has offsets

  while ((await lacking()).length > 0 && !hasLeft) {
    const consumer = kafka.consumer(member);
    try {
      const crash = crashOf(consumer);
      const joined = new Promise<boolean>((resolve) => {
        consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => resolve(payload.isLeader));
      });
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: false });
      const eachBatch = () => Promise.resolve(); // to be read by the member that stays
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch });
      const isLeader = await Promise.race([crash, joined, left]);
      const offsets = isLeader ? await lacking() : [];
      if (offsets.length > 0) await consumer.commitOffsets([...offsets]);
    } finally {
      await consumer.disconnect();
    }
    await firstValueFrom(merge(timer(PAUSE_MS, scheduler), left));
  }
  return !hasLeft;
}

/** Rejects when a consumer has crashed. */
function crashOf(consumer: Consumer): Promise<never> {
  const crash = new Promise<never>((_, failed) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => failed(payload.error));
  });
  crash.catch(() => undefined); // to be awaited, unless something else fails first
  return crash;
}

/** Offsets to begin at where a group has none of a topic yet: where each partition ends. None where it has any. */
async function endsIfWithoutOffsets(
  kafka: Kafka,
  topic: string,
  groupId: string,
): Promise<readonly TopicPartitionOffset[]> {
  const bounds = await topicBounds({ kafka }, topic);
  const hasOffset = await askAbout({ kafka }, async (brokers) => {
    const offsets = await groupOffsets(brokers, groupId, topic, [...bounds.keys()]);
    return offsets.some((offset) => offset >= 0n);
  });
  if (hasOffset) return [];
  return [...bounds].map(([partition, { high }]) => ({ topic, partition, offset: String(high) }));
}

/** A codec as kafkajs takes it. */
interface Codec {
  compress(encoder: unknown): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

/**
 * Lets kafkajs' consumers read every codec of Kafka. kafkajs has one registry of codecs for the whole process, in which all but
 * gzip throw KafkaJSNotImplemented: only such places are filled, so that a codec which the program has set stays, and one that it
 * sets later replaces ours. Ours only read.
 */
export function fillKafkajsCodecs(): void {
  const registry: Record<number, (() => unknown) | undefined> = kafkajs.CompressionCodecs;
  for (const { type, name } of CODECS) {
    if (isMissing(registry[type])) registry[type] = () => readingCodec(type, name);
  }
}

function isMissing(codec: (() => unknown) | undefined): boolean {
  try {
    return codec?.() === undefined;
  } catch (error) {
    if (error instanceof kafkajs.KafkaJSNotImplemented) return true;
    return false; // the program's own, which says why itself
  }
}

function readingCodec(type: number, name: string): Codec {
  return {
    compress: () =>
      Promise.reject(
        new Error(`cellarstream only reads ${name}: set a codec in kafkajs' CompressionCodecs`),
      ),
    decompress: (bytes) => decompress(type, bytes),
  };
}
