// Handles events as a member of a consumer group, each at least once.

import type { Kafka, KafkaMessage } from 'kafkajs';
import { defer, lastValueFrom, merge, NEVER, Observable, ReplaySubject, take, tap } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { steadyScheduler } from '../core/clock.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { kafkaDeadLetters } from '../sinks/producer/plain-producer.ts';
import { partitionCount } from '../sinks/client/topic-facts.ts';
import { takePart } from '../sinks/group/kafka-group.ts';
import type { GroupBatch } from '../sinks/group/kafka-group.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { certificatesOf, certificatesSource } from './certificates.ts';
import type { CertificatesOptions, PublishedCertificate } from './certificates.ts';
import { messageReader } from './consumed.ts';
import { handling } from './handling.ts';
import type { DeadLettered, GroupRetry, Handled, Handler, RetryOptions } from './handling.ts';
import { keyedWork } from './keyed-work.ts';
import { topicOf } from './topic.ts';
import type { Topic, ValueIn } from './topic.ts';

/** What {@link subscribeGroup} needs. */
export interface SubscribeGroupOptions<T> {
  /** One client a member: kafkajs keeps the offsets of a group in its client. */
  readonly kafka: Kafka;
  readonly registry: Registry;
  readonly topic: Topic<T>;
  /** Its members share the partitions. Its offsets are kept by Kafka. */
  readonly groupId: string;
  /** Where a group begins that has no offsets yet. Default `beginning`. */
  readonly from?: 'beginning' | 'latest';
  /** Most handlers at once: an integer, at least 1. Default 16. */
  readonly concurrency?: number;
  readonly retry?: RetryOptions;
  /**
   * A topic of the consumer's own for events that can't be read, or are given up. It must exist. Default
   * none: the Observable errors with what the handler failed with.
   */
  readonly deadLetters?: string;
  /** Its first value stops the member; the Observable completes when it has left the group. */
  readonly stop$?: Observable<unknown>;
  /** After this long without a sign of a member, the group goes on without it. Default 30,000. */
  readonly sessionTimeoutMs?: number;
  /** Clock and timers. Default a clock that only goes forward. */
  readonly scheduler?: SchedulerLike;
  /** Uniform in [0, 1), for pauses. Default Math.random. */
  readonly random?: () => number;
  /** Told before each pause: of an event, or of Kafka or the registry. */
  readonly onRetry?: (retry: GroupRetry) => void;
  /** Told of each event that is in the dead letters now. */
  readonly onDeadLetter?: (letter: DeadLettered) => void;
  /** Told which partitions are this member's, each time the group has shared them out. */
  readonly onRebalance?: (partitions: readonly number[]) => void;
  /**
   * Told of the list's newest certificate, and of each as it is published. A member has a share of the partitions: whether
   * the group has come to its positions is told by the group's offsets. Throwing ends the member.
   */
  readonly onCertificate?: (published: PublishedCertificate) => void;
  /** Where certificates are. Default next to a resource's topic, of the one account that is there. */
  readonly certificates?: CertificatesOptions;
}

/** {@link SubscribeGroupOptions} of a topic by its name, as {@link replay} takes it. */
export interface SubscribeGroupByNameOptions<Name extends string = string> extends Omit<
  SubscribeGroupOptions<unknown>,
  'topic'
> {
  readonly topic: Name;
}

const SESSION_TIMEOUT_MS = 30_000;
const CONCURRENCY = 16;
const RETRY = { tries: 5, firstMs: 200, maxMs: 30_000 };
/** Between two tries to reach Kafka, at most: a long outage is not made longer. */
const MAX_PAUSE_MS = 5_000;

/**
 * Handles every event of a topic at least once, as a member of a Kafka consumer group; emits each when
 * it is handled.
 *
 * - Events of one key are handled one after the other, in order; those of different keys at once, up to
 *   `concurrency`. Events without a key are one key to each partition.
 * - An offset is committed only when every event before it is handled or in the dead letters. So after a
 *   crash some are handled again, and none is left out. For an effect that must happen once, keep the
 *   event's identity with the effect (`event_id` of a status change; topic, partition and offset of any).
 * - A handler that fails is called again after a pause; later events of its key wait, others go on.
 * - When members join or leave nothing new is begun, what is under way is waited for (up to a minute),
 *   and offsets are committed, before a partition changes hands.
 * - Where leaders move from broker to broker, kafkajs joins the group again over batches of other
 *   brokers that are in hand. For a moment two members may work on one key then, and its order across
 *   the two is not promised.
 * - A segment of which compaction has left nothing but headers of batches is not passed: kafkajs fetches
 *   it for ever. `replay` passes it.
 * - A slow handler does not lose the membership. It holds its partitions' next events back: no more is
 *   fetched until the events in hand are done, so memory is bounded (by some 10 MB a broker).
 * - While Kafka or the registry is away it is waited for.
 *
 * Unsubscribing stops in the same way as `stop$` does, in the background: what then fails is not
 * committed, and so handled by the next member.
 *
 * @throws RangeError when called, if `concurrency`, `retry.tries` or `deadLetters` is out of range.
 * Errors with what a handler failed with in all its tries, or `VALUE_UNREADABLE`, unless there are
 * dead letters; with CellarstreamError `POSITION` if a topic does not exist, `KAFKA_REFUSED`,
 * `REGISTRY_REFUSED`, `TOPIC_SETTINGS` if a dead letter is too large.
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
  const { scheduler = steadyScheduler, random = Math.random, stop$ = NEVER, onRetry } = options;
  const { concurrency = CONCURRENCY } = options;
  const retry = { ...RETRY, ...options.retry };
  const topic = topicOf<T>(options.topic);
  if (options.deadLetters === topic.name) {
    throw new RangeError(`deadLetters must be another topic than ${topic.name} itself`);
  }
  atLeastOne({ concurrency, 'retry.tries': retry.tries });

  return new Observable<Handled<T, R>>((subscriber) => {
    const leave$ = new ReplaySubject<void>(1);
    let leaving = false;
    const leave = () => {
      leaving = true;
      leave$.next();
    };
    let failure: { readonly error: unknown } | undefined;
    const fail = (error: unknown) => {
      failure ??= { error };
      leave();
    };
    const { kafka, registry, groupId } = options;
    const deadLetters =
      options.deadLetters === undefined
        ? undefined
        : kafkaDeadLetters(kafka, options.deadLetters, groupId);
    const attempt = handling<T, R>({
      topic: topic.name,
      registry,
      reader: messageReader(registry, topic),
      handle,
      retry,
      deadLetters,
      scheduler,
      random,
      hooks: options,
    });
    const work = keyedWork(concurrency, scheduler);

    const onBatch = async ({ partition, messages, handled, halt$ }: GroupBatch): Promise<void> => {
      const halted$ = merge(halt$, leave$);
      const done$ = work<KafkaMessage, Handled<T, R>>({
        items: messages,
        keyOf: ({ key }) => key?.toString('latin1') ?? null,
        work: (message, tries) => attempt(partition, message, tries, halted$),
        halt$: halted$,
      }).pipe(
        tap(({ result, doneBefore }) => {
          handled(doneBefore);
          if (result) subscriber.next(result);
        }),
      );
      try {
        await lastValueFrom(done$, { defaultValue: undefined });
      } catch (error) {
        fail(error);
      }
    };

    const member = async (): Promise<void> => {
      if (leaving) return;
      const partitions = await partitionCount({ kafka }, topic.name, RUN_FIRST);
      if (options.deadLetters !== undefined) {
        await partitionCount({ kafka }, options.deadLetters, create(options.deadLetters));
      }
      await takePart({
        kafka,
        topic: topic.name,
        partitions,
        group: {
          id: groupId,
          from: options.from ?? 'beginning',
          sessionTimeoutMs: options.sessionTimeoutMs ?? SESSION_TIMEOUT_MS,
        },
        scheduler,
        leave$,
        onBatch,
        onAssigned: options.onRebalance,
      });
    };
    const pauses = { maxMs: MAX_PAUSE_MS, scheduler, random, ...(onRetry && { onRetry }) };
    const { onCertificate } = options;
    if (onCertificate) {
      const source = certificatesSource(topic.name, options.certificates);
      const told$ = certificatesOf(kafka, source, leave$).pipe(
        backoff({ ...pauses, stop$: leave$ }),
        tap(onCertificate),
      );
      subscriber.add(told$.subscribe({ error: fail }));
    }
    const members$ = defer(member).pipe(backoff({ ...pauses, stop$: leave$ }));
    lastValueFrom(members$, { defaultValue: undefined })
      .catch(fail)
      .finally(() => deadLetters?.close())
      .then(
        () => (failure ? subscriber.error(failure.error) : subscriber.complete()),
        subscriber.error.bind(subscriber),
      );
    subscriber.add(stop$.pipe(take(1)).subscribe({ next: leave, error: fail }));
    subscriber.add(leave);
  });
}

const RUN_FIRST = 'is TOPIC_PREFIX the right one, and has `cellarstream run` made the topics?';

function create(topic: string): string {
  return `create it first, as with kafka-topics.sh --bootstrap-server HOST:PORT --create --topic ${topic}`;
}

function atLeastOne(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new RangeError(`${name} must be an integer >= 1, got ${value}`);
  }
}
