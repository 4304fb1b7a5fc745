// One try of a group's member at one event: read it, call the handler, try again later, or write it to the dead letters.

import type { KafkaMessage } from 'kafkajs';
import { catchError, defer, EMPTY, from, last, map, of, switchMap, throwError } from 'rxjs';
import type { Observable, ObservableInput, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { valueSubject } from '../schemas/events/topics.ts';
import type { DeadLetters } from '../sinks/producer/plain-producer.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';
import type { Consumed, MessageReader } from './consumed.ts';
import type { Outcome } from './keyed-work.ts';

/**
 * What is done with an event. It is handled when the promise has resolved, or the Observable completed;
 * a handler that gives nothing is done when it returns.
 */
export type Handler<T, R> = (event: Consumed<T>) => ObservableInput<R> | void;

/** An event that was handled. */
export interface Handled<T, R> {
  readonly event: Consumed<T>;
  /** What the promise resolved with, or the Observable's last value; undefined where it had none. */
  readonly result: R | undefined;
}

/** An event that was given up, now in the dead letters. */
export interface DeadLettered {
  readonly partition: number;
  /** In decimal. */
  readonly offset: string;
  readonly error: unknown;
  /** How often it was handled in vain; 0 when it could not be read. */
  readonly tries: number;
}

/** A pause before another try: of an event, or without one of Kafka or the registry. */
export interface GroupRetry extends Retry {
  readonly event?: { readonly partition: number; readonly offset: string } | undefined;
}

/** When a handler that failed is called again. */
export interface RetryOptions {
  /**
   * Calls in all, before the event is given up: an integer, at least 1. Default 5. Counted from 1 again
   * when the event comes again: after a rebalance, or a commit that failed.
   */
  readonly tries?: number;
  /** Ceiling of the first pause, in milliseconds; it doubles from try to try. Default 200. */
  readonly firstMs?: number;
  /** Ceiling of every pause, in milliseconds. Default 30,000. */
  readonly maxMs?: number;
}

export interface HandlingOptions<T, R> {
  readonly topic: string;
  readonly registry: Registry;
  readonly reader: MessageReader<T>;
  readonly handle: Handler<T, R>;
  readonly retry: Required<RetryOptions>;
  /** Without them an event that is given up is an error. */
  readonly deadLetters: DeadLetters | undefined;
  readonly scheduler: SchedulerLike;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly hooks: HandlingHooks;
}

/** What is told of the events of a group. */
interface HandlingHooks {
  /** Told before each pause: of an event, or of Kafka or the registry. */
  readonly onRetry?: (retry: GroupRetry) => void;
  /** Told of each event that is in the dead letters now. */
  readonly onDeadLetter?: (letter: DeadLettered) => void;
}

/** One try at one message. Cut short by `halt$` it completes without a value. */
type Handling<T, R> = (
  partition: number,
  message: KafkaMessage,
  tries: number,
  halt$: Observable<unknown>,
) => Observable<Outcome<Handled<T, R>>>;

/**
 * One message: read, handled, tried again after a random part of a pause that doubles, or given up.
 * Kafka and the registry are waited for as long as it takes.
 *
 * Errors with what the handler failed with, or `VALUE_UNREADABLE`, where there are no dead letters.
 */
export function handling<T, R>(options: HandlingOptions<T, R>): Handling<T, R> {
  const { topic, registry, reader, handle, retry, deadLetters, scheduler, random } = options;
  const { onRetry, onDeadLetter } = options.hooks;

  return (partition, message, tries, halt$) => {
    const { offset } = message;
    const waiting = <V>() =>
      backoff<V>({ scheduler, random, stop$: halt$, ...(onRetry && { onRetry }) });

    const read = defer(async () => {
      await reader.prepare([message]);
      return reader.read(partition, message);
    }).pipe(catchError((error: unknown) => from(blame(error, registry, topic))));

    const giveUp = (error: unknown, tries: number): Observable<Outcome<never>> => {
      if (!deadLetters) return throwError(() => error);
      return defer(() => deadLetters.write({ topic, partition, message, error, tries })).pipe(
        waiting(),
        map(() => {
          onDeadLetter?.({ partition, offset, error, tries });
          return { done: true };
        }),
      );
    };

    const failed = (error: unknown): Observable<Outcome<never>> => {
      if (tries >= retry.tries) return giveUp(error, tries);
      const ceiling = Math.min(retry.maxMs, retry.firstMs * 2 ** Math.min(tries - 1, 30));
      const delayMs = random() * ceiling;
      onRetry?.({ error, count: tries, delayMs, event: { partition, offset } });
      return of({ done: false, againMs: delayMs });
    };

    const handled = (event: Consumed<T>): Observable<Outcome<Handled<T, R>>> =>
      defer(() => handle(event) ?? EMPTY).pipe(
        last(undefined, undefined),
        map((result) => ({ done: true, result: { event, result } }) as const),
        catchError(failed),
      );

    return read.pipe(
      waiting(),
      map((event) => ({ event })),
      catchError((error: unknown) =>
        isUnreadable(error) ? of({ error }) : throwError(() => error),
      ),
      switchMap((found) => ('event' in found ? handled(found.event) : giveUp(found.error, 0))),
    );
  };
}

function isUnreadable(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'VALUE_UNREADABLE';
}

/**
 * Whose fault it is that a registry refuses: where it knows the topic, and not the schema that a message
 * names, it's the message's. Else it may be another registry, which would make every message a dead letter.
 */
async function blame(error: unknown, registry: Registry, topic: string): Promise<never> {
  const refused = error instanceof CellarstreamError && error.code === 'REGISTRY_REFUSED';
  if (!refused || (await registry.latest(valueSubject(topic))) === undefined) throw error;
  throw new CellarstreamError('VALUE_UNREADABLE', error.message, { cause: error });
}
