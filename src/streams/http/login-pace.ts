/** Why a login is wanted although the token's time is not over: it was refused, or had nothing but failures. */
export type Doubt = 'refused' | 'failed';

/**
 * Gaps between logins that were made because of a doubt, in ms. `first` doubles from doubt to doubt up to `max`; where the last
 * such login gave a token that worked, the gap is `helped` at most. Too small: a server that fails for an hour
 * uses up the login quota. Too large: a token that the server forgot keeps its lists waiting.
 */
const GAPS = {
  refused: { first: 10_000, helped: 30_000, max: 5 * 60_000 },
  failed: { first: 60_000, helped: 60_000, max: 20 * 60_000 },
} as const;
/** Doubts that are further apart than this are counted from one again, in ms. */
const FORGOTTEN_AFTER_MS = 60 * 60_000;

/** Logins that may follow one another at once within {@link RECENT_MS}. */
const BURST = 3;
const RECENT_MS = 60_000;
/** Least gap between further ones, in ms: together they stay below ten logins a minute. */
const LEAST_GAP_MS = 10_000;

/**
 * When an account may log in, beside its login quota: tokens whose life is too short, or a server that refuses every token, make
 * no login loop.
 */
export class LoginPace {
  /** Times of the newest logins, in ms. */
  readonly #logins: number[] = [];
  /** Logins because of a doubt in a row. */
  #doubts = 0;
  #doubtAt = -Infinity;
  #hasHelped = false;

  /** How long the next login has to wait, in ms; 0 mostly. */
  waitMs(now: number): number {
    const recent = this.#logins.filter((at) => now - at < RECENT_MS);
    if (recent.length < BURST) return 0;
    return Math.max(0, recent.at(-1)! + LEAST_GAP_MS - now);
  }

  begin(now: number): void {
    this.#logins.push(now);
    this.#logins.splice(0, this.#logins.length - BURST);
  }

  /** Whether a doubt about the token is worth a login now. */
  allows(doubt: Doubt, now: number): boolean {
    if (this.#doubts === 0) return true;
    const { first, helped, max } = GAPS[doubt];
    const gap = Math.min(first * 2 ** (this.#doubts - 1), this.#hasHelped ? helped : max);
    return now - this.#doubtAt >= gap;
  }

  /** A login is made because of a doubt. */
  doubted(now: number): void {
    this.#doubts = now - this.#doubtAt > FORGOTTEN_AFTER_MS ? 1 : this.#doubts + 1;
    this.#doubtAt = now;
    this.#hasHelped = false;
  }

  /** The newest token works. */
  helped(): void {
    this.#hasHelped = true;
  }
}
