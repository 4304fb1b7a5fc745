// Compares the number of requests that an API says remain with the requests that this process counts.

import type { SchedulerLike } from 'rxjs';
import type { AnswerRules } from '../streams/http/answer-rules.ts';
import type { HttpResponse } from '../streams/http/http.ts';

export interface ReportedUseOptions {
  readonly rules: Pick<AnswerRules, 'remaining' | 'resetMs' | 'isFree'>;
  readonly scheduler: SchedulerLike;
  /** Called with the number of requests of other users of the quota that were detected since the last call. */
  readonly onOthers: (count: number) => void;
  /**
   * Called with each response that reports that no requests remain and states the time of the reset: `until`, in ms on the scheduler's
   * clock.
   */
  readonly onUsedUp: (until: number) => void;
}

/**
 * Maximum rise of the reported number of remaining requests, per overlapping request of this process, if responses arrive out of order. A
 * larger rise means that the API has reset the quota. If the value is too small, responses out of order are mistaken for a reset. If it is
 * too large, the reset of a little-used quota is not noticed.
 */
const OVERTAKEN = 2;

/**
 * A response that states the number of remaining requests. Later responses are compared with it to count the requests of other processes.
 */
interface Base {
  /** Number of remaining requests that this response reported. */
  readonly remaining: number;
  /** Number of this process's requests that the API had certainly counted when it reported `remaining`. */
  readonly included: number;
  /** Smallest number of remaining requests that this response or any later one reported. */
  least: number;
  /** Number of requests that other users of the quota have sent since this response, as computed so far. */
  others: number;
}

/**
 * Counts the requests that others send against one quota, from the number of remaining requests that the API reports.
 *
 * - The count is the decrease of that number since a base response, less the requests of this process.
 * - If the number rises considerably, the API has reset the quota, and the response becomes the new base.
 */
export class ReportedUse {
  readonly #options: ReportedUseOptions;
  #begun = 0;
  #ended = 0;
  #base: Base | undefined;

  constructor(options: ReportedUseOptions) {
    this.#options = options;
  }

  /** Counts a request that is sent now. The returned function is to be called when it ends: with its response, or with undefined. */
  begin(): (answer: HttpResponse | undefined) => void {
    const endedBefore = this.#ended;
    this.#begun += 1;
    return (answer) => {
      const isCounted = !answer || !this.#options.rules.isFree(answer.status);
      if (isCounted) this.#ended += 1;
      else this.#begun -= 1;
      if (answer) this.#compare(answer, endedBefore + Number(isCounted));
    };
  }

  /**
   * Compares the number of remaining requests that a response reports with the requests of this process. Calls `onOthers` if others have
   * sent requests, and `onUsedUp` if none remain until a reset.
   *
   * @param included Number of this process's requests that the API had certainly counted when it reported that number.
   */
  #compare(answer: HttpResponse, included: number): void {
    const { rules, scheduler, onOthers, onUsedUp } = this.#options;
    const remaining = rules.remaining(answer);
    if (remaining === undefined) return;
    // Responses that overtake each other let the number rise a little, too.
    // The server may also handle requests of other processes in between, so the factor is more than 1.
    const outOfOrder = OVERTAKEN * (this.#begun - included);
    if (!this.#base || remaining > this.#base.least + outOfOrder) {
      this.#base = { remaining, included, least: remaining, others: 0 };
    }
    const base = this.#base;
    base.least = Math.min(base.least, remaining);
    // Requests in flight are subtracted, too, so the count is never too high.
    const others = Math.floor(base.remaining - remaining) - (this.#begun - base.included);
    if (others > base.others) {
      const more = others - base.others;
      base.others = others;
      onOthers(more);
    }
    const resetMs = remaining <= 0 ? rules.resetMs(answer, scheduler.now()) : undefined;
    if (resetMs !== undefined && resetMs > 0) onUsedUp(scheduler.now() + resetMs);
  }
}
