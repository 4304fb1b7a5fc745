// The topic of signals: read from its beginning by one or, over one reader, by many; now and then written to.

import {
  firstValueFrom,
  map,
  Observable,
  race,
  timer,
  defer,
  from,
  ReplaySubject,
  share,
  switchMap,
  take,
  tap,
} from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Offsets, TailMessage, Bounds, Message } from '../sink.ts';
import { openReader } from '../fetch/kafka-reader.ts';
import type { TopicReader } from '../fetch/kafka-reader.ts';
import { topicBounds } from '../client/topic-facts.ts';
import type { Asked } from '../client/brokers.ts';
import { plainProducer } from '../producer/plain-producer.ts';
import { askedTogether } from '../../core/asked-together.ts';

/** What of a partition has been read, in one go. */
export interface SignalBatch {
  readonly partition: number;
  /** Committed ones, in order. */
  readonly messages: readonly Pick<TailMessage, 'offset' | 'key' | 'value'>[];
  /** The offset to go on at: behind markers too. */
  readonly next: bigint;
}

/** A topic that is read from its beginning, and now and then written to. */
export interface SignalTopic {
  readonly name: string;
  /** Where it ends just now. @throws CellarstreamError `POSITION` when there is no such topic. */
  readonly ends: () => Promise<Offsets>;
  /**
   * What is committed, from these offsets or the topic's beginning; completes at the end as of now,
   * unless it is to follow. Errors with CellarstreamError.
   */
  readonly read: (options: { from: Offsets; follow: boolean }) => Observable<SignalBatch>;
  /** Resolves when the brokers have it. @throws CellarstreamError `KAFKA_UNREACHABLE`, ... */
  readonly send: (message: Message) => Promise<void>;
  /**
   * Resolves when the connections of readings that were unsubscribed from are closed, in two seconds at
   * the latest: a fetch that is not answered holds up no stop.
   */
  readonly close: () => Promise<void>;
}

const RUN_FIRST =
  '`cellarstream run` makes it when it starts; is TOPIC_PREFIX that of the service?';
/** How long a broker waits for a signal. There is no other partition that it could be asked for meanwhile. */
const WAIT_MS = 1_000;
/** A broker that is away holds up no stop. */
const CLOSE_WITHIN_MS = 2_000;

/**
 * @param links Connections that others use too, for where it begins and ends: each list asks that as it begins, and all
 * who ask at once are asked for once.
 */
export function kafkaSignals(links: Asked, name: string): SignalTopic {
  const { kafka } = links;
  const closing = new Set<Promise<void>>();
  const bounds = askedTogether(() => topicBounds(links, name, RUN_FIRST));
  return {
    name,
    ends: async () => new Map([...(await bounds())].map(([at, { high }]) => [at, high])),
    read: ({ from, follow }) =>
      new Observable((subscriber) => {
        let reader: TopicReader | undefined;
        bounds()
          .then((found) => {
            if (subscriber.closed) return;
            reader = openReader({
              kafka,
              topic: name,
              range: {
                from: new Map([...found].map(([at, bound]) => [at, within(bound, from.get(at))])),
                ends: new Map([...found].map(([at, { high }]) => [at, high])),
              },
              follow,
              isPatient: false,
              waitMs: WAIT_MS,
              onBatch: (batch) => subscriber.next(batch),
            });
            return reader.done.then(() => subscriber.complete());
          })
          .catch((error: unknown) => subscriber.error(error));
        return () => {
          // How a reader that nobody listens to is closed is of no more interest.
          const closed = reader?.close().catch(() => undefined);
          if (!closed) return;
          closing.add(closed);
          void closed.then(() => closing.delete(closed));
        };
      }),
    send: async (message) => {
      const producer = plainProducer(kafka);
      try {
        await producer.send(message.topic, message);
      } finally {
        producer.close();
      }
    },
    close: () =>
      firstValueFrom(race(Promise.all(closing), timer(CLOSE_WITHIN_MS)).pipe(map(() => undefined))),
  };
}

/**
 * What was deleted by its age is no loss.
 *
 * @throws CellarstreamError `POSITION` when the topic was made anew.
 */
function within({ low, high }: Bounds, at = 0n): bigint {
  if (at <= high) return at < low ? low : at;
  throw new CellarstreamError(
    'POSITION',
    'the topic of signals was made anew: it is read from its beginning',
  );
}

/**
 * A topic that many follow, over one reader: whoever comes reads what stands before by itself, and then shares. What
 * comes in between may come twice.
 */
export function sharedSignals(topic: SignalTopic): SignalTopic {
  /** Emits when it is known where the shared reader begins: what is read to the end after that joins it without a gap. */
  let begun$ = new ReplaySubject<void>(1);
  const live$ = defer(() => {
    const begins$ = (begun$ = new ReplaySubject<void>(1));
    return from(topic.ends()).pipe(
      tap(() => begins$.next()),
      switchMap((ends) => topic.read({ from: ends, follow: true })),
    );
  }).pipe(share());

  const follow = (options: Parameters<SignalTopic['read']>[0]) =>
    new Observable<SignalBatch>((subscriber) => {
      /** What comes while the rest is read: of a topic that people write to by hand. */
      let waiting: SignalBatch[] | undefined = [];
      const failed = (error: unknown) => subscriber.error(error);
      subscriber.add(
        live$.subscribe({
          next: (batch) => (waiting ? void waiting.push(batch) : subscriber.next(batch)),
          error: failed,
        }),
      );
      const before$ = begun$.pipe(
        take(1),
        switchMap(() => topic.read({ ...options, follow: false })),
      );
      subscriber.add(
        before$.subscribe({
          next: (batch) => subscriber.next(batch),
          error: failed,
          complete: () => {
            for (const batch of waiting ?? []) subscriber.next(batch);
            waiting = undefined;
          },
        }),
      );
    });
  return {
    ...topic,
    read: (options) => (options.follow ? follow(options) : topic.read(options)),
  };
}
