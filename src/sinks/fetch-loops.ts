import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { defer, lastValueFrom, Observable, retry, takeUntil, throwError, timer } from 'rxjs';
import { isRetryable } from '../errors.ts';
import type { Offsets } from './broker.ts';
import type { PartitionAnswer } from './fetch-answer.ts';
import { kafkaError } from './kafka-error.ts';
import { openFetcher } from './kafka-fetcher.ts';
import type { Fetcher } from './kafka-fetcher.ts';

export interface FetchLoopsOptions<T> {
  readonly kafka: Kafka;
  readonly topic: string;
  /** Waits for a Kafka that has been there and goes away; else that is an error. */
  readonly isPatient: boolean;
  /** Its first value ends them. It must replay that value. */
  readonly leave$: Observable<unknown>;
  /** Of these partitions, those to fetch now and their offsets: what has waited longest comes first. */
  readonly wanted: (partitions: readonly number[]) => Offsets;
  /** What a broker answered to a fetch of these offsets, made ready to be taken. */
  readonly prepare: (answers: readonly PartitionAnswer[], asked: Offsets) => Promise<T>;
  /** Answers of one partition come one after the other: it is fetched again when this has returned. */
  readonly take: (prepared: T) => void;
}

export interface FetchLoops {
  /** Resolves behind `leave$`, when nothing is left of them; rejects when they can't go on. */
  readonly done: Promise<void>;
  /** Looks again which partitions are wanted. */
  wake(): void;
}

/** Between two tries, ms: the first pause, which doubles, and the longest. */
const PAUSE_MS = { first: 250, most: 5_000 } as const;
/** Tries in a row where brokers don't agree who leads a partition, and nobody is patient: some eight seconds. */
const MOST_MOVED = 5;

/**
 * Fetches from each broker that leads a partition, again and again, one fetch at a time. Ends with the
 * first error, and then begins anew with a new connection where that can pass: a leader has moved, or
 * Kafka is away and is waited for.
 *
 * `done` rejects with CellarstreamError: `KAFKA_UNREACHABLE`, where it is patient only at first;
 * `KAFKA_REFUSED`; and with what `prepare` and `take` throw.
 */
export function fetchLoops<T>(options: FetchLoopsOptions<T>): FetchLoops {
  const { kafka, topic, isPatient, leave$, wanted, prepare, take } = options;
  let hasConnected = false;
  let failures = 0;
  let wake = () => undefined as void;

  const loops = (fetcher: Fetcher) =>
    new Observable<never>((subscriber) => {
      /** Brokers that are fetched from just now. */
      const busy = new Set<number>();
      const ledBy = async (leader: number) =>
        [...(await fetcher.leaders())].flatMap(([partition, its]) =>
          its === leader ? [partition] : [],
        );
      const loop = async (leader: number): Promise<void> => {
        for (;;) {
          const offsets = wanted(await ledBy(leader));
          if (offsets.size === 0) break;
          const prepared = await prepare(await fetcher.fetch(leader, offsets), offsets);
          if (subscriber.closed) break; // a newer connection may have fetched the same
          take(prepared);
          failures = 0;
          wake(); // another broker may lead some of them now
        }
        busy.delete(leader);
        wake(); // something may have been wanted again meanwhile
      };
      const look = async (): Promise<void> => {
        const leaders = await fetcher.leaders();
        for (const partition of wanted([...leaders.keys()]).keys()) {
          const leader = leaders.get(partition)!;
          if (busy.has(leader)) continue;
          busy.add(leader);
          loop(leader).catch((error: unknown) => subscriber.error(error));
        }
      };
      wake = () => {
        if (!subscriber.closed) look().catch((error: unknown) => subscriber.error(error));
      };
      wake();
    });
  const connection = async (): Promise<void> => {
    const fetcher = await openFetcher(kafka, topic);
    hasConnected = true;
    try {
      const until$ = loops(fetcher).pipe(takeUntil(leave$));
      await lastValueFrom(until$, { defaultValue: undefined });
    } finally {
      await fetcher.close().catch(() => undefined); // what came before it says more
    }
  };
  const canPass = (error: unknown) =>
    hasMoved(error)
      ? isPatient || failures < MOST_MOVED
      : isPatient && hasConnected && isRetryable(kafkaError(error));
  const pause = () => Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** failures++);
  const connections$ = defer(connection).pipe(
    retry({
      delay: (error: unknown) =>
        canPass(error)
          ? timer(pause()).pipe(takeUntil(leave$))
          : throwError(() => kafkaError(error)),
    }),
  );
  const done = lastValueFrom(connections$, { defaultValue: undefined });
  return { done, wake: () => wake() };
}

/** Whether brokers say that they are the wrong ones to ask: metadata were too old, or too new for them. */
function hasMoved(error: unknown): boolean {
  if (error instanceof kafkajs.KafkaJSBrokerNotFound) return true;
  return error instanceof kafkajs.KafkaJSProtocolError && error.retriable;
}
