import type { Consumer, ConsumerConfig, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import { exhaustMap, firstValueFrom, interval, ReplaySubject, Subject } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { findCoordinator } from '../client/find-coordinator.ts';
import { isWithoutCoordinator, memberError } from '../client/kafka-error.ts';
import { withoutIdleChecks } from '../client/kafkajs-inner.ts';
import { askBrokers } from '../producer/ask-brokers.ts';
import { crashOf, startAtEnd } from './kafka-group-start.ts';
import { fillKafkajsCodecs } from './kafkajs-codecs.ts';

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
export interface Group {
  readonly id: string;
  /** Where it begins while it has no offsets. */
  readonly from: 'beginning' | 'latest';
  /** After this long without a sign of a member, it goes on without that one. */
  readonly sessionTimeoutMs: number;
}

export interface GroupOptions {
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
      if (!(await startAtEnd({ kafka, topic, member, leave$, scheduler }))) return;
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
