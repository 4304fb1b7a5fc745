import { steadyScheduler } from './clock.ts';
import { CellarstreamError } from './errors.ts';
import type { ErrorCode } from './errors.ts';

/** A token, and until when it is valid. */
interface AccessToken {
  readonly value: string;
  /** ms since the epoch. */
  readonly expiresAt: number;
}

/** A token as its issuer gave it. */
export interface GrantedToken {
  readonly value: string;
  /** For how long it is valid from the request on, in ms. */
  readonly lifeMs: number;
}

export interface AccessTokensOptions {
  /** Requests a token. @param now ms since the epoch. */
  readonly request: (now: number) => Promise<GrantedToken>;
  /** The issuer, as errors name it: the setting of its address. */
  readonly issuer: string;
  /** Code of the error when the issuer does not answer in time. */
  readonly unreachable: ErrorCode;
  /** Called when a token could not be renewed while the one before is still valid. */
  readonly onRenewalFailed?: (error: unknown, leftMs: number) => void;
  /** The time in ms since the epoch. Default {@link steadyScheduler}'s. */
  readonly now?: () => number;
}

/** Share of a token's life after which another is asked for. Too large: sessions that begin with it are short. */
const RENEW_AT = 0.8;
/** Longest wait for an answer, in ms. A connection to a broker must be made within 5 s, this wait included. */
const WAIT_MS = 3_000;
/** Least time between a failed request and the next, in ms. Smaller: an endpoint that refuses is asked at every login. */
const PAUSE_MS = 1_000;

/**
 * Age below which a token that a server refused is kept, in ms: servers may know a token only some seconds after its issue. Too small:
 * such a server refuses one new token after the other. Too large: a token that was issued in vain is sent for as long.
 */
const YOUNG_MS = 6_000;

interface Held extends AccessToken {
  readonly renewAt: number;
  readonly youngUntil: number;
}
type State =
  | { readonly name: 'idle'; readonly held?: Held | undefined }
  | { readonly name: 'asking'; readonly held?: Held | undefined; readonly answer: Promise<Held> }
  | {
      readonly name: 'failed';
      readonly held?: Held | undefined;
      readonly error: Error;
      readonly until: number;
    };

/**
 * The access token of a client: requested when it is needed, one request at a time, and shared until most of its life is over. A
 * token that can't be renewed serves until its end.
 */
export class AccessTokens {
  readonly #options: AccessTokensOptions;
  readonly #now: () => number;
  #state: State = { name: 'idle' };

  constructor(options: AccessTokensOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => steadyScheduler.now());
  }

  /**
   * A valid token.
   *
   * @throws What `request` throws; CellarstreamError `unreachable` when the answer takes too long.
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

  /** A server refused this token: the next call asks for another, unless this one is so young that the server may not know it yet. */
  forget(value: string): void {
    const { held } = this.#state;
    if (held?.value !== value || this.#now() < held.youngUntil) return;
    this.#state = { ...this.#state, held: undefined };
  }

  #answer(): Promise<Held> {
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

  async #request(): Promise<Held> {
    const now = this.#now();
    const { value, lifeMs } = await this.#options.request(now);
    return {
      value,
      expiresAt: now + lifeMs,
      renewAt: now + RENEW_AT * lifeMs,
      youngUntil: now + YOUNG_MS,
    };
  }

  /** The request goes on when its time here is over: the next call has its answer. */
  async #within(ms: number, answer: Promise<Held>): Promise<Held> {
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
