import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { isRetryableAtApi } from '../../../src/core/errors.ts';
import type { ApiDescription } from '../../../src/description/description.ts';
import { AnswerRules } from '../../../src/streams/http/answer-rules.ts';
import type { HttpResponse } from '../../../src/streams/http/http.ts';
import { tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import type { TokenOutcome } from '../../../src/streams/http/token-life.ts';
import { answering } from '../../support/answering.ts';
import type { Given } from '../../support/answering.ts';
import { failureOf } from '../../support/failure.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { pageText, requestOf } from '../decode/text-list.ts';

const NOW = Date.UTC(2026, 2, 5, 12);
const GITHUB = {
  errors: { 403: 'quota' },
  quota: {
    limits: ['5000/h per key'],
    remaining: { header: 'X-RateLimit-Remaining' },
    reset: { header: 'X-RateLimit-Reset', unit: 'epoch-s' },
    retryAfter: { header: 'X-Wait' },
    free: [304],
  },
} satisfies Pick<ApiDescription, 'errors' | 'quota'>;

type Unit = NonNullable<Exclude<ApiDescription['quota'], string>['reset']>['unit'];

const answer = (status: number, headers: HttpResponse['headers'], date?: number) => ({
  ...{ status, headers, date },
  retryAfterMs: undefined,
});

describe('headers of the quota', () => {
  it.each<[Unit, string, number | undefined]>([
    [undefined, '30', 30_000],
    ['s', '1.5', 1_500],
    ['ms', '250', 250],
    ['epoch-s', String(NOW / 1_000 + 60), 60_000],
    ['epoch-ms', String(NOW + 5), 5],
    ['http-date', 'Thu, 05 Mar 2026 12:00:42 GMT', 42_000],
    ['epoch-s', String(NOW / 1_000 - 60), 0],
    ['epoch-s', String(NOW / 1_000 + 3_600), 600_000], // a server's word is believed up to 10 minutes
    ['s', 'soon', undefined],
  ])('say in %s when the quota begins anew: %s', (unit, text, expected) => {
    const reset = { header: 'X-Reset', ...(unit && { unit }) };
    const rules = new AnswerRules({ quota: { limits: ['9/min'], reset } });
    const headers = { 'x-reset': text };
    expect(rules.resetMs(answer(200, headers, NOW), NOW + 7_000)).toBe(expected); // by the server's clock
    expect(rules.resetMs(answer(200, headers), NOW)).toBe(expected); // by one's own, without Date
  });

  it('say how many requests remain', () => {
    const rules = new AnswerRules(GITHUB);
    const remaining = (text: string) =>
      rules.remaining(answer(200, { 'x-ratelimit-remaining': text }));
    expect(['17', '0', 'many', ''].map(remaining)).toEqual([17, 0, undefined, undefined]);
    expect(rules.remaining(answer(200, {}))).toBeUndefined();
  });

  it('say how long to wait: the header of the description, Retry-After, then the reset', () => {
    const rules = new AnswerRules(GITHUB);
    const reset = { 'x-ratelimit-reset': String(NOW / 1_000 + 60) };
    const waitOf = (headers: HttpResponse['headers'], retryAfterMs?: number) =>
      rules.of({ ...answer(403, headers, NOW), retryAfterMs }, NOW).retryAfterMs;
    expect(waitOf({ ...reset, 'x-wait': '2.5' }, 7_000)).toBe(2_500);
    expect(waitOf(reset, 7_000)).toBe(7_000);
    expect(waitOf(reset)).toBe(60_000);
    expect(waitOf({ ...reset, 'x-ratelimit-remaining': '12' })).toBeUndefined(); // another limit
    expect(waitOf({})).toBeUndefined();
  });
});

/** A list of one record whose first answers are these. */
function listWith(
  given: readonly Given[],
  description: Partial<Pick<ApiDescription, 'errors' | 'quota'>>,
) {
  const outcomes: TokenOutcome[] = [];
  const left = [...given];
  const page = { status: 200, headers: {}, text: pageText(['{"order_number":1}'], 0, 100) };
  const token = { text: 't', askedAt: 0, lifeMs: 1e9, serverTime: 0 };
  const { scheduler, waits } = hurriedTime();
  const retried: unknown[] = [];
  const { list } = requestOf(() => '', {
    scheduler,
    dispatcher: answering(() => Promise.resolve(left.shift() ?? page)),
    rules: new AnswerRules(description),
    tokens: {
      token$: of(token),
      current: () => token,
      report: (_, outcome) => {
        outcomes.push(outcome);
        return { isFinal: false, pauseMs: outcome === 'refused' ? 0 : undefined, logsIn: false };
      },
    },
    hooks: { onRetry: ({ error }) => retried.push(error) },
  });
  return { list, waits, outcomes, retried };
}

const refused = (status: number, headers: Record<string, string> = {}, text = '{}'): Given => ({
  ...{ status, headers, text },
});
const unlimited = <T>(source: T): T => source;

describe('a status that the description gives a meaning', () => {
  it.each(['{}', '<html>'])(
    'of quota is waited for, and says nothing of the token: %s',
    async (text) => {
      const wait = { 'X-Wait': '2.5' };
      const { list, waits, outcomes, retried } = listWith([refused(403, wait, text)], GITHUB);
      await firstValueFrom(list({}, unlimited));
      expect(waits).toEqual([2_500]);
      expect(retried).toMatchObject([{ code: 'QUOTA_EXCEEDED', context: { status: 403 } }]);
      expect(outcomes).toEqual(['worked']);
    },
  );

  it('of retry is retried', async () => {
    const { list, outcomes } = listWith([refused(400), refused(401)], {
      errors: { 400: 'retry', 401: 'retry' },
    });
    expect((await firstValueFrom(list({}, unlimited))).data).toHaveLength(1);
    expect(outcomes).toEqual(['failed', 'failed', 'worked']);
  });

  it('of token asks for a new one', async () => {
    const { list, outcomes, retried } = listWith([refused(440)], { errors: { 440: 'token' } });
    await firstValueFrom(list({}, unlimited));
    expect(outcomes).toEqual(['refused', 'worked']);
    expect(retried).toMatchObject([{ code: 'TOKEN_REJECTED' }]);
  });

  it.each([404, 429, 503])('of final ends the list: %i', async (status) => {
    const { list, outcomes } = listWith([refused(status)], { errors: { [status]: 'final' } });
    const error = await failureOf(list({}, unlimited));
    expect(error).toMatchObject({ code: 'API_STATUS', context: { status } });
    expect(isRetryableAtApi(error)).toBe(false);
    expect(outcomes).toEqual([]);
  });

  it('is an error, be it a success elsewhere', async () => {
    const { list, retried } = listWith([refused(202)], { errors: { 202: 'retry' } });
    await firstValueFrom(list({}, unlimited));
    expect(retried).toMatchObject([{ code: 'API_STATUS', context: { status: 202 } }]);
  });

  it('is free where the description says so', async () => {
    const bucket = tokenBucket({ capacity: 9, windowMs: 60_000, scheduler: virtualTime() });
    const { list } = listWith([refused(304), refused(503)], GITHUB);
    await firstValueFrom(list({}, bucket));
    expect(bucket.used()).toBe(2);
  });
});

describe('a 400 that the description gives no meaning', () => {
  it.each([
    ['orderNumber is not known', []],
    ['invalid value: "ordernumber"', []],
    ['the token of these orderNumbers has expired', ['failed-for-good']],
    ['no such session', ['failed-for-good']],
  ])('counts against the token unless it names a parameter: %s', async (message, expected) => {
    const text = JSON.stringify({ message });
    const { list, outcomes } = listWith([refused(400, {}, text)], {});
    await failureOf(list({ key: '5' }, unlimited));
    expect(outcomes.slice(0, 1)).toEqual(expected);
  });
});
