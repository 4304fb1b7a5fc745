// A member of a consumer group, on kafkajs. An offset is committed only once every message before it has been handled.

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
import { KAFKA_LIMITS, PAUSES } from '../../core/retries.ts';
import { findCoordinator, withBrokers } from '../client/brokers.ts';
import { isCoordinatorMissing, memberError } from '../client/kafka-error.ts';
import { withoutIdleChecks } from '../client/kafkajs-inner.ts';
import { groupOffsets } from '../membership/group.ts';
import { queryBrokers, topicBounds } from '../client/topic-facts.ts';
import { CODECS, decompress } from '../fetch/codecs.ts';

/** Consecutive messages of one partition, and the functions that their handler needs. */
export interface ConsumerBatch {
  readonly partition: number;
  /** Messages in the order of their offsets. */
  readonly messages: readonly KafkaMessage[];
  /** Emits when the partition may soon be revoked. The handler must then begin no new work, and finish the work that is running. */
  readonly halt$: Observable<void>;
  /**
   * Marks the first `count` messages as handled. The offset after them is committed within about a second, and at the latest when the batch
   * ends.
   */
  readonly markHandled: (count: number) => void;
}

interface ConsumerMemberOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly partitions: number;
  readonly groupId: string;
  /** Where the consumer group begins to read if it has no committed offsets. */
  readonly from: 'beginning' | 'latest';
  /** Time without a heartbeat after which the coordinator removes a member, in ms. */
  readonly sessionTimeoutMs: number;
  readonly scheduler: SchedulerLike;
  /**
   * The first value makes the member leave its consumer group, once its running batches have been handled. The observable must replay that
   * value to late subscribers.
   */
  readonly leave$: Observable<unknown>;
  /** Handles a batch. Called concurrently for several partitions. Must not reject: the handler deals with its errors. */
  readonly onBatch: (batch: ConsumerBatch) => Promise<void>;
  /** Called after each rebalance with the partitions that are assigned to this member. */
  readonly onAssigned?: ((partitions: readonly number[]) => void) | undefined;
}

/**
 * Longest interval between two commits of a batch's offsets, in ms. If it is too large, more messages are delivered again after a crash.
 */
const COMMIT_MS = 1_000;
/** Longest interval between two heartbeats, in ms. If it is too large, members learn of rebalances later. */
const MAX_HEARTBEAT_MS = 3_000;
/** Longest time that a rebalance waits for members to finish their batches, in ms. Used unless the session timeout is longer. */
const REBALANCE_TIMEOUT_MS = 60_000;
/**
 * Longest time that a broker waits for messages before it responds to a fetch, in ms. If it is too large, a member leaves its consumer
 * group late, because leaving waits for the response.
 */
const FETCH_WAIT_MS = 500;

/**
 * Reads the committed messages of a topic as a member of a consumer group until `leave$` emits. Resolves when the member has left the
 * consumer group.
 *
 * An offset is committed only once every message before it has been handled. In a rebalance, running batches are halted, and their offsets
 * are committed.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE` if a retry with a new member may succeed; otherwise `KAFKA_REFUSED` or `TLS_REFUSED`.
 */
export async function runConsumerMember(options: ConsumerMemberOptions): Promise<void> {
  const { kafka, topic, groupId, sessionTimeoutMs, leave$, scheduler, onAssigned } = options;
  const member: ConsumerConfig = {
    groupId,
    sessionTimeout: sessionTimeoutMs,
    rebalanceTimeout: Math.max(REBALANCE_TIMEOUT_MS, sessionTimeoutMs),
    heartbeatInterval: Math.min(MAX_HEARTBEAT_MS, sessionTimeoutMs / 6),
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
    // Otherwise kafkajs restarts the consumer on a timer that disconnect() does not always cancel (kafkajs#643).
    retry: { retries: 5, restartOnFailure: () => Promise.resolve(false) },
  };
  registerKafkajsCodecs();
  const joined$ = new Subject<void>();
  let consumer: Consumer | undefined;
  try {
    if (options.from === 'latest') {
      const lacking = () => endsIfWithoutOffsets(kafka, topic, groupId);
      if (!(await startAtEnd({ kafka, topic, member, lacking, leave$, scheduler }))) return;
    }
    consumer = withoutIdleChecks(kafka).consumer(member);
    const crash = crashOf(consumer);
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      joined$.next();
      onAssigned?.(payload.memberAssignment[topic] ?? []);
    });
    await consumer.connect();
    // `fromBeginning` applies only where the group has no committed offset, or one whose message was deleted.
    await consumer.subscribe({ topic, fromBeginning: true });
    // kafkajs fetches from a broker again only after all batches in that broker's previous response have been handled.
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: options.partitions,
      eachBatch: (payload) => new RunningBatch(payload, options).handle(joined$),
    });
    await Promise.race([crash, firstValueFrom(leave$, { defaultValue: undefined })]);
  } catch (error) {
    throw memberError(await withCoordinatorReason(error, kafka, groupId), groupId);
  } finally {
    await consumer?.disconnect(); // waits for running batches, then leaves the group
  }
}

/** Replaces kafkajs' error about a missing coordinator by an error that contains the brokers' response. Returns other errors unchanged. */
async function withCoordinatorReason(
  error: unknown,
  kafka: Kafka,
  group: string,
): Promise<unknown> {
  if (!isCoordinatorMissing(error)) return error;
  try {
    await withBrokers({ kafka }, KAFKA_LIMITS.errorDetail, (brokers) =>
      findCoordinator(brokers, 'group', group),
    );
    return error; // a coordinator is available by now
  } catch (reason) {
    return reason;
  }
}

/**
 * A batch that is being handled. Heartbeats are sent and offsets committed meanwhile, because the handler may need longer than the session
 * timeout. If a heartbeat or a commit fails, the handler is halted.
 */
class RunningBatch {
  readonly #payload: EachBatchPayload;
  readonly #options: ConsumerMemberOptions;
  readonly #halt$ = new ReplaySubject<void>(1);
  /** Number of messages at the beginning of the batch that have been handled. */
  #handled = 0;
  /** Number of messages at the beginning of the batch whose offsets are committed. */
  #committed = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(payload: EachBatchPayload, options: ConsumerMemberOptions) {
    this.#payload = payload;
    this.#options = options;
  }

  /**
   * Passes the batch to `onBatch`, and meanwhile sends heartbeats and commits the offsets of handled messages.
   *
   * @param joined$ Emits when the member has joined its consumer group again after a rebalance. The handler is then halted.
   */
  async handle(joined$: Observable<void>): Promise<void> {
    const { sessionTimeoutMs, scheduler, onBatch } = this.#options;
    const { partition, messages } = this.#payload.batch;
    const upkeep = interval(Math.min(COMMIT_MS, sessionTimeoutMs / 6), scheduler)
      .pipe(exhaustMap(() => this.#try(() => this.#upkeep())))
      .subscribe();
    // When partition leaders move, kafkajs rejoins the group while batches of other brokers are still being handled.
    upkeep.add(joined$.subscribe(this.#halt$));
    const markHandled = (count: number) => (this.#handled = count);
    try {
      await onBatch({ partition, messages, halt$: this.#halt$, markHandled });
    } finally {
      upkeep.unsubscribe();
    }
    await this.#try(() => this.#commit());
    // The error makes kafkajs rejoin the group or fetch again, so that uncommitted messages are delivered again. A member that is
    // leaving does neither: another member receives them.
    if (this.#failure && this.#payload.isRunning()) throw this.#failure.error;
  }

  async #upkeep(): Promise<void> {
    await this.#payload.heartbeat();
    await this.#commit();
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#failure ??= { error };
      this.#halt$.next();
    }
  }

  async #commit(): Promise<void> {
    if (this.#handled === this.#committed) return;
    const payload = this.#payload;
    const { batch } = payload;
    const { topic, partition, messages } = batch;
    const count = this.#handled;
    // The last message may be followed by transaction markers, which no handler receives.
    const offset = messages[count]?.offset ?? (BigInt(batch.lastOffset()) + 1n).toString();
    payload.resolveOffset((BigInt(offset) - 1n).toString());
    await payload.commitOffsetsIfNecessary({
      topics: [{ topic, partitions: [{ partition, offset }] }],
    });
    this.#committed = Math.max(this.#committed, count);
  }
}

export interface ConsumerGroupStart extends Pick<
  ConsumerMemberOptions,
  'kafka' | 'topic' | 'scheduler' | 'leave$'
> {
  readonly member: ConsumerConfig;
  /** Returns the end offset of every partition, to be committed. Returns `[]` if the consumer group has committed offsets already. */
  readonly lacking: () => Promise<readonly TopicPartitionOffset[]>;
}

/**
 * Makes a consumer group without offsets begin at the current end of a topic, by committing the end offsets. Otherwise a new member could
 * skip messages that arrived after the previous member had left.
 *
 * Resolves with true once the consumer group has offsets, and with false if `leave$` has emitted.
 */
export async function startAtEnd(start: ConsumerGroupStart): Promise<boolean> {
  const { kafka, topic, member, lacking, leave$, scheduler } = start;
  let hasLeft = false;
  const left = firstValueFrom(leave$, { defaultValue: undefined }).then(
    () => void (hasLeft = true),
  );
  left.catch(() => undefined); // not awaited if the group has offsets: its rejection must not go unhandled

  while ((await lacking()).length > 0 && !hasLeft) {
    const consumer = kafka.consumer(member);
    try {
      const crash = crashOf(consumer);
      const joined = new Promise<boolean>((resolve) => {
        consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => resolve(payload.isLeader));
      });
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: false });
      const eachBatch = () => Promise.resolve(); // left to the consumer that is started afterwards
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch });
      const isLeader = await Promise.race([crash, joined, left]);
      // A generation has one leader, and Kafka rejects commits of an older generation, so no offsets are overwritten.
      const offsets = isLeader ? await lacking() : [];
      if (offsets.length > 0) await consumer.commitOffsets([...offsets]);
    } finally {
      await consumer.disconnect();
    }
    await firstValueFrom(merge(timer(PAUSES.groupOffsets.firstMs, scheduler), left));
  }
  return !hasLeft;
}

function crashOf(consumer: Consumer): Promise<never> {
  const crash = new Promise<never>((_, failed) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => failed(payload.error));
  });
  crash.catch(() => undefined); // not awaited if something else fails first: its rejection must not go unhandled
  return crash;
}

async function endsIfWithoutOffsets(
  kafka: Kafka,
  topic: string,
  groupId: string,
): Promise<readonly TopicPartitionOffset[]> {
  const bounds = await topicBounds({ kafka }, topic);
  const hasOffset = await queryBrokers({ kafka }, async (brokers) => {
    const offsets = await groupOffsets(brokers, groupId, topic, [...bounds.keys()]);
    return offsets.some((offset) => offset >= 0n);
  });
  if (hasOffset) return [];
  return [...bounds].map(([partition, { high }]) => ({ topic, partition, offset: String(high) }));
}

/**
 * Adds decompression for Kafka's codecs to kafkajs' registry, which the whole process shares. kafkajs itself supports only gzip. Codecs
 * that the program has set are not replaced. The added codecs can't compress.
 */
export function registerKafkajsCodecs(): void {
  const registry: Record<number, (() => unknown) | undefined> = kafkajs.CompressionCodecs;
  for (const { type, name } of CODECS) {
    if (isMissing(registry[type])) registry[type] = () => decompressingCodec(type, name);
  }
}

function isMissing(codec: (() => unknown) | undefined): boolean {
  try {
    return codec?.() === undefined;
  } catch (error) {
    return error instanceof kafkajs.KafkaJSNotImplemented; // other errors are of a codec that the program has set
  }
}

function decompressingCodec(type: number, name: string) {
  const message = `cellarstream can decompress ${name}, but not compress it: to send such messages, set a codec in kafkajs' CompressionCodecs`;
  return {
    compress: () => Promise.reject(new Error(message)),
    decompress: (bytes: Buffer) => decompress(type, bytes),
  };
}
