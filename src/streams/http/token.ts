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
import type { Token } from './login.ts';
import { LoginPace, TokenLife } from './token-life.ts';
import type { TokenOutcome, TokenUse, TokenVerdict } from './token-life.ts';

/** What {@link tokenSource} needs. */
export interface TokenSourceOptions {
  /** One login: emits a token and completes. Retries by itself after errors that can pass. */
  readonly login: Observable<Token>;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Called with every new token. */
  readonly onToken?: (token: Token) => void;
  /** Called when a login waits because logins followed one another too fast: with the newest token, and the wait in ms. */
  readonly onPaced?: (token: Token | undefined, delayMs: number) => void;
}

/** The token of one account, shared by all its requests. */
export interface TokenSource {
  /** The token to send, at once or as soon as there is one, and every later one. Never completes. */
  readonly token$: Observable<Token>;
  /** The token to send now; undefined while there is none, and the next login is waited for. */
  current(): Token | undefined;
  /**
   * Records how the server took a request, and says how its list goes on. A token that seems to be dead is renewed, once however
   * many requests report it. Without reports a token is used until its time is over.
   */
  report(use: TokenUse, outcome: TokenOutcome): TokenVerdict;
}

/** A token is renewed when this part of its life is over, or when a minute of it is left. */
const USED_PART = 0.8;
const SPARE_MS = 60_000;
/** Timers count their ms in 31 bits; a longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The token as a stream driven by a timer: log in, wait until the token is nearly over, log in again; all subscribers share the one chain.
 * The old token stays in use until the new one has worked, or until two seconds before its end (a twentieth of a short life).
 *
 * The timer runs while there is a subscriber. The token outlives them: a later subscriber gets it without a login if it is still fresh. An
 * error of the login goes to all who wait, and a later subscription logs in again.
 */
export function tokenSource(options: TokenSourceOptions): TokenSource {
  const { login, scheduler = asyncScheduler, onToken, onPaced } = options;
  const pace = new LoginPace();
  const life = new TokenLife(pace);
  const renew$ = new Subject<void>();

  const freshFor = ({ askedAt, lifeMs }: Token): number => {
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
  /** Emits the token once more when it has to be renewed. */
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
    // The replayed token may be dead or over, or its predecessor still in use.
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
