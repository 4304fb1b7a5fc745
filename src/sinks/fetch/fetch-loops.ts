// Fetches from all leaders of a topic at once, and connects anew when leaders move or Kafka was away.

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
import type { Offsets } from '../sink.ts';
import type { PartitionAnswer, Fetcher, FetcherOptions } from './kafka-fetcher.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, meaningOf, noLeader, partitionError } from '../client/protocol-errors.ts';
import { isOutOfRange, openFetcher } from './kafka-fetcher.ts';

interface FetchLoopsOptions<T> extends FetcherOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /** Waits for a Kafka that has been there and goes away; else that is an error. */
  readonly isPatient: boolean;
  /** Its first value ends them. It must replay that value. */
  readonly leave$: Observable<unknown>;
  /** What to fetch now, of the partitions that there are: what has waited longest comes first. */
  readonly wanted: (partitions: Iterable<number>) => Offsets;
  /** What a broker answered to a fetch of these offsets, made ready to be taken. */
  readonly prepare: (answers: readonly PartitionAnswer[], asked: Offsets) => Promise<T>;
  /** Takes it, unless another connection has fetched the same meanwhile. */
  readonly take: (prepared: T) => void;
}

interface FetchLoops {
  /** Resolves behind `leave$`, when nothing is left of them; rejects when they can't go on. */
  readonly done: Promise<void>;
  /** Looks again which partitions are wanted. */
  wake(): void;
}

/** Between two tries, ms: the first pause, which doubles, and the longest. */
const PAUSE_MS = { first: 250, most: 5_000 } as const;
/** Tries in a row, some eight seconds, where brokers don't agree who leads a partition and nobody is patient; or there is no such topic. */
const MAX_TRIES = 5;

/** Also of a topic that was made a moment ago. */
const NO_TOPIC = 3;

/**
 * Fetches from each broker that leads a partition, again and again, one fetch at a time. Ends with the
 * first error, and then begins anew with a new connection where that can pass: a leader has moved, or
 * Kafka is away and is waited for.
 *
 * `done` rejects with CellarstreamError: `KAFKA_UNREACHABLE`, where it is patient only at first;
 * `KAFKA_REFUSED`; `POSITION` when the topic is gone; and with what `prepare` and `take` throw.
 */
export function fetchLoops<T>(options: FetchLoopsOptions<T>): FetchLoops {
  const { kafka, topic, isPatient, leave$, wanted, prepare, take } = options;
  let hasConnected = false;
  let failures = 0;
  /** Of them, those since anything else happened in which there was no such topic. */
  let missing = 0;
  let wakeNewest = () => undefined as void;

  const loops = (fetcher: Fetcher) =>
    new Observable<never>((subscriber) => {
      /** Brokers that are fetched from just now. */
      const busy = new Set<number>();
      const fail = (error: unknown) => subscriber.error(error);
      const look = async (): Promise<void> => {
        const leaders = await fetcher.leaders();
        for (const partition of wanted(leaders.keys()).keys()) {
          const leader = leaders.get(partition);
          if (leader === undefined) throw partitionError(NO_TOPIC, topic, partition);
          if (leader === NOBODY) throw noLeader(topic, partition);
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
            [...wanted(leaders.keys())].filter(([each]) => leaders.get(each) === leader),
          );
          if (offsets.size === 0 || subscriber.closed) break;
          const answers = await fetcher.fetch(leader, offsets);
          const refused = answers.filter((each) => each.errorCode !== 0 && !isOutOfRange(each));
          const others = answers.filter((each) => !refused.includes(each));
          const prepared = await prepare(others, offsets);
          if (subscriber.closed) break;
          take(prepared);
          const [first] = refused;
          if (first) throw partitionError(first.errorCode, topic, first.partition); // behind what can be had of the others
          failures = missing = 0;
          wake(); // another broker may lead some of them now
        }
        busy.delete(leader);
        wake(); // something may have been wanted again meanwhile
      };
      wakeNewest = wake;
      wake();
    });
  const connection = async (): Promise<void> => {
    const opening = openFetcher(kafka, topic, options);
    const fetcher = await firstValueFrom(merge(opening, leave$.pipe(map(() => undefined))));
    if (!fetcher) {
      // Kafka may be away for minutes: nobody waits for that any more.
      opening.then((late) => late.close()).catch(() => undefined);
      return;
    }
    hasConnected = true;
    try {
      const until$ = loops(fetcher).pipe(takeUntil(leave$));
      await lastValueFrom(until$, { defaultValue: undefined });
    } finally {
      await fetcher.close().catch(() => undefined); // what came before it says more
    }
  };
  const canPass = (error: unknown) => {
    const code = codeOf(error);
    missing = code === NO_TOPIC ? missing + 1 : 0;
    if (code === NO_TOPIC) return missing <= MAX_TRIES;
    // The wrong broker was asked: metadata were too old, or too new for it.
    if (code !== undefined && meaningOf(code) === 'leader')
      return isPatient || failures < MAX_TRIES;
    return isPatient && hasConnected && isRetryable(kafkaError(error));
  };
  const pause = () => Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** failures++);
  const connections$ = defer(connection).pipe(
    retry({
      delay: (error: unknown) =>
        canPass(error)
          ? timer(pause()).pipe(takeUntil(leave$))
          : throwError(() => (codeOf(error) === NO_TOPIC ? gone(topic, error) : kafkaError(error))),
    }),
  );
  const done = lastValueFrom(connections$, { defaultValue: undefined });
  return { done, wake: () => wakeNewest() };
}

/** In metadata, of a partition without a leader. */
const NOBODY = -1;

/** The code that a broker has answered with, if that is behind the error. */
function codeOf(error: unknown): number | undefined {
  if (error instanceof kafkajs.KafkaJSProtocolError) return error.code;
  if (error instanceof kafkajs.KafkaJSBrokerNotFound) return ERROR.NOT_LEADER_OR_FOLLOWER;
  return error instanceof Error && error.cause ? codeOf(error.cause) : undefined;
}

function gone(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'POSITION',
    `topic ${topic} is gone, or has fewer partitions than before: was it deleted?`,
    {
      cause,
      context: { topic },
    },
  );
}
