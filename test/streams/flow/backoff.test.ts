import { defer, firstValueFrom, take } from 'rxjs';
import { request } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { ErrorCode } from '../../../src/core/errors.ts';
import { backoff, RETRY_AFTER } from '../../../src/streams/flow/backoff.ts';
import type { Retry } from '../../../src/streams/flow/backoff.ts';
import { serve } from '../../support/http-server.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const passing = new CellarstreamError('API_UNREACHABLE', 'no answer');

describe('backoff', () => {
  it('tries again after pauses whose ceiling doubles up to `maxMs`', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const random = () => 0.5;
      const source = cold('  -#', undefined, passing);
      const expected = '     36ms -#'; // 1 + 4, 1 + 8, 1 + 10, 1 + 10, 1: halves of 8, 16, 20, 20
      const subs = ['^!', '5ms ^!', '14ms ^!', '25ms ^!', '36ms ^!'];
      const tries = backoff({ firstMs: 8, maxMs: 20, retries: 4, random, scheduler });

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
    ...[500, 502, 503, 504, 408, 409, 423, 425, 429].map(
      (code) => [...status(code), true] as const,
    ),
    // A 404 would be tried for ever, without a word.
    ...[404, 301, 302, 307, 400, 405, 410, 422, 204].map(
      (code) => [...status(code), false] as const,
    ),
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

  it('lets whoever knows more say what can pass', () => {
    const [, gone] = status(404);
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const source = cold('#', undefined, gone);
      const tries = backoff({
        retries: 1,
        random: () => 1,
        firstMs: 4,
        scheduler,
        canPass: (error) => error === gone,
      });
      expectObservable(source.pipe(tries)).toBe('4ms #', undefined, gone);
    });
  });

  /** What `work` comes to, and how often it was tried again; twice at most. */
  const tried = async (work: () => Promise<unknown>) => {
    let retries = 0;
    const tries = backoff({ retries: 2, firstMs: 1, onRetry: () => (retries += 1) });
    const end = await firstValueFrom(defer(work).pipe(tries)).catch((error: unknown) => error);
    return { end, retries };
  };
  /** An address at which nobody listens. */
  const nowhere = async () => {
    const server = await serve((_, response) => response.end());
    await server.close();
    return server.url;
  };

  it('tries an API again that is not up yet, as fetch and undici tell it', async () => {
    const url = await nowhere();
    expect(await tried(() => fetch(url))).toMatchObject({
      end: { name: 'TypeError', message: 'fetch failed' },
      retries: 2,
    });
    expect(await tried(() => request(url))).toMatchObject({
      end: { code: 'ECONNREFUSED' },
      retries: 2,
    });
  });

  it('tries an answer again that breaks off, or does not come in the time that was set for it', async () => {
    const cutOff = await serve((_, response) => {
      response.write('half');
      setTimeout(() => response.destroy(), 20);
    });
    const silent = await serve(() => undefined);
    const impatient = () => fetch(silent.url, { signal: AbortSignal.timeout(20) });
    expect((await tried(async () => (await fetch(cutOff.url)).text())).retries).toBe(2);
    expect((await tried(impatient)).retries).toBe(2);
    await Promise.all([cutOff.close(), silent.close()]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['an address that is none', () => fetch('http://')],
    ['a protocol that nobody speaks', () => fetch('gopher://api.example/')],
    ['who has aborted it', () => fetch('http://127.0.0.1:1/', { signal: AbortSignal.abort() })],
    ['a bug', () => Promise.reject(new TypeError('x is not a function'))],
    [
      'a certificate that is not trusted',
      () =>
        Promise.reject(
          new TypeError('fetch failed', {
            cause: Object.assign(new Error('self-signed certificate'), {
              code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
            }),
          }),
        ),
    ],
  ])('does not try again for %s', async (_, work) => {
    const { end, retries } = await tried(work);
    expect(end).toBeInstanceOf(Error);
    expect(retries).toBe(0);
  });
});
