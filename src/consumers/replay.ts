// Reads a topic without a consumer group: a range of it, or continuously.

import type { Kafka, KafkaMessage } from 'kafkajs';
import { PAUSES } from '../core/retries.ts';
import {
  connect,
  defer,
  from as fromInput,
  ignoreElements,
  map,
  merge,
  NEVER,
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
import { timeOrder } from '../kafka/fetch/batch-queue.ts';
import type { PartitionBatch, Range } from '../kafka/fetch/kafka-reader.ts';
import { readBatches } from '../kafka/fetch/read-batches.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';
import { inTurn } from '../streams/flow/in-turn.ts';
import {
  certificatesSource,
  certificatesSince,
  openCertificates,
  CertificateWatermarks,
} from './certificates.ts';
import type {
  CertificatesOptions,
  OpenedCertificates,
  PublishedCertificate,
} from './certificates.ts';
import { MessageReader } from './consumed.ts';
import type { Consumed } from './consumed.ts';
import { resolveRange } from './position.ts';
import type { From, To } from './position.ts';
import { topicOf } from './topic.ts';
import type { Topic, ValueIn } from './topic.ts';
import { keyText } from '../schemas/events/record-key.ts';

/** The Kafka client, the registry and the topic to read. */
export interface Source<T> {
  readonly kafka: Kafka;
  readonly registry: Registry;
  readonly topic: Topic<T>;
}

export interface ReplayOptions<T> extends Source<T> {
  /** Where the replay begins. Default `beginning`. */
  readonly from?: From;
  /** Where the replay ends. Default `latest`: it completes after the messages that existed when it started. */
  readonly to?: To;
  /** Key or keys of the messages to emit. Messages with other keys are skipped without being decoded. Default: all messages. */
  readonly key?: string | readonly string[];
  /**
   * Order in which messages are emitted:
   *
   * - `arrival` (the default): in offset order within each partition, in no order between partitions.
   * - `time`: by publish time across partitions for messages that exist when the replay starts, then as with `arrival`.
   */
  readonly order?: 'arrival' | 'time';
  /** Called once, after every message of the range that existed at the start has been delivered. Not called after `stop$` has emitted. */
  readonly onCaughtUp?: () => void;
  /** The first value stops the replay: it finishes the current batch and completes. An error of `stop$` becomes an error of the replay. */
  readonly stop$?: Observable<unknown>;
  /** Called before each pause that precedes a retry of a request to the registry. Requests are retried only if `to` is `never`. */
  readonly onRetry?: (retry: Retry) => void;
  /**
   * Called with the list's newest certificate and with each later one, once the replay has read up to the certificate's positions. A
   * certificate states count and digest of the list's records after a full scan.
   */
  readonly onCertificate?: (published: PublishedCertificate) => void;
  /**
   * Where the list's certificates are published. Default `<prefix>.certificates`, with the prefix of the list's topic. Must be set in a
   * fleet.
   */
  readonly certificates?: CertificatesOptions;
}

/** {@link ReplayOptions} with the name of a topic. The name determines the TypeScript type of the values: see {@link ValueIn}. */
export interface ReplayByNameOptions<Name extends string = string> extends Omit<
  ReplayOptions<ChangeEvent>,
  'topic'
> {
  readonly topic: Name;
}

/**
 * Emits the decoded messages of a topic from `from` to `to`: only committed messages, in offset order within each partition. Completes at
 * `to`. It uses no consumer group. To resume, pass the position after the last processed message as `from`: see {@link positionAfter}.
 *
 * Backpressure: the next batch is fetched only after the current one has been delivered. Without `handle`, messages are emitted without
 * waiting for the subscriber, so do slow work in `handle`.
 *
 * If Kafka becomes unavailable during the replay, the replay waits for it; if Kafka is unavailable at the start, the replay errors.
 *
 * Cold: each subscription starts its own replay.
 *
 * @throws CellarstreamError through the Observable: `POSITION` (no such topic, partition or offset, or messages were deleted before they
 * were read), `VALUE_UNREADABLE`, `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, `REGISTRY_UNREACHABLE` (retried instead if `to` is `never`),
 * `REGISTRY_REFUSED`, `TLS_REFUSED`.
 *
 * @example
 * ```ts
 * import { replay, topicsUnder } from 'cellarstream/consume';
 * import { createRegistry } from 'cellarstream/schemas';
 * import { Kafka } from 'kafkajs';
 *
 * const kafka = new Kafka({ brokers: ['127.0.0.1:9092'] });
 * const registry = createRegistry({ url: 'http://127.0.0.1:8081/apis/ccompat/v7' });
 * const from = new Date('2026-01-31'); // messages published since then, up to now
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
 * Replays a topic and passes the messages to `handle`, one at a time. Emits the values of the promises or Observables that `handle`
 * returns.
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
    const reader = new MessageReader(registry, topic);
    const wait = { ...PAUSES.restart, stop$: stopped$, onRetry };
    const events = (batch: PartitionBatch): Observable<unknown> => {
      const messages = batch.messages.filter(isWanted);
      const prepared$ = defer(() => reader.prepare(messages));
      const read = (message: KafkaMessage) => reader.read(batch.partition, message);
      return (follow ? prepared$.pipe(backoff(wait)) : prepared$).pipe(
        // Decodes one message at a time, so that messages before an undecodable one are delivered.
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
    /** Reads events and certificates concurrently; reports a certificate once all events before its offsets have been delivered. */
    const withCertificates = (
      range: Range,
      opened: OpenedCertificates,
      onPassed: (published: PublishedCertificate) => void,
    ): Observable<unknown> => {
      const passed = new CertificateWatermarks(range.from, onPassed);
      const over$ = new Subject<void>();
      const certificate$ = certificatesSince(kafka, source!, opened, over$);
      const read$ = readRange(range, (batch) => {
        const isRead = () => passed.advanceTo(batch.partition, batch.next);
        return events(batch).pipe(tap({ complete: isRead }));
      });
      return merge(
        read$.pipe(tap({ complete: () => over$.next() })),
        certificate$.pipe(
          tap((published) => passed.add(published)),
          ignoreElements(),
        ),
      );
    };
    return defer(async () => {
      // Reads the newest certificate before it resolves the range, so that the certificate's positions are within the range.
      const opened = source && (await openCertificates(kafka, source));
      return { opened, range: await resolveRange(kafka, topic.name, from, to) };
    }).pipe(
      takeUntil(stopped$),
      switchMap(({ opened, range }) =>
        opened ? withCertificates(range, opened, onCertificate!) : readRange(range, events),
      ),
    );
  };
  // Subscribes to `stop$` at once and replays its first value, which may arrive before any operator inside listens for it.
  return stop$.pipe(take(1), connect(replayUntil, { connector: () => new ReplaySubject(1) }));
}
