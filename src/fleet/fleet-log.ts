import type { Kafka } from 'kafkajs';
import {
  defer,
  EMPTY,
  filter,
  firstValueFrom,
  ignoreElements,
  interval,
  merge,
  repeat,
  retry,
  startWith,
  Subject,
  switchMap,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import { readBatches } from '../sinks/fetch/read-batches.ts';
import { plainProducer } from '../sinks/producer/plain-producer.ts';
import type { Message } from '../sinks/sink.ts';
import { HeardWords } from './fleet-words.ts';
import type { FleetWords } from './fleet-words.ts';
import { fleetLogBounds } from './read-fleet-log.ts';

/** The fleet's topic, as far as it was read. */
export interface FleetLog extends FleetWords {
  /** Reads on for ever; emits when anything was said. What fails is told, and tried again. */
  readonly following$: Observable<void>;
  /** Resolves when all that was said by now is known. Needs {@link following$}. */
  readonly caughtUp: () => Promise<void>;
  /** A message of this topic. */
  readonly send: (message: Message) => Promise<void>;
  readonly close: () => void;
}

export interface FleetLogOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly scheduler: SchedulerLike;
  readonly onRetry: (retry: { error: unknown; count: number; delayMs: number }) => void;
}

const PAUSE_MS = 1_000;
/** What was said is read by then, ms: else the connection is dead without a sign, which kafkajs notices after half a minute. */
const READ_WITHIN_MS = 3_000;

/**
 * Read to the end of the log, and not to its last stable offset: the transaction that an instance left open as it died would
 * hold up all accounts for a minute. What was aborted counts, too. Whoever takes an account fences first, so what it writes
 * stands behind all that the one before could write: the last word is that of the newest owner.
 */
export function fleetLog(options: FleetLogOptions): FleetLog {
  const { kafka, topic, scheduler, onRetry } = options;
  const heard = new HeardWords();
  const moved$ = new Subject<void>();
  const stalled$ = new Subject<void>();
  const producer = plainProducer(kafka);
  let next = 0n;

  const bounds = () => fleetLogBounds(kafka, topic);
  const reading$ = defer(async () => {
    const { low, high } = await bounds();
    if (next > high) heard.clear(); // it was made anew
    return { from: next > high || next < low ? low : next, high };
  }).pipe(
    switchMap(({ from, high }) => {
      next = from;
      moved$.next();
      const range = { from: new Map([[0, from]]), ends: new Map([[0, high]]) };
      return readBatches(
        { kafka, topic, range, follow: true, isolation: 'uncommitted', isPatient: false },
        (batch) => {
          heard.hear(batch.messages);
          ({ next } = batch);
          moved$.next();
          return batch.messages.length > 0 ? [undefined] : EMPTY;
        },
      );
    }),
  );

  return {
    words: heard.words,
    reports: heard.reports,
    following$: reading$.pipe(
      takeUntil(stalled$),
      repeat(),
      retry({
        resetOnSuccess: true,
        delay: (error: unknown, count) => {
          onRetry({ error, count, delayMs: PAUSE_MS });
          return timer(PAUSE_MS, scheduler);
        },
      }),
    ),
    caughtUp: async () => {
      const { high } = await bounds();
      const read$ = moved$.pipe(
        startWith(undefined),
        filter(() => next >= high),
      );
      const late$ = interval(READ_WITHIN_MS, scheduler).pipe(
        tap((count) => {
          onRetry({ error: unread(topic), count: count + 1, delayMs: 0 });
          stalled$.next();
        }),
        ignoreElements(),
      );
      await firstValueFrom(merge(read$, late$));
    },
    send: (message) => producer.send(topic, message),
    close: () => producer.close(),
  };
}

function unread(topic: string): CellarstreamError {
  const seconds = READ_WITHIN_MS / 1_000;
  const message = `${topic} was not read to its end in ${seconds} s: it is read over another connection`;
  return new CellarstreamError('KAFKA_UNREACHABLE', message, { context: { topic } });
}
