// Shares one access token among all callers, renews it in time, and limits how often a failing issuer is asked.

import { steadyScheduler } from './clock.ts';
import { CellarstreamError } from './errors.ts';
import type { ErrorCode } from './errors.ts';
import { within } from './within.ts';

interface AccessToken {
  readonly value: string;
  /** When the token expires, in epoch ms. */
  readonly expiresAt: number;
}

export interface GrantedToken {
  readonly value: string;
  /** Lifetime of the token, counted from the request, in ms. */
  readonly lifeMs: number;
}

export interface AccessTokensOptions {
  /** Requests a token; `now` is the current time in epoch ms. */
  readonly request: (now: number) => Promise<GrantedToken>;
  /** Name of the setting with the address of the server that issues the tokens, for error messages. */
  readonly issuer: string;
  /** Code of the error that is thrown when the server that issues the tokens does not respond in time. */
  readonly unreachable: ErrorCode;
  /** Called when a renewal fails while the current token is still valid. `leftMs` is its remaining validity in ms. */
  readonly onRenewalFailed?: (error: unknown, leftMs: number) => void;
  /** Returns the current time, in epoch ms. Default: the time of {@link steadyScheduler}. */
  readonly now?: () => number;
}

/**
 * Fraction of a token's lifetime after which it is renewed. If it is too small, many tokens are requested. If it is too large, Kafka
 * connections get tokens that soon expire.
 */
const RENEW_AT = 0.8;
/**
 * Maximum time to wait for the response to a token request, in ms. If it is too small, requests to slow servers fail. If it is too large,
 * connections to brokers fail: each must be ready within 5 s.
 */
const WAIT_MS = 3_000;
/**
 * Minimum time between a failed token request and the next one, in ms. If it is too small, an endpoint that refuses the client receives a
 * request for each login.
 */
const PAUSE_MS = 1_000;

/**
 * Age in ms up to which a token is still used after a server has refused it: some servers do not accept a token in its first seconds.
 * If it is too small, such a server refuses each new token. If it is too large, invalid tokens are used for too long.
 */
const YOUNG_MS = 6_000;

interface CachedToken extends AccessToken {
  readonly renewAt: number;
  readonly youngUntil: number;
}

/**
 * Provides access tokens of a client. All callers share one token until most of its lifetime has passed. If it can't be renewed, it is used
 * until it expires.
 */
export class AccessTokens {
  readonly #options: AccessTokensOptions;
  readonly #now: () => number;
  #held: CachedToken | undefined;
  /** The token request in flight; undefined if there is none. */
  #answer: Promise<CachedToken> | undefined;
  /** Error of the newest failed token request, and the time before which no further request is sent (by the clock `#now`, in ms). */
  #failure: { readonly error: Error; readonly until: number } | undefined;

  constructor(options: AccessTokensOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => steadyScheduler.now());
  }

  /**
   * Returns a valid token. If a renewal fails, returns the current token until it expires.
   *
   * @throws The error of `request`, or a CellarstreamError with the code `unreachable` of the options if the response takes more than 3 s.
   */
  async get(): Promise<AccessToken> {
    const held = this.#held;
    if (held && this.#now() < held.renewAt) return held;
    try {
      const { issuer, unreachable } = this.#options;
      // The token request goes on: a later call gets its response.
      return await within(WAIT_MS, this.#requested(), () => {
        const message = `no answer from ${issuer} in ${WAIT_MS / 1_000} s`;
        return new CellarstreamError(unreachable, message);
      });
    } catch (error) {
      const leftMs = held && this.#held === held ? held.expiresAt - this.#now() : 0;
      if (!held || leftMs <= 0) throw error;
      this.#options.onRenewalFailed?.(error, leftMs);
      return held;
    }
  }

  /**
   * Removes a token that a server has refused, so that {@link AccessTokens.get} requests another. A token younger than `YOUNG_MS` is
   * retained.
   */
  forget(value: string): void {
    if (this.#held?.value !== value || this.#now() < this.#held.youngUntil) return;
    this.#held = undefined;
  }

  /**
   * Returns the promise of the token request in flight, or sends a request. Within {@link PAUSE_MS} after a failed request, rejects with
   * its error.
   */
  #requested(): Promise<CachedToken> {
    if (this.#failure && this.#now() < this.#failure.until)
      return Promise.reject(this.#failure.error);
    return (this.#answer ??= this.#request().finally(() => (this.#answer = undefined)));
  }

  async #request(): Promise<CachedToken> {
    const now = this.#now();
    try {
      const { value, lifeMs } = await this.#options.request(now);
      this.#held = {
        value,
        expiresAt: now + lifeMs,
        renewAt: now + RENEW_AT * lifeMs,
        youngUntil: now + YOUNG_MS,
      };
      return this.#held;
    } catch (error) {
      this.#failure = { error: error as Error, until: this.#now() + PAUSE_MS };
      throw error;
    }
  }
}
