// Reads a topic once or for ever, without a consumer group.

import type { Kafka, KafkaMessage } from 'kafkajs';
import {
  concat,
  connect,
  defer,
  EMPTY,
  from as fromInput,
  ignoreElements,
  map,
  merge,
  NEVER,
  of,
  ReplaySubject,
  Subject,
  switchMap,
  take,
  takeUntil,
  tap,
} from 'rxjs';
import type { Observable, ObservableInput } from 'rxjs';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { timeOrder } from '../sinks/fetch/batch-queue.ts';
import type { PartitionBatch, Range } from '../sinks/fetch/kafka-reader.ts';
import { readBatches } from '../sinks/fetch/read-batches.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';
import { inTurn } from '../streams/flow/in-turn.ts';
import {
  certificatesSource,
  laterCertificates,
  openCertificates,
  PassedCertificates,
} from './certificates.ts';
import type {
  CertificatesOptions,
  OpenedCertificates,
  PublishedCertificate,
} from './certificates.ts';
import { messageReader } from './consumed.ts';
import type { Consumed } from './consumed.ts';
import { resolveRange } from './position.ts';
import type { From, To } from './position.ts';
import { topicOf } from './topic.ts';
import type { Topic, ValueIn } from './topic.ts';
import { keyText } from '../schemas/events/record-key.ts';

/** Where to read from, and which topic. */
export interface Source<T> {
  readonly kafka: Kafka;
  readonly registry: Registry;
  readonly topic: Topic<T>;
}

export interface ReplayOptions<T> extends Source<T> {
  /** Default `beginning`. */
  readonly from?: From;
  /** Default `latest`: completes when all has been read that was there at the start. */
  readonly to?: To;
  /** Only messages of this key, or of one of these; others are not even decoded. */
  readonly key?: string | readonly string[];
  /**
   * `arrival` (the default): in order within each partition. `time`: partitions merged by the time at
   * which their messages were published, as far as these are there at the start.
   */
  readonly order?: 'arrival' | 'time';
  /** Called once, when all has been handed over that was there at the start; not behind `stop$`. */
  readonly onCaughtUp?: () => void;
  /**
   * Its first value, whenever it comes, ends the replay behind the batch in hand; it completes then.
   * An error of it is the replay's.
   */
  readonly stop$?: Observable<unknown>;
  /** Told before each pause while the registry is away, where `to` is `never`. */
  readonly onRetry?: (retry: Retry) => void;
  /**
   * Told of the list's newest certificate, and of each that comes, when all has been handed over that is before its
   * positions; what is behind them may have been, too. Not told of one whose positions it does not come to.
   */
  readonly onCertificate?: (published: PublishedCertificate) => void;
  /** Where certificates are. Default next to a resource's topic, of the one account that is there. */
  readonly certificates?: CertificatesOptions;
}

/** Between two tries to reach the registry, at most: a long outage is not made longer. */
const MAX_PAUSE_MS = 5_000;

/** {@link ReplayOptions} of a topic by its name: a resource's events as JSON, status changes or dead letters. */
export interface ReplayByNameOptions<Name extends string = string> extends Omit<
  ReplayOptions<ChangeEvent>,
  'topic'
> {
  readonly topic: Name;
}

/**
 * What was published to a topic, and may still be: decoded messages, only those that are committed,
 * in order within each partition. Completes exactly at its end. Needs no consumer group, and
 * keeps nothing at the broker. To resume,
 * keep {@link positionAfter} each message and give it as `from`.
 *
 * Fetches no further while what was fetched is not handed over. Emits as fast as it is subscribed to;
 * what takes time belongs into `handle`: an operator behind it, such as concatMap, would queue.
 *
 * A Kafka that goes away is waited for; one that is not there at the start is an error.
 *
 * Cold: each subscription is a replay of its own.
 *
 * @throws CellarstreamError through the Observable: `POSITION` (no such topic, partition or offset;
 * or retention was quicker), `VALUE_UNREADABLE`, `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`,
 * `REGISTRY_UNREACHABLE` (waited for where `to` is `never`), `REGISTRY_REFUSED`.
 *
 * @example
 * ```ts
 * import { replay, topicsUnder } from 'cellarstream/consume';
 * import { createRegistry } from 'cellarstream/schemas';
 * import { Kafka } from 'kafkajs';
 *
 * const kafka = new Kafka({ brokers: ['127.0.0.1:9092'] });
 * const registry = createRegistry({ url: 'http://127.0.0.1:8081/apis/ccompat/v7' });
 * const from = new Date('2026-01-31'); // what was published since, up to now
 * replay({ kafka, registry, topic: topicsUnder().orders, from }).subscribe({
 *   next: ({ key, value }) => console.log(key, value?.op, value?.changed),
 *   error: console.error,
 * });
 * ```
 */
export function replay<T>(options: ReplayOptions<T>): Observable<Consumed<T>>;
export function replay<Name extends string>(
  options: ReplayByNameOptions<Name>,
): Observable<Consumed<ValueIn<Name>>>;
/**
 * The same with each message handed to `handle`: the next one comes when what it gave (a promise, an
 * Observable) is done. Emits what `handle` gives.
 */
export function replay<T, R>(
  options: ReplayOptions<T>,
  handle: (message: Consumed<T>) => ObservableInput<R>,
): Observable<R>;
export function replay<R, Name extends string>(
  options: ReplayByNameOptions<Name>,
  handle: (message: Consumed<ValueIn<Name>>) => ObservableInput<R>,
): Observable<R>;
export function replay<T>(
  options: ReplayOptions<T> | ReplayByNameOptions,
  handle?: (message: Consumed<T>) => ObservableInput<unknown>,
): Observable<unknown> {
  const { kafka, registry, from = 'beginning', to = 'latest', key, order } = options;
  const { onCaughtUp, onRetry, onCertificate, stop$ = NEVER } = options;
  const topic = topicOf<T>(options.topic);
  const keys = key === undefined ? undefined : new Set(typeof key === 'string' ? [key] : key);
  const since = from instanceof Date ? from.getTime() : -Infinity;
  const isWanted = ({ key, timestamp }: KafkaMessage) =>
    (!keys || (key !== null && keys.has(keyText(key)))) && Number(timestamp) >= since;
  const follow = to === 'never';
  const source = onCertificate && certificatesSource(topic.name, options.certificates);

  const replayUntil = (stopped$: Observable<unknown>): Observable<unknown> => {
    const reader = messageReader(registry, topic);
    const wait = { maxMs: MAX_PAUSE_MS, stop$: stopped$, ...(onRetry && { onRetry }) };
    const events = (batch: PartitionBatch): Observable<unknown> => {
      const messages = batch.messages.filter(isWanted);
      const prepared$ = defer(() => reader.prepare(messages));
      const read = (message: KafkaMessage) => reader.read(batch.partition, message);
      return (follow ? prepared$.pipe(backoff(wait)) : prepared$).pipe(
        // Read one by one: what is before a value that can't be read is dealt with.
        switchMap(() =>
          handle
            ? inTurn(messages, (message) => handle(read(message)))
            : fromInput(messages).pipe(map(read)),
        ),
      );
    };
    const readRange = (
      range: Range,
      handleBatch: (batch: PartitionBatch) => Observable<unknown>,
    ): Observable<unknown> =>
      readBatches(
        {
          kafka,
          topic: topic.name,
          range,
          follow,
          stop$: stopped$,
          ...(onCaughtUp && { onCaughtUp }),
          ...(order === 'time' && { queue: timeOrder(range.from, range.ends) }),
        },
        handleBatch,
      );
    /** Certificates come beside the events, and are told behind them. */
    const withCertificates = (
      range: Range,
      { newest, end }: OpenedCertificates,
      onPassed: (published: PublishedCertificate) => void,
    ): Observable<unknown> => {
      const passed = new PassedCertificates(range.from, onPassed);
      const over$ = new Subject<void>();
      const later$ = laterCertificates(kafka, source!, end, over$);
      const read$ = readRange(range, (batch) => {
        const isRead = () => passed.readTo(batch.partition, batch.next);
        return events(batch).pipe(tap({ complete: isRead }));
      });
      return merge(
        read$.pipe(tap({ complete: () => over$.next() })),
        concat(newest ? of(newest) : EMPTY, later$).pipe(
          tap((published) => passed.add(published)),
          ignoreElements(),
        ),
      );
    };
    return defer(async () => {
      // First, so that its positions are in the range.
      const opened = source && (await openCertificates(kafka, source));
      return { opened, range: await resolveRange(kafka, topic.name, from, to) };
    }).pipe(
      takeUntil(stopped$),
      switchMap(({ opened, range }) =>
        opened ? withCertificates(range, opened, onCertificate!) : readRange(range, events),
      ),
    );
  };
  // From the subscription on, and remembered: it may come before anything listens for it.
  return stop$.pipe(take(1), connect(replayUntil, { connector: () => new ReplaySubject(1) }));
}
