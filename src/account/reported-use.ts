// Compares the number of requests that an API says remain with the requests that this process counts.

import type { SchedulerLike } from 'rxjs';
import type { AnswerRules } from '../streams/http/answer-rules.ts';
import type { HttpResponse } from '../streams/http/http.ts';

export interface ReportedUseOptions {
  readonly rules: Pick<AnswerRules, 'remaining' | 'resetMs' | 'isFree'>;
  readonly scheduler: SchedulerLike;
  /** Called with the number of requests that others have sent since the last call. */
  readonly onOthers: (count: number) => void;
  /** Called when no requests remain, with the time in ms at which the quota begins anew. */
  readonly onUsedUp: (until: number) => void;
}

/**
 * How far the reported number may rise without a new beginning, by the number of requests that were in flight with the response's: by
 * their own number, and as much again for others. Too small: others are missed while responses overtake each other. Too large: others are
 * missed after a quota of which little was used has begun anew.
 */
const OVERTAKEN = 2;

/** A response from which others' requests are counted. */
interface Base {
  /** The number of requests that remained. */
  readonly remaining: number;
  /** Number of this process's requests that `remaining` includes for certain. */
  readonly included: number;
  /** The smallest number of requests that remained since. */
  least: number;
  /** Number of requests of others that are counted. */
  others: number;
}

/**
 * The use of one quota as the API reports it. Requests of others are those by which the reported number has fallen more than this process
 * can have caused. Requests in flight may or may not be included in a response, so the count is never too high. It begins anew whenever
 * the reported number rises, as when the quota begins anew.
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

  /** @param included Number of this process's requests that the response includes for certain. */
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
