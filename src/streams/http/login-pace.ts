/** Reason for a login before the token expires: the server refused the token, or requests with it only failed. */
export type Doubt = 'refused' | 'failed';

/**
 * Minimum time between early logins, in ms. `first` doubles with each further early login, up to `max`; if the last one gave a token
 * that worked, the minimum is `helped` at most. Too small: a server that fails for an hour uses up the login quota. Too large: lists wait
 * longer for a new token after the server has lost the old one.
 */
const GAPS = {
  refused: { first: 10_000, helped: 30_000, max: 5 * 60_000 },
  failed: { first: 60_000, helped: 60_000, max: 20 * 60_000 },
} as const;
/** Time without an early login after which the gaps begin with `first` again, in ms. */
const FORGOTTEN_AFTER_MS = 60 * 60_000;

/** Number of logins within {@link RECENT_MS} that need no gap between them. */
const BURST = 3;
const RECENT_MS = 60_000;
/** Minimum time between further logins within {@link RECENT_MS}, in ms. With the burst this stays below ten logins a minute. */
const LEAST_GAP_MS = 10_000;

/**
 * Limits how often an account logs in, in addition to the login quota, so that tokens with very short lives or a server that refuses
 * every token cause no login loop.
 */
export class LoginPace {
  /** Times of the newest logins, in ms. */
  readonly #logins: number[] = [];
  /** Number of early logins, each less than {@link FORGOTTEN_AFTER_MS} after the one before. */
  #doubts = 0;
  #doubtAt = -Infinity;
  /** Whether the token of the last early login has worked. */
  #hasHelped = false;

  /** How long the next login has to wait, in ms; 0 unless logins came in quick succession. */
  waitMs(now: number): number {
    const recent = this.#logins.filter((at) => now - at < RECENT_MS);
    if (recent.length < BURST) return 0;
    return Math.max(0, recent.at(-1)! + LEAST_GAP_MS - now);
  }

  /** Records the start of a login. */
  begin(now: number): void {
    this.#logins.push(now);
    this.#logins.splice(0, this.#logins.length - BURST);
  }

  /** Whether an early login may be made now. */
  allows(doubt: Doubt, now: number): boolean {
    if (this.#doubts === 0) return true;
    const { first, helped, max } = GAPS[doubt];
    const gap = Math.min(first * 2 ** (this.#doubts - 1), this.#hasHelped ? helped : max);
    return now - this.#doubtAt >= gap;
  }

  /** Records that an early login is about to be made. */
  doubted(now: number): void {
    this.#doubts = now - this.#doubtAt > FORGOTTEN_AFTER_MS ? 1 : this.#doubts + 1;
    this.#doubtAt = now;
    this.#hasHelped = false;
  }

  /** Records that the newest token works. */
  helped(): void {
    this.#hasHelped = true;
  }
}
