// The signals topic: read from its beginning, by one subscriber or by many over a shared reader; and written to.

import {
  concat,
  concatMap,
  firstValueFrom,
  map,
  merge,
  mergeMap,
  Observable,
  race,
  timer,
  defer,
  from,
  ReplaySubject,
  share,
  Subject,
  switchMap,
  take,
  tap,
} from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Bounds, KeyedMessage, Offsets } from '../../kafka/log.ts';
import type { Message } from '../sink.ts';
import { TopicReader } from '../../kafka/fetch/kafka-reader.ts';
import { topicBounds } from '../../kafka/client/topic-facts.ts';
import type { ClusterAccess } from '../../kafka/client/brokers.ts';
import { PlainProducer } from '../producer/plain-producer.ts';
import { singleFlight } from '../../core/single-flight.ts';
import { parseSignal } from './signals.ts';
import type { CertifyRequest, PermitsRequest, ResyncRequest, Signal, Signals } from './signals.ts';

export interface SignalBatch {
  readonly partition: number;
  /** Committed messages in the order of their offsets. */
  readonly messages: readonly KeyedMessage[];
  /** Offset at which to continue reading: after the messages, and after the transaction markers that follow them. */
  readonly next: bigint;
}

/** Access to the signals topic: reads it from given offsets (by default from its beginning), and writes single messages. */
export interface SignalTopic {
  readonly name: string;
  /** Returns the current end offset of each partition. @throws CellarstreamError `POSITION` if the topic does not exist. */
  readonly ends: () => Promise<Offsets>;
  /**
   * Emits the committed messages of the signals topic from the offsets `from` on. A partition that `from` lacks is read from its beginning.
   * With `follow`, continues with new messages; otherwise completes at the end offsets as of the subscription.
   */
  readonly read: (options: { from: Offsets; follow: boolean }) => Observable<SignalBatch>;
  /** Writes a message. Resolves when all in-sync replicas have the message. @throws CellarstreamError, such as `KAFKA_UNREACHABLE`. */
  readonly send: (message: Message) => Promise<void>;
  /** Resolves when the connections of all ended reads are closed, or after two seconds. Reads that still have a subscriber continue. */
  readonly close: () => Promise<void>;
}

const MISSING_TOPIC_ADVICE =
  '`cellarstream run` creates it when it starts; check that TOPIC_PREFIX is that of the service';
/** How long a broker waits for new messages before it responds, in ms. A long wait does no harm: the connection fetches no other topic. */
const FETCH_WAIT_MS = 1_000;
/** Longest wait for connections to close, in ms. If it is too large, an unreachable broker delays the end of the process. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Opens the signals topic. Concurrent callers share one request for the first and end offsets. */
export function kafkaSignals(links: ClusterAccess, name: string): SignalTopic {
  const { kafka } = links;
  const closing = new Set<Promise<void>>();
  const bounds = singleFlight(() => topicBounds(links, name, MISSING_TOPIC_ADVICE));
  return {
    name,
    ends: async () => new Map([...(await bounds())].map(([at, { high }]) => [at, high])),
    read: ({ from, follow }) =>
      new Observable((subscriber) => {
        let reader: TopicReader | undefined;
        bounds()
          .then((found) => {
            if (subscriber.closed) return;
            reader = new TopicReader({
              kafka,
              topic: name,
              range: {
                from: new Map(
                  [...found].map(([at, bound]) => [at, clampToBounds(name, bound, from.get(at))]),
                ),
                ends: new Map([...found].map(([at, { high }]) => [at, high])),
              },
              follow,
              retriesOutages: false,
              waitMs: FETCH_WAIT_MS,
              onBatch: (batch) => subscriber.next(batch),
            });
            return reader.done.then(() => subscriber.complete());
          })
          .catch((error: unknown) => subscriber.error(error));
        return () => {
          // After unsubscribing there is no subscriber to report an error of closing to.
          const closed = reader?.close().catch(() => undefined);
          if (!closed) return;
          closing.add(closed);
          void closed.then(() => closing.delete(closed));
        };
      }),
    send: async (message) => {
      const producer = new PlainProducer(kafka);
      try {
        await producer.send(message.topic, message);
      } finally {
        producer.close();
      }
    },
    close: () =>
      firstValueFrom(
        race(Promise.all(closing), timer(CLOSE_TIMEOUT_MS)).pipe(map(() => undefined)),
      ),
  };
}

/**
 * Returns the offset at which to begin reading: `at`, or the first offset if retention has deleted the message at `at`.
 *
 * @throws CellarstreamError `POSITION` if `at` is beyond the end, which shows that the topic was recreated.
 */
function clampToBounds(topic: string, { low, high }: Bounds, at = 0n): bigint {
  if (at <= high) return at < low ? low : at;
  throw new CellarstreamError(
    'POSITION',
    `${topic}, the topic of requests between the processes of the service, was deleted and recreated: a service reads the new topic from its beginning; if a command ended with this error, run it again`,
  );
}

/**
 * Creates a view of the signals topic in which all subscribers with `follow` share one reader of new messages. A new subscriber first reads
 * the existing messages; those that arrive meanwhile may be emitted twice.
 */
export function sharedSignals(topic: SignalTopic): SignalTopic {
  /**
   * Emits when the start offsets of the shared reader are known. Only then does a new subscriber begin to read the existing messages. Its
   * read thus ends at or after the shared reader's start offsets, and no message is missed.
   */
  let begun$ = new ReplaySubject<void>(1);
  const live$ = defer(() => {
    const begins$ = (begun$ = new ReplaySubject<void>(1));
    return from(topic.ends()).pipe(
      tap(() => begins$.next()),
      switchMap((ends) => topic.read({ from: ends, follow: true })),
    );
  }).pipe(share());

  const follow = (options: Parameters<SignalTopic['read']>[0]) =>
    defer(() => {
      /** Completes when this subscriber has read the existing messages. Batches of the shared reader wait for that. */
      const caughtUp$ = new Subject<never>();
      const new$ = live$.pipe(concatMap((batch) => concat(caughtUp$, [batch])));
      // Deferred, because subscribing to `live$` may replace `begun$`.
      const existing$ = defer(() => begun$).pipe(
        take(1),
        switchMap(() => topic.read({ ...options, follow: false })),
        tap({ complete: () => caughtUp$.complete() }),
      );
      return merge(new$, existing$);
    });
  return {
    ...topic,
    read: (options) => (options.follow ? follow(options) : topic.read(options)),
  };
}

type SignalRequest = ResyncRequest | CertifyRequest | PermitsRequest;

/**
 * Type of the acknowledgements of a request. A resync or certify request is acknowledged once for each of its lists, a permits request once
 * for all its quotas.
 */
export type AckOf<R extends SignalRequest> = Signals[`${R['type']}-ack`];

/**
 * Reads the signals topic from the offsets `from` on, and emits the acknowledgements of one request. Does not complete. Errors with a
 * CellarstreamError.
 */
export function acknowledgementsOf<R extends SignalRequest>(
  topic: SignalTopic,
  { type, id, account }: R,
  from: Offsets,
): Observable<AckOf<R>> {
  const isAck = (signal: Signal): signal is AckOf<R> =>
    signal.type === `${type}-ack` && signal.account === account;
  return topic.read({ from, follow: true }).pipe(
    mergeMap(({ messages }) => messages.filter(({ key }) => key?.toString() === id)),
    mergeMap((message) => [parseSignal(message)].filter(isAck)),
  );
}
