import { take } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../src/errors.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { backoff, RETRY_AFTER } from '../../src/streams/backoff.ts';
import type { Retry } from '../../src/streams/backoff.ts';
import { virtualTime } from '../support/virtual-time.ts';

const passing = new CellarstreamError('API_UNREACHABLE', 'no answer');

describe('backoff', () => {
  it('tries again after pauses whose ceiling doubles up to `mostMs`', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const random = () => 0.5;
      const source = cold('  -#', undefined, passing);
      const expected = '     36ms -#'; // 1 + 4, 1 + 8, 1 + 10, 1 + 10, 1: halves of 8, 16, 20, 20
      const subs = ['^!', '5ms ^!', '14ms ^!', '25ms ^!', '36ms ^!'];
      const tries = backoff({ firstMs: 8, mostMs: 20, retries: 4, random, scheduler });

      expectObservable(source.pipe(tries)).toBe(expected, undefined, passing);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('waits any part of the ceiling, and tells of each pause', () => {
    const told: Retry[] = [];
    const parts = [0, 0.999, 0.25];
    const scheduler = virtualTime();
    scheduler.run(({ cold }) => {
      const random = () => parts.shift()!;
      const onRetry = (retry: Retry) => told.push(retry);
      const tries = backoff({ firstMs: 1_000, retries: 3, random, scheduler, onRetry });
      cold('#', undefined, passing)
        .pipe(tries)
        .subscribe({ error: () => undefined });
    });
    expect(told).toEqual([
      { error: passing, count: 1, delayMs: 0 },
      { error: passing, count: 2, delayMs: 1_998 },
      { error: passing, count: 3, delayMs: 1_000 },
    ]);
  });

  it('waits 30 s at most and 250 ms to begin with, unless told otherwise', () => {
    const pauses: number[] = [];
    const scheduler = virtualTime();
    scheduler.run(({ cold }) => {
      const onRetry = ({ delayMs }: Retry) => pauses.push(delayMs);
      cold('#', undefined, passing)
        .pipe(backoff({ retries: 50, random: () => 1, scheduler, onRetry }))
        .subscribe({ error: () => undefined });
    });
    expect(pauses.slice(0, 8)).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
    expect(new Set(pauses.slice(8))).toEqual(new Set([30_000]));
  });

  it('waits as long as the server asks for, and not a part of it', () => {
    const busy = new CellarstreamError('QUOTA_EXCEEDED', '429', { context: { [RETRY_AFTER]: 7 } });
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  #', undefined, busy);
      const expected = '     14ms #';
      const subs = ['(^!)', '7ms (^!)', '14ms (^!)'];
      const tries = backoff({ firstMs: 1, retries: 2, random: () => 0.5, scheduler });

      expectObservable(source.pipe(tries)).toBe(expected, undefined, busy);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it.each([
    ['a refused key', new CellarstreamError('API_KEY_REJECTED', 'check API_KEY')],
    ['a bad request', new CellarstreamError('API_STATUS', '400', { context: { status: 400 } })],
    ['a bug', new TypeError('x is not a function')],
  ])('lets %s through at once', (_, error) => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  a-#', undefined, error);
      const subs = '         ^-!';
      const expected = '     a-#';

      const result = source.pipe(backoff({ scheduler }), take(9)); // lest a wrong one go on for ever
      expectObservable(result).toBe(expected, undefined, error);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('counts afresh after a value', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  a-#          ', undefined, passing);
      const expected = '     a 5ms a 5ms (a|)'; // every pause is the first one: 4 ms, not 8
      const subs = ['^-!', '6ms ^-!', '12ms (^!)'];
      const tries = backoff<string>({ firstMs: 4, retries: 1, random: () => 1, scheduler });

      expectObservable(source.pipe(tries, take(3))).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('tries a first refused token again at once, a second after a pause', () => {
    const refused = new CellarstreamError('TOKEN_REJECTED', '401');
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -#', undefined, refused);
      const expected = '     10ms -#';
      const subs = ['^!', '-^!', '10ms ^!'];
      const tries = backoff({ firstMs: 4, retries: 2, random: () => 1, scheduler });

      expectObservable(source.pipe(tries)).toBe(expected, undefined, refused);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('gives up its timer when unsubscribed', () => {
    const scheduler = virtualTime();
    const timers = vi.spyOn(scheduler, 'schedule');
    const pause = () => {
      const place = timers.mock.calls.findIndex(([, delayMs]) => delayMs === 1_234);
      return timers.mock.results[place]?.value as unknown;
    };
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -#   ', undefined, passing);
      const subs = '         ^!   ';
      const unsub = '        ^---!';
      const expected = '     -----';
      const tries = backoff({ firstMs: 1_234, random: () => 1, scheduler });

      expectObservable(source.pipe(tries), unsub).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subs);
      scheduler.schedule(() => expect(pause()).toHaveProperty('closed', false), 3);
      scheduler.schedule(() => expect(pause()).toHaveProperty('closed', true), 5);
    });
    expect.assertions(4); // marbles, subscriptions, and both looks at the timer
  });

  it('mirrors never and empty', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      expectObservable(cold('a-').pipe(backoff({ scheduler }))).toBe('a-');
      expectObservable(cold('a-|').pipe(backoff({ scheduler }))).toBe('a-|');
    });
  });

  const status = (code: number) =>
    [
      'API_STATUS',
      new CellarstreamError('API_STATUS', `${code}`, { context: { status: code } }),
    ] as const;
  const coded = (code: ErrorCode) => [code, new CellarstreamError(code, code)] as const;

  it.each([
    ...[500, 502, 503, 504, 301, 302, 307, 404, 408, 409, 423, 425].map(
      (code) => [...status(code), true] as const,
    ),
    ...[400, 405, 410, 422, 204].map((code) => [...status(code), false] as const),
    ...(
      [
        'API_ANSWER',
        'API_UNREACHABLE',
        'KAFKA_UNREACHABLE',
        'STATE_FOLDER',
        'STATE_DAMAGED',
      ] as const
    ).map((code) => [...coded(code), true] as const),
    ...(['SETTINGS', 'FENCED', 'TOPIC_SETTINGS', 'STATE_LOCKED', 'SERVICES'] as const).map(
      (code) => [...coded(code), false] as const,
    ),
  ])('%s (%s) is tried again: %s', (_, error, again) => {
    const onRetry = vi.fn();
    const scheduler = virtualTime();
    scheduler.run(({ cold }) => {
      cold('#', undefined, error)
        .pipe(backoff({ retries: 1, scheduler, onRetry }))
        .subscribe({ error: () => undefined });
    });
    expect(onRetry).toHaveBeenCalledTimes(again ? 1 : 0);
  });
});
