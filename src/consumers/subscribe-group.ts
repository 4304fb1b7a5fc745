// Handles the events of a topic at least once, as a member of a consumer group.

import type { Kafka, KafkaMessage } from 'kafkajs';
import { defer, lastValueFrom, merge, NEVER, Observable, ReplaySubject, take, tap } from 'rxjs';
import type { MonoTypeOperatorFunction, SchedulerLike, Subscriber } from 'rxjs';
import { steadyScheduler } from '../core/clock.ts';
import { PAUSES } from '../core/retries.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { kafkaDeadLetters } from '../sinks/producer/plain-producer.ts';
import type { DeadLetters } from '../sinks/producer/plain-producer.ts';
import { partitionCount } from '../kafka/client/topic-facts.ts';
import { runConsumerMember } from '../kafka/consumer-group/kafka-group.ts';
import type { ConsumerBatch } from '../kafka/consumer-group/kafka-group.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { certificatesOf, certificatesSource } from './certificates.ts';
import type { CertificatesOptions, PublishedCertificate } from './certificates.ts';
import { MessageReader } from './consumed.ts';
import { handling } from './handling.ts';
import type {
  DeadLettered,
  GroupRetry,
  Handled,
  Handler,
  Handling,
  RetryOptions,
} from './handling.ts';
import { keyedWork } from './keyed-work.ts';
import type { KeyedWork } from './keyed-work.ts';
import { MISSING_TOPIC_ADVICE } from './position.ts';
import { topicOf } from './topic.ts';
import type { Topic, ValueIn } from './topic.ts';

/** Options of {@link subscribeGroup}. */
export interface SubscribeGroupOptions<T> {
  /** Kafka client, which no two members may share: kafkajs stores the offsets of the consumer group in the client object. */
  readonly kafka: Kafka;
  readonly registry: Registry;
  readonly topic: Topic<T>;
  /** Id of the Kafka consumer group. Its members share the partitions; Kafka stores its offsets. */
  readonly groupId: string;
  /** Where the consumer group starts reading if it has no committed offsets. Default `beginning`. */
  readonly from?: 'beginning' | 'latest';
  /** Maximum number of handlers that run at once: an integer, at least 1. Default 16. */
  readonly concurrency?: number;
  readonly retry?: RetryOptions;
  /**
   * Name of an existing topic to which events are written that could not be decoded or handled. Default: none; the first such event then
   * ends the member with an error.
   */
  readonly deadLetters?: string;
  /**
   * The first value stops the member: it finishes the running handlers and leaves the consumer group. Then the Observable that
   * `subscribeGroup` returned completes.
   */
  readonly stop$?: Observable<unknown>;
  /** Time without a heartbeat after which Kafka removes the member from the consumer group, in ms. Default 30,000. */
  readonly sessionTimeoutMs?: number;
  /** Clock and timers. Default: a monotonic clock. */
  readonly scheduler?: SchedulerLike;
  /** Returns random numbers, uniform in [0, 1), which vary the lengths of pauses. Default Math.random. */
  readonly random?: () => number;
  /** Called before each pause that precedes a retry of a handler, or of a call to Kafka or the registry. */
  readonly onRetry?: (retry: GroupRetry) => void;
  /** Called after an event that could not be decoded or handled has been written to the topic `deadLetters`. */
  readonly onDeadLetter?: (letter: DeadLettered) => void;
  /** Called after each rebalance with the partitions assigned to this member. */
  readonly onRebalance?: (partitions: readonly number[]) => void;
  /**
   * Called with the list's newest certificate, and with each later one when it is published. A certificate states count and digest of the
   * list's records after a full scan. The events before the certificate's positions may not have been handled yet: compare the positions
   * with the consumer group's committed offsets. If the callback throws, the member ends with that error.
   */
  readonly onCertificate?: (published: PublishedCertificate) => void;
  /**
   * Where the list's certificates are published. Default `<prefix>.certificates`, with the prefix of the list's topic. Must be set in a
   * fleet.
   */
  readonly certificates?: CertificatesOptions;
}

/** {@link SubscribeGroupOptions} with the name of a topic. The name determines the TypeScript type of the values: see {@link ValueIn}. */
export interface SubscribeGroupByNameOptions<Name extends string = string> extends Omit<
  SubscribeGroupOptions<unknown>,
  'topic'
> {
  readonly topic: Name;
}

const SESSION_TIMEOUT_MS = 30_000;
const CONCURRENCY = 16;
const RETRY = { tries: 5, firstMs: 200, maxMs: 30_000 };

/**
 * Handles every event of a topic at least once, as a member of a Kafka consumer group. Emits each event after its handler has succeeded.
 *
 * - Events with the same key are handled one after the other, in order; events with different keys concurrently, up to `concurrency`.
 * - An offset is committed only once every event before it has been handled or written to the dead letters. After a crash, some events are
 *   handled again. For an effect that must happen once, store the event's identity with it: topic, partition and offset, or the `event_id`
 *   of a status change.
 * - A failed handler is called again after a pause. Later events with the same key wait; other events are handled meanwhile.
 * - In a rebalance no new handler starts, running ones are waited for (up to a minute), and offsets are committed.
 * - A slow handler does not end the membership. While it runs, no further events are fetched from the broker that its event came from.
 * - While Kafka or the registry is unavailable, the member waits and retries.
 *
 * Known limits of kafkajs:
 *
 * - When a partition leader moves to another broker, two members may for a moment handle events with the same key in any order.
 * - Where compaction has left a segment with only empty batches, the member does not advance. `replay` skips such segments.
 *
 * Unsubscribing stops the member in the background, as `stop$` does.
 *
 * @throws RangeError when called, if `concurrency` or `retry.tries` is out of range, or `deadLetters` is the topic itself. Without dead
 * letters, the Observable errors with the handler's error after its last attempt, or with `VALUE_UNREADABLE`. It also errors with
 * CellarstreamError `POSITION` if a topic does not exist, `KAFKA_REFUSED`, `REGISTRY_REFUSED`, `TLS_REFUSED`, and `TOPIC_SETTINGS` if a
 * dead letter is too large.
 *
 * @example
 * ```ts
 * import { subscribeGroup, topicsUnder } from 'cellarstream/consume';
 * import { createRegistry } from 'cellarstream/schemas';
 * import { Kafka } from 'kafkajs';
 *
 * const kafka = new Kafka({ brokers: ['127.0.0.1:9092'] });
 * const registry = createRegistry({ url: 'http://127.0.0.1:8081/apis/ccompat/v7' });
 * subscribeGroup(
 *   { kafka, registry, topic: topicsUnder().orderStatusChanges, groupId: 'parcels' },
 *   ({ key, value }) => {
 *     if (value?.to === 'delivered') console.log(`order ${key}: ${value.subject_id} is there`);
 *   },
 * ).subscribe({ error: console.error });
 * ```
 */
export function subscribeGroup<T, R>(
  options: SubscribeGroupOptions<T>,
  handle: Handler<T, R>,
): Observable<Handled<T, R>>;
export function subscribeGroup<Name extends string, R>(
  options: SubscribeGroupByNameOptions<Name>,
  handle: Handler<ValueIn<Name>, R>,
): Observable<Handled<ValueIn<Name>, R>>;
export function subscribeGroup<T, R>(
  options: SubscribeGroupOptions<T> | SubscribeGroupByNameOptions,
  handle: Handler<T, R>,
): Observable<Handled<T, R>> {
  const { concurrency = CONCURRENCY } = options;
  const retry = { ...RETRY, ...options.retry };
  const topic = topicOf<T>(options.topic);
  if (options.deadLetters === topic.name) {
    throw new RangeError(`deadLetters must be another topic than ${topic.name} itself`);
  }
  atLeastOne({ concurrency, 'retry.tries': retry.tries });
  const complete = { ...options, topic, concurrency, retry };
  return new Observable((subscriber) =>
    new GroupMember<T, R>(complete, handle, subscriber).start(),
  );
}

interface MemberOptions<T> extends SubscribeGroupOptions<T> {
  readonly concurrency: number;
  readonly retry: Required<RetryOptions>;
}

/**
 * A member of a consumer group. When `stop$` emits, the subscriber unsubscribes, or a failure occurs that is not retried, the member
 * finishes the running handlers and leaves. The Observable then completes, or errors with the first failure.
 */
class GroupMember<T, R> {
  readonly #options: MemberOptions<T>;
  readonly #subscriber: Subscriber<Handled<T, R>>;
  readonly #scheduler: SchedulerLike;
  readonly #deadLetters: DeadLetters | undefined;
  readonly #attempt: Handling<T, R>;
  readonly #work: KeyedWork;
  readonly #leave$ = new ReplaySubject<void>(1);
  #isLeaving = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    options: MemberOptions<T>,
    handle: Handler<T, R>,
    subscriber: Subscriber<Handled<T, R>>,
  ) {
    this.#options = options;
    this.#subscriber = subscriber;
    const { kafka, registry, topic, groupId, retry, concurrency } = options;
    const { scheduler = steadyScheduler, random = Math.random } = options;
    this.#scheduler = scheduler;
    const deadLetters =
      options.deadLetters === undefined
        ? undefined
        : kafkaDeadLetters(kafka, options.deadLetters, groupId);
    this.#deadLetters = deadLetters;
    const reader = new MessageReader(registry, topic);
    const common = { registry, reader, handle, retry, deadLetters, scheduler, random };
    this.#attempt = handling<T, R>({ topic: topic.name, ...common, hooks: options });
    this.#work = keyedWork(concurrency, scheduler);
  }

  /**
   * Joins the consumer group. The membership ends when `stop$` emits, the subscriber unsubscribes, or a failure occurs that is not retried.
   */
  start(): void {
    const { kafka, topic, certificates, onCertificate, stop$ = NEVER } = this.#options;
    const subscriber = this.#subscriber;
    const fail = (error: unknown) => this.#fail(error);
    const leave = () => this.#leave();
    if (onCertificate) {
      const source = certificatesSource(topic.name, certificates);
      const certificate$ = certificatesOf(kafka, source, this.#leave$).pipe(
        this.#retrying(),
        tap(onCertificate),
      );
      subscriber.add(certificate$.subscribe({ error: fail }));
    }
    const member$ = defer(() => this.#join()).pipe(this.#retrying());
    lastValueFrom(member$, { defaultValue: undefined })
      .catch(fail)
      .finally(() => this.#deadLetters?.close())
      .then(
        () => (this.#failure ? subscriber.error(this.#failure.error) : subscriber.complete()),
        subscriber.error.bind(subscriber),
      );
    subscriber.add(stop$.pipe(take(1)).subscribe({ next: leave, error: fail }));
    subscriber.add(leave);
  }

  async #join(): Promise<void> {
    if (this.#isLeaving) return;
    const { kafka, topic, groupId, deadLetters, from, sessionTimeoutMs } = this.#options;
    const partitions = await partitionCount({ kafka }, topic.name, MISSING_TOPIC_ADVICE);
    if (deadLetters !== undefined) {
      const advice = `create it first, as with kafka-topics.sh --bootstrap-server HOST:PORT --create --topic ${deadLetters}`;
      await partitionCount({ kafka }, deadLetters, advice);
    }
    await runConsumerMember({
      kafka,
      topic: topic.name,
      partitions,
      groupId,
      from: from ?? 'beginning',
      sessionTimeoutMs: sessionTimeoutMs ?? SESSION_TIMEOUT_MS,
      scheduler: this.#scheduler,
      leave$: this.#leave$,
      onBatch: (batch) => this.#handle(batch),
      onAssigned: this.#options.onRebalance,
    });
  }

  async #handle({ partition, messages, markHandled, halt$ }: ConsumerBatch): Promise<void> {
    const halted$ = merge(halt$, this.#leave$);
    const done$ = this.#work<KafkaMessage, Handled<T, R>>({
      items: messages,
      keyOf: ({ key }) => key?.toString('latin1') ?? null,
      work: (message, tries) => this.#attempt(partition, message, tries, halted$),
      halt$: halted$,
    }).pipe(
      tap(({ result, lowWatermark }) => {
        markHandled(lowWatermark);
        if (result) this.#subscriber.next(result);
      }),
    );
    try {
      await lastValueFrom(done$, { defaultValue: undefined });
    } catch (error) {
      this.#fail(error);
    }
  }

  #leave(): void {
    this.#isLeaving = true;
    this.#leave$.next();
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#leave();
  }

  /** Returns an operator that retries a call to Kafka after temporary errors, with pauses, until the member leaves. */
  #retrying<V>(): MonoTypeOperatorFunction<V> {
    const { random, onRetry } = this.#options;
    return backoff<V>({
      ...PAUSES.restart,
      scheduler: this.#scheduler,
      random,
      stop$: this.#leave$,
      onRetry,
    });
  }
}

function atLeastOne(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new RangeError(`${name} must be an integer >= 1, got ${value}`);
  }
}
