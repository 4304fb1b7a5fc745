// Repeats requests to Kafka after failures that may pass, for a limited time.

import { setTimeout as pause } from 'node:timers/promises';
import { isRetryable } from '../../core/errors.ts';
import { BRIEF_PAUSES, LASTING_MS, PAUSES, lasting, pauseMs } from '../../core/retries.ts';
import { hasErrorType, kafkaError } from './kafka-error.ts';

/** Kafka's error types which mean that too few brokers are available. */
const LACKING_BROKERS = ['COORDINATOR_NOT_AVAILABLE', 'NOT_ENOUGH_REPLICAS'];

/** Time limit for repeating an operation, with pauses between the attempts. */
export class Patience {
  readonly #until: number;
  readonly #closed: AbortSignal;
  readonly #lacking = lasting();
  #pauses = 0;
  #briefPauses = 0;

  /**
   * @param ms Time limit, in ms from now.
   * @param closed Aborted when the client of the brokers is closed. After that, failed attempts are not repeated.
   */
  constructor(ms: number, closed: AbortSignal) {
    this.#until = performance.now() + ms;
    this.#closed = closed;
  }

  /**
   * Waits before the next attempt. @throws `error` if the time limit has passed, the client is closed, no retry can succeed, or too few
   * brokers have been available for some seconds.
   */
  async wait(error: unknown): Promise<void> {
    this.#pauses += 1;
    await this.#pause(pauseMs(PAUSES.kafkaRequest, this.#pauses), error);
  }

  /**
   * Waits 10 ms before the next attempt, for failures that are resolved within moments. From the 101st call on, waits like {@link wait}.
   *
   * @throws `error` in the same cases as {@link wait}.
   */
  async waitBriefly(error: unknown): Promise<void> {
    this.#briefPauses += 1;
    if (this.#briefPauses > BRIEF_PAUSES.count) await this.wait(error);
    else await this.#pause(BRIEF_PAUSES.ms, error);
  }

  async #pause(ms: number, error: unknown): Promise<void> {
    const isLacking = hasErrorType(error, ...LACKING_BROKERS);
    if (this.#lacking(isLacking) >= LASTING_MS.lackingBrokers) throw error;
    const leftMs = this.#until - performance.now();
    const isFinal = !isRetryable(kafkaError(error));
    if (this.#closed.aborted || leftMs <= 0 || isFinal) throw error;
    await pause(Math.min(ms, leftMs), undefined, { signal: this.#closed }).catch(() => {
      throw error;
    });
  }
}

/** Repeats `work` until it succeeds. @throws the error that `patience.wait` throws. */
export async function retrying<T>(
  patience: Pick<Patience, 'wait'>,
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      await patience.wait(error);
    }
  }
}
