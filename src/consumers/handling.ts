// One attempt to handle an event: decodes it, calls the handler, and on failure schedules a retry or writes a dead letter.

import type { KafkaMessage } from 'kafkajs';
import { defer, EMPTY, last } from 'rxjs';
import type { Observable, ObservableInput, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import { pauseMs, PAUSES } from '../core/retries.ts';
import type { Registry } from '../schemas/registry/registry.ts';
import { valueSubject } from '../schemas/events/topics.ts';
import type { DeadLetters } from '../sinks/producer/plain-producer.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';
import { inSteps, waitFor } from '../streams/flow/steps.ts';
import type { Steps } from '../streams/flow/steps.ts';
import type { Consumed, MessageReader } from './consumed.ts';
import type { WorkOutcome } from './keyed-work.ts';

/**
 * Application code that processes an event. The event counts as handled once the returned promise resolves or the returned Observable
 * completes; without either, once the function returns.
 */
export type Handler<T, R> = (event: Consumed<T>) => ObservableInput<R> | void;

/** An event whose handler succeeded. */
export interface Handled<T, R> {
  readonly event: Consumed<T>;
  /** The handler's result: the resolved value of its promise, or the last value of its Observable; undefined if there was none. */
  readonly result: R | undefined;
}

/** An event that could not be decoded or handled, and was written to the dead letters. */
export interface DeadLettered {
  readonly partition: number;
  /** Offset of the event, as decimal text. */
  readonly offset: string;
  readonly error: unknown;
  /** Number of failed calls of the handler; 0 if the event could not be decoded. */
  readonly tries: number;
}

/** A pause before a retry: of the handler if `event` is set, otherwise of a call to Kafka or the registry. */
export interface GroupRetry extends Retry {
  readonly event?: { readonly partition: number; readonly offset: string } | undefined;
}

/** How often, and after which pauses, a failed handler is called again. */
export interface RetryOptions {
  /**
   * Maximum number of handler calls for one event, the first included: an integer, at least 1. Default 5. If the last call fails, the event
   * is written to the dead letters or, without them, the Observable errors.
   */
  readonly tries?: number;
  /**
   * Upper bound of the first pause, in ms. The bound doubles with each attempt, and the actual pause is a random fraction of it. Default
   * 200.
   */
  readonly firstMs?: number;
  /** Longest pause, in ms: the upper bound of the pauses doubles until it reaches this value. Default 30,000. */
  readonly maxMs?: number;
}

export interface HandlingOptions<T, R> {
  readonly topic: string;
  readonly registry: Registry;
  readonly reader: Pick<MessageReader<T>, 'prepare' | 'read'>;
  readonly handle: Handler<T, R>;
  readonly retry: Required<RetryOptions>;
  /** Writer of dead letters: events that could not be decoded or handled. Undefined: such an event ends the consumer with an error. */
  readonly deadLetters: DeadLetters | undefined;
  readonly scheduler: SchedulerLike;
  /** Returns random numbers, uniform in [0, 1). */
  readonly random: () => number;
  readonly hooks: HandlingHooks;
}

interface HandlingHooks {
  /** Called before each pause that precedes a retry of a handler, or of a call to Kafka or the registry. */
  readonly onRetry?: (retry: GroupRetry) => void;
  /** Called after an event has been written to the dead letters. */
  readonly onDeadLetter?: (letter: DeadLettered) => void;
}

/**
 * Makes one attempt to handle a message and emits the outcome. Emits none if `halt$` emits while a call to Kafka or the registry waits for
 * its next retry.
 */
export type Handling<T, R> = (
  partition: number,
  message: KafkaMessage,
  tries: number,
  halt$: Observable<unknown>,
) => Observable<WorkOutcome<Handled<T, R>>>;

/**
 * Returns a function that makes one attempt to handle a message: decodes it and calls the handler.
 *
 * - If the handler succeeds, the message is done.
 * - If the handler fails, the outcome is a retry after a random pause.
 * - If the last attempt fails, or the message can't be decoded, it is written to the dead letters. Without them, the Observable errors.
 * - If Kafka or the registry fails temporarily, the call to it is repeated without limit.
 */
export function handling<T, R>(options: HandlingOptions<T, R>): Handling<T, R> {
  const { topic, registry, reader, handle, retry, deadLetters, scheduler, random } = options;
  const { onRetry, onDeadLetter } = options.hooks;

  return (partition, message, tries, halt$) => {
    const { offset } = message;
    const retrying = <V>() =>
      backoff<V>({ ...PAUSES.restart, scheduler, random, stop$: halt$, onRetry });
    const event$ = defer(async () => {
      try {
        await reader.prepare([message]);
        return reader.read(partition, message);
      } catch (error) {
        return attributeRefusal(error, registry, topic);
      }
    });

    function* giveUp(error: unknown, tries: number): Steps<WorkOutcome<never>> {
      if (!deadLetters) throw error;
      const letter = { topic, partition, message, error, tries };
      yield* waitFor(defer(() => deadLetters.write(letter)).pipe(retrying()));
      onDeadLetter?.({ partition, offset, error, tries });
      return { done: true };
    }

    return inSteps(function* (): Steps<WorkOutcome<Handled<T, R>>> {
      let event: Consumed<T>;
      try {
        event = yield* waitFor(event$.pipe(retrying()));
      } catch (error) {
        if (isUnreadable(error)) return yield* giveUp(error, 0);
        throw error;
      }
      try {
        const result$ = defer(() => handle(event) ?? EMPTY).pipe(last(undefined, undefined));
        return { done: true, result: { event, result: yield* waitFor(result$) } };
      } catch (error) {
        if (tries >= retry.tries) return yield* giveUp(error, tries);
        const delayMs = random() * pauseMs(retry, tries);
        onRetry?.({ error, count: tries, delayMs, event: { partition, offset } });
        return { done: false, retryAfterMs: delayMs };
      }
    });
  };
}

function isUnreadable(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'VALUE_UNREADABLE';
}

/** Throws `VALUE_UNREADABLE` if the registry refused a message's schema id but has a schema of the topic; otherwise throws `error`. */
async function attributeRefusal(error: unknown, registry: Registry, topic: string): Promise<never> {
  const refused = error instanceof CellarstreamError && error.code === 'REGISTRY_REFUSED';
  // A registry without a schema of the topic may be the wrong one: `VALUE_UNREADABLE` would turn every message into a dead letter.
  if (!refused || (await registry.latest(valueSubject(topic))) === undefined) throw error;
  throw new CellarstreamError('VALUE_UNREADABLE', error.message, { cause: error });
}
