import { setTimeout as pause } from 'node:timers/promises';
import { isRetryable } from '../../core/errors.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { kafkasOf } from '../client/unanswered.ts';

/** How long something may be tried, and the pauses in between. */
export interface Patience {
  /**
   * Waits before the next try. Pauses double, from 20 ms to half a second.
   *
   * @throws `error`, why the last try came to nothing, when the time is over, nobody waits for it any more,
   * or no later try will do.
   */
  wait(error: unknown): Promise<void>;
  /** The same after 10 ms, for what is a matter of moments; once a second of it has gone by, as `wait`. */
  soon(error: unknown): Promise<void>;
}

/** Tries it until it succeeds. @throws as {@link Patience.wait}. */
export async function persistently<T>(limit: Patience, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      await limit.wait(error);
    }
  }
}

const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
const SOON_MS = 10;
const MAX_SOON = 100;
/** Answers that say that the cluster lacks brokers. */
const LACKING: ReadonlySet<unknown> = new Set(['COORDINATOR_NOT_AVAILABLE', 'NOT_ENOUGH_REPLICAS']);
/**
 * How long a row of such answers is waited for, in ms. Too small: the election of a new leader would end transactions. Too large:
 * the log says late why nothing is published. The work is begun again afterwards, as after any error that can pass.
 */
const LACKING_MS = 5_000;

/** @param closed Whoever wants it done has gone. */
export function patience(ms: number, closed: AbortSignal): Patience {
  const until = performance.now() + ms;
  let next = FIRST_PAUSE_MS;
  let lackingSince: number | undefined;
  const waitFor = async (pauseMs: number, error: unknown): Promise<void> => {
    const known = kafkaError(kafkasOf(error));
    const now = performance.now();
    lackingSince = isLacking(error) ? (lackingSince ?? now) : undefined;
    if (lackingSince !== undefined && now - lackingSince >= LACKING_MS) throw error;
    const left = until - now;
    if (closed.aborted || left <= 0 || !isRetryable(known)) throw error;
    await pause(Math.min(pauseMs, left), undefined, { signal: closed }).catch(() => {
      throw error;
    });
  };
  let soons = 0;
  const limit: Patience = {
    wait: async (error) => {
      const now = next;
      next = Math.min(2 * next, MAX_PAUSE_MS);
      await waitFor(now, error);
    },
    soon: (error) => ((soons += 1) > MAX_SOON ? limit.wait(error) : waitFor(SOON_MS, error)),
  };
  return limit;
}

function isLacking(error: unknown): boolean {
  return error instanceof Error && 'type' in error && LACKING.has(error.type);
}
