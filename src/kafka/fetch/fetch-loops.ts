// Fetches a topic from all of its partition leaders at once, and reconnects when leaders move or Kafka was unreachable.

import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import {
  defer,
  firstValueFrom,
  lastValueFrom,
  map,
  merge,
  Observable,
  retry,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { Offsets } from '../log.ts';
import type { PartitionResponse, Fetcher, FetcherOptions } from './kafka-fetcher.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, errorAction, noLeaderError, partitionError } from '../client/protocol-errors.ts';
import { isOutOfRange, openFetcher } from './kafka-fetcher.ts';

interface FetchLoopsOptions<T> extends FetcherOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /** Whether outages of Kafka after the first connection are retried without limit; otherwise they are an error. */
  readonly retriesOutages: boolean;
  /** The first value ends the fetches. Must replay that value to late subscribers. */
  readonly leave$: Observable<unknown>;
  /** Returns the offsets to fetch now, from the existing partitions; the partition that has waited longest comes first. */
  readonly nextOffsets: (partitions: Iterable<number>) => Offsets;
  /** Decodes a broker's response to a fetch from the offsets `asked`. The result is passed to `take`. */
  readonly prepare: (answers: readonly PartitionResponse[], asked: Offsets) => Promise<T>;
  /** Receives a decoded response. Not called with responses of a connection that has been replaced. */
  readonly take: (prepared: T) => void;
}

interface FetchLoops {
  /** Resolves after `leave$` has emitted and the connection is closed; rejects with an error that is not retried. */
  readonly done: Promise<void>;
  /** Calls `nextOffsets` again, and begins to fetch partitions that it returns. */
  wake(): void;
}

/** Pauses before a new attempt to fetch, in ms: the first one, which doubles with each failure, and the longest. */
const PAUSE_MS = { first: 250, most: 5_000 } as const;
/**
 * Number of consecutive attempts, some eight seconds, after which an error is final: brokers do not know the topic, or they do not agree on
 * a partition's leader and outages are not retried. Too small: a new topic, or an election of a leader, is an error.
 */
const MAX_TRIES = 5;

/** Error code UNKNOWN_TOPIC_OR_PARTITION, which brokers also return for a topic that was created a moment ago. */
const NO_TOPIC = 3;

/**
 * Fetches repeatedly from every broker that leads a partition, with one fetch per broker in flight. The first error ends all fetches; if it
 * can pass (a leader has moved, or Kafka is unreachable and outages are retried) they are restarted with a new connection.
 *
 * `done` rejects with CellarstreamError: `KAFKA_UNREACHABLE` if Kafka can't be reached at first, or later without `retriesOutages`;
 * `KAFKA_REFUSED`; `POSITION` if the topic was deleted; and with the errors of `prepare` and `take`.
 */
export function fetchLoops<T>(options: FetchLoopsOptions<T>): FetchLoops {
  const { kafka, topic, retriesOutages, leave$, nextOffsets, prepare, take } = options;
  let hasConnected = false;
  let failures = 0;
  /** Number of consecutive failures because the topic or partition is unknown. */
  let missing = 0;
  let wakeNewest = () => undefined as void;

  const loops = (fetcher: Fetcher) =>
    new Observable<never>((subscriber) => {
      /** Ids of the brokers to which a fetch is in flight. */
      const busy = new Set<number>();
      const fail = (error: unknown) => subscriber.error(error);
      const look = async (): Promise<void> => {
        const leaders = await fetcher.leaders();
        for (const partition of nextOffsets(leaders.keys()).keys()) {
          const leader = leaders.get(partition);
          if (leader === undefined) throw partitionError(NO_TOPIC, topic, partition);
          if (leader === NO_LEADER_ID) throw noLeaderError(topic, partition);
          if (busy.has(leader)) continue;
          busy.add(leader);
          loop(leader).catch(fail);
        }
      };
      const wake = () => {
        if (!subscriber.closed) look().catch(fail);
      };
      const loop = async (leader: number): Promise<void> => {
        for (;;) {
          const leaders = await fetcher.leaders();
          const offsets = new Map(
            [...nextOffsets(leaders.keys())].filter(([each]) => leaders.get(each) === leader),
          );
          if (offsets.size === 0 || subscriber.closed) break;
          const answers = await fetcher.fetch(leader, offsets);
          const refused = answers.filter((each) => each.errorCode !== 0 && !isOutOfRange(each));
          const others = answers.filter((each) => !refused.includes(each));
          const prepared = await prepare(others, offsets);
          if (subscriber.closed) break;
          take(prepared);
          const [first] = refused;
          if (first) throw partitionError(first.errorCode, topic, first.partition); // after the other partitions' messages have been taken
          failures = missing = 0;
          wake(); // another broker may lead some partitions by now
        }
        busy.delete(leader);
        wake(); // a partition may have been resumed meanwhile
      };
      wakeNewest = wake;
      wake();
    });
  const connection = async (): Promise<void> => {
    const opening = openFetcher(kafka, topic, options);
    const fetcher = await firstValueFrom(merge(opening, leave$.pipe(map(() => undefined))));
    if (!fetcher) {
      // `leave$` came first. Connecting may still take minutes, so it is not awaited; the connection is closed once it is there.
      opening.then((late) => late.close()).catch(() => undefined);
      return;
    }
    hasConnected = true;
    try {
      const until$ = loops(fetcher).pipe(takeUntil(leave$));
      await lastValueFrom(until$, { defaultValue: undefined });
    } finally {
      await fetcher.close().catch(() => undefined); // the earlier error says more
    }
  };
  const canPass = (error: unknown) => {
    const code = codeOf(error);
    missing = code === NO_TOPIC ? missing + 1 : 0;
    if (code === NO_TOPIC) return missing <= MAX_TRIES;
    // The broker does not lead the partition: either our metadata or the broker's own are outdated.
    if (code !== undefined && errorAction(code) === 'leader')
      return retriesOutages || failures < MAX_TRIES;
    return retriesOutages && hasConnected && isRetryable(kafkaError(error));
  };
  const pause = () => Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** failures++);
  const connections$ = defer(connection).pipe(
    retry({
      delay: (error: unknown) =>
        canPass(error)
          ? timer(pause()).pipe(takeUntil(leave$))
          : throwError(() =>
              codeOf(error) === NO_TOPIC ? topicDeletedError(topic, error) : kafkaError(error),
            ),
    }),
  );
  const done = lastValueFrom(connections$, { defaultValue: undefined });
  return { done, wake: () => wakeNewest() };
}

/** Leader id in the metadata of a partition that has no leader. */
const NO_LEADER_ID = -1;

/** Returns Kafka's error code in the error or its causes; undefined if no broker responded with one. */
function codeOf(error: unknown): number | undefined {
  if (error instanceof kafkajs.KafkaJSProtocolError) return error.code;
  if (error instanceof kafkajs.KafkaJSBrokerNotFound) return ERROR.NOT_LEADER_OR_FOLLOWER;
  return error instanceof Error && error.cause ? codeOf(error.cause) : undefined;
}

function topicDeletedError(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'POSITION',
    `topic ${topic} does not exist, or has fewer partitions than before: was it deleted?`,
    {
      cause,
      context: { topic },
    },
  );
}
