import {
  asyncScheduler,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  of,
  repeat,
  ReplaySubject,
  share,
  Subject,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Authorize } from './authorization.ts';
import type { Token } from './login.ts';
import { LoginPace, TokenLife } from './token-life.ts';
import type { TokenOutcome, TokenUse, TokenVerdict } from './token-life.ts';

/** Options of {@link tokenSource}. */
export interface TokenSourceOptions {
  /** Observable that logs in on subscription, retries temporary errors, emits one token and completes. */
  readonly login: Observable<Token>;
  /** Provides the clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Called after each login with the token that it returned, even if it is the same token as before. */
  readonly onToken?: (token: Token) => void;
  /** Called when a login is delayed because of too many recent logins, with the newest token and the delay in ms. */
  readonly onPaced?: (token: Token | undefined, delayMs: number) => void;
}

/** Provides the token of one account to all its requests. */
export interface TokenSource {
  /**
   * Emits the token to send, at once or as soon as there is one, and then every later token to send. Never completes; a failed login is its
   * error.
   */
  readonly token$: Observable<Token>;
  /** Returns the token to send; undefined while there is none: then requests wait for the next login that succeeds. */
  current(): Token | undefined;
  /**
   * Reports the outcome of a request, and returns the decision about its retry. If the token seems to be dead (no longer accepted by the
   * server), at most one login is made, however many requests report this.
   */
  report(use: TokenUse, outcome: TokenOutcome): TokenVerdict;
  /** Adds the token or other credentials to a request. Default: the token is sent as a bearer token. */
  readonly authorize?: Authorize;
}

/**
 * Fraction of a token's lifetime after which the token is renewed, for lifetimes of up to five minutes. If it is too large, the token
 * expires before a login that has to be retried succeeds.
 */
const USED_PART = 0.8;
/** How long before the end of its lifetime a token is renewed, in ms, for lifetimes of more than five minutes. */
const SPARE_MS = 60_000;
/** Longest delay that a Node timer supports, in ms. A timer with a longer delay fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Creates the token source of one account. It logs in, waits until the token has nearly expired, and logs in again. All subscribers share
 * these logins. If a login fails, all current subscribers get the error, and the next subscription logs in again.
 *
 * After a login, an old token that still worked stays available until the new token has worked, or until the old one is refused or has
 * nearly expired.
 *
 * The renewal timer runs while there is a subscriber. The token is retained without subscribers: a later subscriber gets it without a login
 * if it is still fresh.
 */
export function tokenSource(options: TokenSourceOptions): TokenSource {
  const { login, scheduler = asyncScheduler, onToken, onPaced } = options;
  const pace = new LoginPace();
  const life = new TokenLife(pace);
  const renew$ = new Subject<void>();

  const freshFor = ({ askedAt, lifeMs }: Token): number => {
    // A repeated token is renewed only at the end of its lifetime: before, logins return the same token again.
    const usedMs = life.isRepeated ? lifeMs : Math.max(lifeMs * USED_PART, lifeMs - SPARE_MS);
    return askedAt + usedMs - scheduler.now();
  };

  const newLogin = defer(() => {
    life.loginBegins();
    const waitMs = pace.waitMs(scheduler.now());
    if (waitMs > 0) onPaced?.(life.newest, waitMs);
    const wait$ = waitMs > 0 ? timer(waitMs, scheduler).pipe(ignoreElements()) : EMPTY;
    const paced$ = defer(() => {
      pace.begin(scheduler.now());
      return login;
    });
    return concat(wait$, paced$).pipe(
      tap((token) => {
        life.loggedIn(token, scheduler.now());
        onToken?.(token);
      }),
      finalize(() => life.loginEnds()),
    );
  });
  const next = defer(() => {
    const { newest } = life;
    const isFresh = newest !== undefined && !life.isLoginWanted && freshFor(newest) > 0;
    return isFresh ? of(newest) : newLogin;
  });
  /**
   * Waits until the token must be renewed, because it has nearly expired or an early login was decided on. Then emits `token` and
   * completes.
   */
  const end = (token: Token): Observable<Token> =>
    merge(timer(Math.min(Math.max(0, freshFor(token)), LONGEST_TIMER_MS), scheduler), renew$).pipe(
      map(() => token),
      take(1),
    );

  const token$ = next.pipe(
    switchMap((token) => merge(end(token), of(token)).pipe(take(2))),
    repeat(),
    distinctUntilChanged(),
    share({ connector: () => new ReplaySubject<Token>(1) }),
    // Replaced by the current token: the replayed one may be dead or expired, or the previous token may still be in use.
    map(() => life.current(scheduler.now())),
    filter((token): token is Token => token !== undefined),
    distinctUntilChanged(),
  );
  return {
    token$,
    current: () => life.current(scheduler.now()),
    report: (use, outcome) => {
      const verdict = life.report(use, outcome, scheduler.now());
      if (verdict.logsIn) renew$.next();
      return verdict;
    },
  };
}
