// Shares one access token among all callers, renews it in time, and limits how often a failing issuer is asked.

import { steadyScheduler } from './clock.ts';
import { CellarstreamError } from './errors.ts';
import type { ErrorCode } from './errors.ts';

interface AccessToken {
  readonly value: string;
  /** Epoch ms. */
  readonly expiresAt: number;
}

export interface GrantedToken {
  readonly value: string;
  /** Validity from the request on, in ms. */
  readonly lifeMs: number;
}

export interface AccessTokensOptions {
  /** Requests a token; `now` is the current time in epoch ms. */
  readonly request: (now: number) => Promise<GrantedToken>;
  /** Setting with the issuer's address, for error messages. */
  readonly issuer: string;
  /** Error code when the issuer does not respond in time. */
  readonly unreachable: ErrorCode;
  /** Called when a renewal fails while the current token is valid for another `leftMs` ms. */
  readonly onRenewalFailed?: (error: unknown, leftMs: number) => void;
  /** Returns epoch ms. Default the time of {@link steadyScheduler}. */
  readonly now?: () => number;
}

/**
 * Fraction of a token's lifetime after which it is renewed. Too small: many requests. Too large: sessions that begin with the token are
 * short.
 */
const RENEW_AT = 0.8;
/**
 * Longest wait for the issuer's response, in ms. Too small: slow issuers fail. Too large: a connection to a broker, which needs the token
 * and has 5 s in total, fails.
 */
const WAIT_MS = 3_000;
/**
 * Minimum time between a failed token request and the next, in ms. Too small: an endpoint that refuses the client gets a request per login.
 */
const PAUSE_MS = 1_000;

/**
 * Age below which a token is used again after a server has refused it, in ms: some servers accept a token only a few seconds after its
 * issue. Too small: such a server refuses one new token after the other. Too large: an invalid token is sent again for that long.
 */
const YOUNG_MS = 6_000;

interface CachedToken extends AccessToken {
  readonly renewAt: number;
  readonly youngUntil: number;
}
type AccessTokenState =
  | { readonly name: 'idle'; readonly held?: CachedToken | undefined }
  | {
      readonly name: 'asking';
      readonly held?: CachedToken | undefined;
      readonly answer: Promise<CachedToken>;
    }
  | {
      readonly name: 'failed';
      readonly held?: CachedToken | undefined;
      readonly error: Error;
      readonly until: number;
    };

/**
 * Provides the access token of a client. A token is requested when it is needed, with one request at a time, and shared until most of its
 * lifetime is over. If a token can't be renewed, it is used until it expires.
 */
export class AccessTokens {
  readonly #options: AccessTokensOptions;
  readonly #now: () => number;
  #state: AccessTokenState = { name: 'idle' };

  constructor(options: AccessTokensOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => steadyScheduler.now());
  }

  /**
   * Returns a valid token.
   *
   * @throws The error of `request`; CellarstreamError with the code `unreachable` when the response takes more than 3 s.
   */
  async get(): Promise<AccessToken> {
    const { held } = this.#state;
    if (held && this.#now() < held.renewAt) return held;
    try {
      return await this.#within(WAIT_MS, this.#answer());
    } catch (error) {
      const leftMs = held && this.#state.held === held ? held.expiresAt - this.#now() : 0;
      if (!held || leftMs <= 0) throw error;
      this.#options.onRenewalFailed?.(error, leftMs);
      return held;
    }
  }

  /**
   * Records that a server refused a token: the next {@link AccessTokens.get} requests another, unless this one is so young that the server
   * may not know it yet.
   */
  forget(value: string): void {
    const { held } = this.#state;
    if (held?.value !== value || this.#now() < held.youngUntil) return;
    this.#state = { ...this.#state, held: undefined };
  }

  #answer(): Promise<CachedToken> {
    const state = this.#state;
    if (state.name === 'asking') return state.answer;
    if (state.name === 'failed' && this.#now() < state.until) return Promise.reject(state.error);
    const answer = this.#request();
    this.#state = { name: 'asking', held: state.held, answer };
    answer.then(
      (held) => (this.#state = { name: 'idle', held }),
      (error: Error) => {
        const until = this.#now() + PAUSE_MS;
        this.#state = { name: 'failed', held: this.#state.held, error, until };
      },
    );
    return answer;
  }

  async #request(): Promise<CachedToken> {
    const now = this.#now();
    const { value, lifeMs } = await this.#options.request(now);
    return {
      value,
      expiresAt: now + lifeMs,
      renewAt: now + RENEW_AT * lifeMs,
      youngUntil: now + YOUNG_MS,
    };
  }

  /** Limits the wait; the request itself continues, and a later call gets its response. */
  async #within(ms: number, answer: Promise<CachedToken>): Promise<CachedToken> {
    const { issuer, unreachable } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const message = `no answer from ${issuer} in ${ms / 1_000} s`;
        reject(new CellarstreamError(unreachable, message));
      }, ms);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
