// Meanings of an API's responses that its description states: of statuses, and of headers about the quota.

import type { ApiDescription } from '../../description/description.ts';
import { boundedWait, headerOf, retryAfterOf } from './http.ts';
import type { DescribedStatus, HttpResponse } from './http.ts';

type QuotaHeaders = Exclude<ApiDescription['quota'], string>;
type Answer = Pick<HttpResponse, 'status' | 'headers' | 'date' | 'retryAfterMs'>;

/** How the responses to a request are interpreted (`rules`), and a callback for each request (`onSend`). */
export interface AnswerOptions {
  /** Meanings of statuses and quota headers, as the API's description states them. Default: the built-in meanings. */
  readonly rules?: AnswerRules;
  /**
   * Called when a request is sent. Returns a function that is called when that request ends: with its response, or with undefined if it
   * failed or was aborted before the response was complete. Default none.
   */
  readonly onSend?: () => (answer: HttpResponse | undefined) => void;
}

const UNIT_MS = { s: 1_000, ms: 1, 'epoch-s': 1_000, 'epoch-ms': 1 } as const;

/** Interprets statuses and quota headers of responses as the description says. Without a description the built-in meanings apply. */
export class AnswerRules {
  readonly #errors: ApiDescription['errors'];
  readonly #headers: Partial<QuotaHeaders>;

  constructor({ errors, quota }: Partial<Pick<ApiDescription, 'errors' | 'quota'>> = {}) {
    this.#errors = errors ?? {};
    this.#headers = typeof quota === 'object' ? quota : {};
  }

  /**
   * Returns how a response is treated according to its status: its meaning, the wait before the request is repeated, and whether it costs
   * quota. `now` is the current time in epoch ms.
   */
  of(answer: Answer, now: number): DescribedStatus {
    const { retryAfter } = this.#headers;
    const meaning = this.meaningOf(answer.status);
    const header = retryAfter && headerOf(answer.headers, retryAfter.header);
    const stated = header === undefined ? undefined : retryAfterOf(header, answer.date);
    // A refusal while requests remain is not ended by the reset.
    const isUsedUp = meaning === 'quota' && (this.remaining(answer) ?? 0) <= 0;
    const reset = isUsedUp ? this.resetMs(answer, now) : undefined;
    return {
      meaning,
      retryAfterMs: stated ?? answer.retryAfterMs ?? reset,
      isFree: this.isFree(answer.status),
    };
  }

  /** Returns the meaning that the description gives to a status. Default: `quota` for 429, otherwise undefined (the built-in meaning). */
  meaningOf(status: number): DescribedStatus['meaning'] {
    return this.#errors[status] ?? (status === 429 ? 'quota' : undefined);
  }

  /** Whether responses with this status cost no quota. */
  isFree(status: number): boolean {
    return this.#headers.free?.includes(status) === true;
  }

  /** Number of requests that are left in the quota, as a header of the response states it; undefined if it does not. */
  remaining(answer: Answer): number | undefined {
    const { remaining } = this.#headers;
    const text = remaining && headerOf(answer.headers, remaining.header);
    return text !== undefined && /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
  }

  /** Time until the quota begins anew, in ms from `now`, 10 minutes at most; undefined if the response does not say. */
  resetMs(answer: Answer, now: number): number | undefined {
    const { reset } = this.#headers;
    const text = reset && headerOf(answer.headers, reset.header);
    if (!reset || text === undefined) return undefined;
    const { unit = 's' } = reset;
    if (unit === 'http-date') return retryAfterOf(text, answer.date ?? now);
    const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * UNIT_MS[unit] : NaN;
    const ms = unit.startsWith('epoch') ? value - (answer.date ?? now) : value;
    return Number.isNaN(ms) ? undefined : boundedWait(ms);
  }
}
