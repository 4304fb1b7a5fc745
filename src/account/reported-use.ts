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
   * Called with each response that reports that no requests remain and also says when the quota will be reset. `until`: time of that reset,
   * in ms on the scheduler's clock.
   */
  readonly onUsedUp: (until: number) => void;
}

/**
 * Factor in the limit up to which a rise of the reported number of remaining requests counts as an effect of responses out of order. The
 * limit is this factor times the number of this process's requests that overlapped the request with the higher number. A larger rise means
 * that the API has reset the quota.
 *
 * The factor is 2 rather than 1 because the server may also handle requests of other processes in between. If it is too small, a response
 * out of order is mistaken for a reset. If it is too large, the reset of a little-used quota is not noticed. In both cases requests of
 * other processes are not counted.
 */
const OVERTAKEN = 2;

/**
 * A response with the API's number of remaining requests. Later responses are compared with it to count the requests that other processes
 * sent against the same quota.
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
 * - The count is the decrease of that number since a base response, less the requests of this process. Requests in flight are subtracted,
 *   too, so the count is never too high.
 * - If the number rises by more than responses out of order can explain (`OVERTAKEN`): the API has reset the quota, and the response
 *   becomes the new base.
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
   * Compares the number of remaining requests that a response reports with the requests of this process. Calls `onOthers` if this shows
   * further requests of others, and `onUsedUp` if none remain and the response says when the quota is reset. Does nothing if the response
   * reports no number.
   *
   * @param included Number of this process's requests that the API had certainly counted when it reported that number.
   */
  #compare(answer: HttpResponse, included: number): void {
    const { rules, scheduler, onOthers, onUsedUp } = this.#options;
    const remaining = rules.remaining(answer);
    if (remaining === undefined) return;
    // Responses that overtake each other let the number rise a little, too.
    const outOfOrder = OVERTAKEN * (this.#begun - included);
    if (!this.#base || remaining > this.#base.least + outOfOrder) {
      this.#base = { remaining, included, least: remaining, others: 0 };
    }
    const base = this.#base;
    base.least = Math.min(base.least, remaining);
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
