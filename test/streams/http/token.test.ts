import { defer, delay, endWith, map, of, switchMap, throwError } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Token } from '../../../src/streams/http/login.ts';
import { tokenSource } from '../../../src/streams/http/token.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const LOGIN_MS = 2;
const LIFE_MS = 100; // renewed at 80 ms

/** Logins that take 2 ms each and give the tokens a, b, c and so on. */
function logins(scheduler: SchedulerLike, lifeMs = LIFE_MS) {
  const given: Token[] = [];
  const login = defer(() => {
    const text = String.fromCharCode(97 + given.length);
    given.push({ text, askedAt: scheduler.now(), lifeMs, serverTime: undefined });
    return of(given.at(-1)!).pipe(delay(LOGIN_MS, scheduler));
  });
  return { login, given };
}

const texts = (token$: Observable<Token>) => token$.pipe(map(({ text }) => text));

/** A source with its fake logins, on the virtual clock. */
function setUp(scheduler: TestScheduler, lifeMs = LIFE_MS) {
  const { login, given } = logins(scheduler, lifeMs);
  const source = tokenSource({ login, scheduler });
  const at = (ms: number, work: () => void) => void scheduler.schedule(work, ms);
  return {
    text$: texts(source.token$),
    current: () => source.current(),
    /** Reports a page, and then a 401, of one list: the token is dead. */
    refuse: (token: Token) => {
      const sentAt = scheduler.now();
      source.report({ token, list: 'orders', sentAt }, 'worked');
      source.report({ token, list: 'orders', sentAt }, 'refused');
    },
    given,
    at,
  };
}

describe('tokenSource', () => {
  it('logs in again when 80 % of a short life are over', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { text$ } = setUp(scheduler);
      const unsub = '   200ms !';
      const expected = '--a 79ms b 79ms c'; // asked for at 0, 80 and 160 ms

      expectObservable(text$, unsub).toBe(expected);
    });
  });

  it('logs in again a minute before the end of a long life', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { text$ } = setUp(scheduler, 30 * 60_000);
      const unsub = '   30m !';
      const expected = '--a 1739999ms b';

      expectObservable(text$, unsub).toBe(expected);
    });
  });

  it('is one chain for all subscribers; who comes later has the token at once', () => {
    const scheduler = virtualTime();
    const { text$, given } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      expectObservable(text$, '^ 119ms      !').toBe('--a 79ms b');
      expectObservable(text$, '-^ 118ms     !').toBe('--a 79ms b');
      expectObservable(text$, '50ms ^ 69ms  !').toBe('50ms a 31ms b');
    });
    expect(given.map(({ askedAt }) => askedAt)).toEqual([0, 80]);
  });

  it('keeps the old token in hand while the next is fetched', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { text$, current, at } = setUp(scheduler);
      at(1, () => expect(current()).toBeUndefined());
      at(81, () => expect(current()?.text).toBe('a'));
      at(83, () => expect(current()?.text).toBe('b'));

      expectObservable(text$, '^ 119ms     !').toBe('--a 79ms b');
      expectObservable(text$, '81ms ^ 38ms !').toBe('81ms ab');
    });
  });

  it('logs in once however many refuse a token', () => {
    const scheduler = virtualTime();
    const { text$, current, refuse, given, at } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      at(10, () => {
        const token = current()!;
        for (let k = 0; k < 3; k++) refuse(token);
        expect(current()).toBeUndefined();
      });
      at(11, () => refuse(given[0]!)); // late news of the same token
      at(13, () => refuse(given[0]!)); // later still: b is there

      expectObservable(text$, '^ 49ms     !').toBe('--a---------b');
      expectObservable(text$, '11ms ^ 38ms !').toBe('------------b'); // not the refused one
    });
    expect(given.map(({ text }) => text)).toEqual(['a', 'b']);
  });

  it('does not log in for the refusal of a token that has been replaced', () => {
    const scheduler = virtualTime();
    const { text$, current, refuse, given, at } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      at(90, () => refuse(given[0]!));
      at(91, () => expect(current()?.text).toBe('b'));

      expectObservable(text$, '^ 119ms !').toBe('--a 79ms b');
    });
    expect(given).toHaveLength(2);
  });

  it('gives nobody a token that was refused while the next is on its way', () => {
    const scheduler = virtualTime();
    const { text$, refuse, given, at } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      at(81, () => refuse(given[0]!)); // the login started at 80 ms

      expectObservable(text$, '^ 119ms      !').toBe('--a 79ms b');
      expectObservable(text$, '81ms ^ 38ms  !').toBe('82ms b');
    });
    expect(given).toHaveLength(2);
  });

  it('gives who comes after everybody left the token, as long as it is fresh', () => {
    const scheduler = virtualTime();
    const { text$, given } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      expectObservable(text$, '^ 9ms        !').toBe('--a');
      expectObservable(text$, '50ms ^ 49ms  !').toBe('50ms a 31ms b'); // renewed when it is due
      expectObservable(text$, '170ms ^ 9ms  !').toBe('172ms c'); // b was over at 160 ms
    });
    expect(given.map(({ askedAt }) => askedAt)).toEqual([0, 80, 170]);
  });

  it('logs in for the next one when a token was refused and nobody waited', () => {
    const scheduler = virtualTime();
    const { text$, refuse, given, at } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      at(20, () => refuse(given[0]!));

      expectObservable(text$, '^ 9ms       !').toBe('--a');
      expectObservable(text$, '50ms ^ 9ms  !').toBe('52ms b');
    });
  });

  it('leaves no timer running when everybody has left', () => {
    const scheduler = virtualTime();
    const timers = vi.spyOn(scheduler, 'schedule');
    const renewal = () => {
      const place = timers.mock.calls.findIndex(([, delayMs]) => delayMs === 80 - LOGIN_MS);
      return timers.mock.results[place]?.value as unknown;
    };
    const { text$, given, at } = setUp(scheduler);
    scheduler.run(({ expectObservable }) => {
      expectObservable(text$, '^----!').toBe('--a');
      expectObservable(text$, '-^---!').toBe('--a');
      at(4, () => expect(renewal()).toHaveProperty('closed', false));
      at(6, () => expect(renewal()).toHaveProperty('closed', true));
    });
    expect(given).toHaveLength(1);
    expect.assertions(5);
  });

  it('aborts a login that nobody waits for any longer', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const login = cold<Token>('-----|');
      const { token$ } = tokenSource({ login, scheduler });

      expectObservable(token$, '^--!').toBe('----');
      expectSubscriptions(login.subscriptions).toBe('^--!');
    });
  });

  it('passes an error of the login to all who wait, and logs in afresh for who comes later', () => {
    const rejected = new CellarstreamError('API_KEY_REJECTED', 'check API_KEY');
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const good = logins(scheduler).login;
      let count = 0;
      const login = defer(() => {
        count += 1;
        return count === 1 ? cold<Token>('--#', undefined, rejected) : good;
      });
      const text$ = texts(tokenSource({ login, scheduler }).token$);

      expectObservable(text$, '^ 19ms    !').toBe('--#', undefined, rejected);
      expectObservable(text$, '-^ 19ms   !').toBe('--#', undefined, rejected);
      expectObservable(text$, '---^ 9ms  !').toBe('-----a');
    });
  });

  it('still has the token in hand when its renewal fails', () => {
    const rejected = new CellarstreamError('API_KEY_REJECTED', 'check API_KEY');
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { login: good } = logins(scheduler);
      let count = 0;
      const login = defer(() => (++count === 1 ? good : throwError(() => rejected)));
      const source = tokenSource({ login, scheduler });

      expectObservable(texts(source.token$), '^ 99ms !').toBe('--a 77ms #', undefined, rejected);
      scheduler.schedule(() => expect(source.current()?.text).toBe('a'), 90);
    });
  });

  it('gives nobody a token past its end while the next login fails', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const { login: good } = logins(scheduler);
      let count = 0;
      const late = defer(() =>
        cold('40ms |').pipe(
          endWith(0),
          switchMap(() => good),
        ),
      ); // tried again till 120 ms
      const login = defer(() => (++count === 1 ? good : late));
      const source = tokenSource({ login, scheduler });
      const held = (ms: number, text?: string) =>
        scheduler.schedule(() => expect(source.current()?.text).toBe(text), ms);
      held(94, 'a');
      held(95); // a twentieth before its end: what is sent arrives later
      held(121);
      held(123, 'b');

      expectObservable(texts(source.token$), '    ^ 129ms !').toBe('--a 119ms b');
      expectObservable(texts(source.token$), '90ms ^ 39ms !').toBe('90ms a 31ms b');
      expectObservable(texts(source.token$), '96ms ^ 33ms !').toBe('122ms b');
    });
    expect.assertions(7);
  });

  it('holds a long life for over two seconds before its end', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold }) => {
      const { login: good } = logins(scheduler, 30 * 60_000);
      let count = 0;
      const login = defer(() => (++count === 1 ? good : cold<Token>('-')));
      const source = tokenSource({ login, scheduler });
      const subscription = source.token$.subscribe();
      const end = 30 * 60_000 - 2_000;
      scheduler.schedule(() => expect(source.current()?.text).toBe('a'), end - 1);
      scheduler.schedule(() => expect(source.current()).toBeUndefined(), end);
      scheduler.schedule(() => subscription.unsubscribe(), end + 1);
    });
    expect.assertions(2);
  });

  it('sets no timer longer than timers can be, however long a token lives', () => {
    const scheduler = virtualTime();
    const timers = vi.spyOn(scheduler, 'schedule');
    const { text$, given } = setUp(scheduler, 100 * 365 * 86_400_000);
    scheduler.run(({ expectObservable }) => {
      expectObservable(text$, `${2 ** 31 + 100}ms !`).toBe('--a');
    });
    const longest = Math.max(...timers.mock.calls.map(([, delayMs = 0]) => delayMs));
    expect(longest).toBeLessThan(2 ** 31 + 101); // the unsubscription's own, and no longer one
    expect(timers.mock.calls.map(([, delayMs]) => delayMs)).toContain(2 ** 31 - 1);
    expect(given).toHaveLength(1);
  });

  it('gives a token once, though timers fire early', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const hasty = {
        now: () => scheduler.now(),
        schedule: (work: () => void, delayMs = 0) =>
          scheduler.schedule(work, Math.max(1, delayMs - 1)),
      } as SchedulerLike;
      const { login } = logins(scheduler);
      const { token$ } = tokenSource({ login, scheduler: hasty });

      expectObservable(texts(token$), '100ms !').toBe('--a 79ms b');
    });
  });

  it('tells of every new token', () => {
    const told: string[] = [];
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { login } = logins(scheduler);
      const { token$ } = tokenSource({ login, scheduler, onToken: ({ text }) => told.push(text) });

      expectObservable(texts(token$), '^ 99ms !').toBe('--a 79ms b');
      expectObservable(texts(token$), '^ 99ms !').toBe('--a 79ms b');
    });
    expect(told).toEqual(['a', 'b']);
  });
});
