import {
  asyncScheduler,
  defer,
  distinctUntilChanged,
  filter,
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

/** What {@link tokenSource} needs. */
export interface TokenSourceOptions {
  /** One login: emits a token and completes. Tries again by itself whatever can pass. */
  readonly login: Observable<Token>;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
  /** Told of every new token. */
  readonly onToken?: (token: Token) => void;
}

/** The token of one account, shared by all its requests. */
export interface TokenSource {
  /** The newest token that is not over, at once or as soon as there is one, and every later one. Never completes. */
  readonly token$: Observable<Token>;
  /** The token in hand; undefined while there is none, or while that one is over and the next is waited for. */
  current(): Token | undefined;
  /** The server refused this token: forget it, and log in. Any number of refusals of one token make one login. */
  refuse(token: Token): void;
}

/** A token is renewed when this part of its life is over, or when a minute of it is left. */
const USED_PART = 0.8;
const SPARE_MS = 60_000;
/**
 * It is over so much before its end, or this part of a short life: its times are in whole seconds, and what
 * is sent arrives later.
 */
const MARGIN_MS = 2_000;
const MARGIN_PART = 0.05;
/** Timers count their ms in 31 bits; a longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The token as a stream driven by a timer: log in, wait until the token is nearly over, log in
 * again; all subscribers share the one chain. The old token stays in hand while the next is fetched, until
 * two seconds before its end (a twentieth of a short life): nobody asks with one that is over.
 *
 * The timer runs while someone is subscribed. The token outlives them: who comes next is given it,
 * if it is still fresh, without a login. An error of the login goes to all who wait, and a later
 * subscription tries afresh.
 */
export function tokenSource(options: TokenSourceOptions): TokenSource {
  const { login, scheduler = asyncScheduler, onToken } = options;
  const refused = new Subject<void>(); // what is in hand
  let current: Token | undefined;
  const isOver = ({ askedAt, lifeMs }: Token): boolean =>
    scheduler.now() >= askedAt + lifeMs - Math.min(MARGIN_MS, lifeMs * MARGIN_PART);

  const freshFor = (token: Token): number =>
    token.askedAt + Math.max(token.lifeMs * USED_PART, token.lifeMs - SPARE_MS) - scheduler.now();

  const next = defer(() =>
    current && freshFor(current) > 0
      ? of(current)
      : login.pipe(
          tap((token) => {
            current = token;
            onToken?.(token);
          }),
        ),
  );
  /** What is in hand when a token's time is over: still the token, or nothing if it was refused. */
  const end = (token: Token): Observable<Token | undefined> =>
    merge(
      timer(Math.min(Math.max(0, freshFor(token)), LONGEST_TIMER_MS), scheduler).pipe(
        map(() => token),
      ),
      refused.pipe(map(() => undefined)),
    ).pipe(take(1));

  const token$ = next.pipe(
    switchMap((token) => merge(end(token), of(token)).pipe(take(2))),
    repeat(),
    distinctUntilChanged(),
    share({ connector: () => new ReplaySubject<Token | undefined>(1) }),
    // What is replayed may be refused or over since, while the next login was under way.
    filter((token): token is Token => token !== undefined && token === current && !isOver(token)),
  );
  return {
    token$,
    current: () => (current && !isOver(current) ? current : undefined),
    refuse: (token) => {
      if (token !== current) return;
      current = undefined;
      refused.next();
    },
  };
}
