import {
  catchError,
  defer,
  EMPTY,
  firstValueFrom,
  ignoreElements,
  merge,
  repeat,
  tap,
  timer,
} from 'rxjs';
import type { Dispatcher } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listNamed } from '../../../src/description/description.ts';
import type { ListDescription } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { describeError } from '../../../src/core/errors.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import { listRequest } from '../../../src/streams/decode/list-request.ts';
import { login } from '../../../src/streams/http/login.ts';
import { tokenSource } from '../../../src/streams/http/token.ts';
import { TokenEvidence } from '../../../src/streams/http/token-evidence.ts';
import { tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import { liveTokens } from '../../sandbox/live-tokens.ts';
import { SimTime } from '../../sim/sim-time.ts';
import { jwt } from '../../support/jwt.ts';
import { answering } from '../../support/answering.ts';
import type { Given } from '../../support/answering.ts';

const SECOND = 1_000;
const MINUTE = 60_000;
const LOGINS_PER_MINUTE = 10;
/** How long the service leaves a failed list alone. */
const TRY_AGAIN_MS = MINUTE;
const SIX = ['orders', 'customers', 'inventory', 'wine-clubs', 'wine-club-members', 'products'];

const json = (status: number, value: unknown): Given => ({
  status,
  headers: {},
  text: JSON.stringify(value),
});
const PAGE = json(200, { data: [], pagination: { total_records: 0, has_next_page: false } });

/** An API in virtual time: tokens become valid late, end early, and are refused in its own way. */
class FakeApi {
  /** A token is accepted this long after its login, ms. */
  lagMs = 0;
  lifeMs = 30 * MINUTE;
  /** Life that the token itself claims, as a JWT, in ms; undefined for a token that is no JWT. */
  claimedMs: number | undefined;
  latencyMs = 20;
  /** The answer to a request whose token is not accepted. */
  deadToken: Given = json(401, {});
  /** What is answered in place of a page, whatever the token; undefined is a page. */
  inPlace: (list: string, query: URLSearchParams) => Given | undefined = () => undefined;
  /** The answer of the login in place of a token. */
  noLogin: Given | undefined;
  /** Whether each login gives the same token until that is over. */
  isCached = false;
  readonly logins: number[] = [];
  readonly asked: { readonly at: number; readonly list: string; readonly status: number }[] = [];
  readonly #issued: { readonly text: string; readonly at: number }[] = [];
  #revoked = 0;
  readonly #time: SimTime;
  readonly dispatcher: Dispatcher;

  constructor(time: SimTime) {
    this.#time = time;
    this.dispatcher = answering(async ({ path, headers }) => {
      await time.sleep(this.latencyMs / 2);
      const { authorization = '' } = (headers ?? {}) as Record<string, string>;
      const answer = this.#answer(new URL(String(path), 'http://api'), authorization);
      await time.sleep(this.latencyMs / 2);
      return answer;
    });
  }

  /** Every token given out so far is dead. */
  revoke(): void {
    this.#revoked = this.#issued.length;
  }

  #answer({ pathname, searchParams }: URL, authorization: string): Given {
    const at = this.#time.now();
    const list = pathname.slice('/v1/'.length);
    if (list === 'login') {
      this.logins.push(at);
      return this.noLogin ?? this.#login(at);
    }
    const nth = this.#issued.findIndex(({ text }) => authorization === `Bearer ${text}`);
    const issuedAt = this.#issued[nth]?.at ?? Infinity;
    const isAccepted =
      nth >= this.#revoked && at >= issuedAt + this.lagMs && at < issuedAt + this.lifeMs;
    const answer = this.inPlace(list, searchParams) ?? (isAccepted ? PAGE : this.deadToken);
    this.asked.push({ at, list, status: answer.status });
    return answer;
  }

  #login(at: number): Given {
    const newest = this.#issued.at(-1);
    const isKept = this.isCached && newest !== undefined && at < newest.at + this.lifeMs;
    if (!isKept) this.#issued.push({ text: this.#newToken(), at });
    const { text, at: issuedAt } = this.#issued.at(-1)!;
    return json(200, { accessToken: text, expiresIn: this.lifeMs - (at - issuedAt) });
  }

  #newToken(): string {
    const jti = this.#issued.length;
    if (this.claimedMs === undefined) return `t${jti}`;
    const iat = Math.floor(this.#time.now() / SECOND);
    return jwt({ jti, iat, exp: iat + this.claimedMs / SECOND });
  }
}

/** A list that is asked for single records as orders are. */
function withSingleReads(name: string): ListDescription {
  const list = listNamed(WINE, name);
  return { ...list, one: { ...listNamed(WINE, 'orders').one!, path: list.path } };
}

/** Lists that are each polled every second, as the service does, with one token. */
function polling(lists: readonly string[], change: (api: FakeApi) => void = () => undefined) {
  const time = new SimTime(0);
  const { scheduler } = time;
  const api = new FakeApi(time);
  change(api);
  const paced: number[] = [];
  const failed: string[] = [];
  const retried: string[] = [];
  const pages: { readonly at: number; readonly list: string }[] = [];
  const limit = tokenBucket({ capacity: LOGINS_PER_MINUTE, windowMs: MINUTE, scheduler });
  const baseUrl = new URL('http://api');
  const common = {
    baseUrl,
    description: WINE,
    dispatcher: api.dispatcher,
    scheduler,
    random: () => 0.5,
  };
  const hooks = {
    onRetry: ({ error }: { readonly error: unknown }) => void retried.push(describeError(error)),
  };
  const tokens = tokenSource({
    login: login({
      ...common,
      loginUrl: new URL('http://api/v1/login'),
      apiKey: () => 'k',
      limit,
      hooks,
    }),
    scheduler,
    onPaced: (_, delayMs) => void paced.push(delayMs),
  });
  const unlimited = <T>(source: T): T => source;
  const request = (list: string) =>
    listRequest({ ...common, list: withSingleReads(list), tokens, hooks });
  const polls = lists.map((list) => {
    const ask = request(list);
    return defer(() => ask({ offset: 0, pageSize: 10 }, unlimited)).pipe(
      tap(() => pages.push({ at: time.now(), list })),
      catchError((error: unknown) => {
        failed.push(`${list}: ${describeError(error)}`);
        return timer(TRY_AGAIN_MS, scheduler).pipe(ignoreElements());
      }),
      repeat({ delay: () => timer(SECOND, scheduler) }),
    );
  });
  merge(...polls, tokens.token$.pipe(ignoreElements())).subscribe({
    error: (error: unknown) => failed.push(describeError(error)),
  });
  const pagesAfter = (at: number, list = lists[0]!) =>
    pages.filter((page) => page.list === list && page.at > at);
  /** Most logins in any minute. */
  const mostLogins = () =>
    Math.max(
      ...api.logins.map((at) => api.logins.filter((b) => b >= at && b < at + MINUTE).length),
    );
  return {
    ...{ time, api, failed, retried, pages, paced, pagesAfter, mostLogins, tokens },
    one: (list: string, key: string) =>
      request(list)({ key }, unlimited).pipe(
        catchError((error: unknown) => {
          failed.push(`${list} ${key}: ${describeError(error)}`);
          return EMPTY;
        }),
      ),
  };
}

describe.each([
  ['one list', ['orders']],
  ['six lists', SIX],
])('a fresh token that is refused for its first seconds: %s', (_, lists) => {
  it.each([300, 900, 2_500, 5_000])(
    'after %d ms it works, and one login was enough',
    async (lagMs) => {
      const { time, api, failed, pagesAfter } = polling(lists, (api) => (api.lagMs = lagMs));
      await time.pass(20 * SECOND);
      for (const list of lists) expect(pagesAfter(0, list).length).toBeGreaterThan(5);
      expect(api.logins).toHaveLength(1);
      expect(failed).toEqual([]);
    },
  );

  it.each([403, 400, 419])('also when it is refused with %d', async (status) => {
    const { time, api, failed, pagesAfter } = polling(lists, (api) => {
      api.lagMs = 5_000;
      api.deadToken = json(status, { message: 'no' });
    });
    await time.pass(20 * SECOND);
    for (const list of lists) expect(pagesAfter(0, list).length).toBeGreaterThan(5);
    expect(api.logins).toHaveLength(1);
    expect(failed).toEqual([]);
  });

  it('at its renewal the old token is used until the new one works', async () => {
    const { time, api, failed, pages } = polling(lists, (api) => {
      api.lagMs = 5_000;
      api.lifeMs = 10 * MINUTE;
    });
    await time.pass(30 * MINUTE);
    expect(api.logins).toHaveLength(4);
    expect(failed).toEqual([]);
    for (const list of lists) {
      const at = pages.filter((page) => page.list === list).map((page) => page.at);
      const gaps = at.slice(1).map((later, nth) => later - at[nth]!);
      expect(Math.max(...gaps)).toBeLessThan(1_200); // no poll waited for a token
    }
  });

  it('for much longer it costs few logins', async () => {
    const { time, failed, pagesAfter, mostLogins } = polling(lists, (api) => (api.lagMs = 40_000));
    await time.pass(5 * MINUTE);
    for (const list of lists) expect(pagesAfter(0, list).length).toBeGreaterThan(5);
    expect(mostLogins()).toBeLessThanOrEqual(4);
    expect(failed.length).toBeLessThanOrEqual(lists.length);
  });

  it('for ever it uses up a small part of the login quota', async () => {
    const { time, api, mostLogins } = polling(lists, (api) => (api.lagMs = Infinity));
    await time.pass(60 * MINUTE);
    expect(mostLogins()).toBeLessThanOrEqual(4);
    expect(api.logins.length).toBeLessThan(25);
  });
});

const STYLES: readonly [string, Given][] = [
  ['401', json(401, {})],
  ['403', json(403, {})],
  ['400', json(400, { message: 'bad' })],
  ['400 without JSON', { status: 400, headers: {}, text: 'Bad Request' }],
  ['419', json(419, {})],
  ['440', json(440, {})],
  ['498', json(498, {})],
  ['422', json(422, {})],
  ['500', json(500, { message: 'jwt invalid' })],
  ['502', { status: 502, headers: {}, text: '<html>' }],
  ['302 to a login page', { status: 302, headers: { location: '/login' }, text: '' }],
  ['404', { status: 404, headers: {}, text: '<html>' }],
  ['200 with an error', json(200, { error: 'Unauthenticated.' })],
  ['200 with a login page', { status: 200, headers: {}, text: '<html><form>' }],
  ['403 with HTML', { status: 403, headers: {}, text: '<html>' }],
];

describe.each([
  ['one list', ['orders']],
  ['six lists', SIX],
])('a token that dies long before its end: %s', (_, lists) => {
  it.each(STYLES)(
    'reported as %s is replaced within seconds, by one login',
    async (_name, deadToken) => {
      const { time, api, failed, pagesAfter } = polling(
        lists,
        (api) => (api.deadToken = deadToken),
      );
      await time.pass(10 * SECOND);
      api.revoke();
      await time.pass(30 * SECOND);
      for (const list of lists) expect(pagesAfter(25 * SECOND, list).length).toBeGreaterThan(5);
      expect(api.logins).toHaveLength(2);
      expect(failed).toEqual([]);

      api.revoke(); // and once more, soon after
      await time.pass(2 * MINUTE);
      for (const list of lists) expect(pagesAfter(140 * SECOND, list).length).toBeGreaterThan(5);
      expect(api.logins).toHaveLength(3);
      expect(failed).toEqual([]);
    },
  );

  it.each(STYLES)(
    'reported as %s by an API whose new tokens are young',
    async (_name, deadToken) => {
      const { time, api, failed, pagesAfter } = polling(lists, (api) => {
        api.deadToken = deadToken;
        api.lagMs = 3_000;
      });
      await time.pass(20 * SECOND);
      api.revoke();
      await time.pass(90 * SECOND);
      for (const list of lists) expect(pagesAfter(100 * SECOND, list).length).toBeGreaterThan(5);
      expect(api.logins.length).toBeLessThanOrEqual(4);
      expect(failed).toEqual([]);
    },
  );
});

describe('a token that dies early, reported with a status that is final otherwise', () => {
  const final = ['400', '419', '440', '498', '422'];
  const styles = STYLES.filter(([name]) => final.includes(name));

  it.each(styles)('before its first page, as %s: no list fails', async (_, deadToken) => {
    const { time, api, failed, pagesAfter } = polling(SIX, (api) => {
      api.deadToken = deadToken;
      api.lagMs = SECOND;
    });
    await time.pass(SECOND / 2);
    api.revoke();
    await time.pass(30 * SECOND);
    expect(failed).toEqual([]);
    expect(api.logins).toHaveLength(2);
    for (const list of SIX) expect(pagesAfter(20 * SECOND, list).length).toBeGreaterThan(5);
  });

  it.each(styles)('while a query fails with 500, as %s: it does not fail', async (_, deadToken) => {
    const { time, api, failed, pagesAfter, one } = polling(['orders'], (api) => {
      api.deadToken = deadToken;
      api.inPlace = (list) => (list === 'orders' ? json(500, {}) : undefined);
    });
    await time.pass(SECOND / 2);
    one('customers', '1').subscribe(); // works, after the first 500 of orders
    await time.pass(SECOND / 2);
    api.inPlace = () => undefined;
    api.revoke();
    await time.pass(MINUTE);
    expect(failed).toEqual([]);
    expect(pagesAfter(40 * SECOND).length).toBeGreaterThan(5);
  });
});

describe('a token that was accepted only for a moment', () => {
  it.each([json(403, {}), json(400, {})])(
    'between being young and dead, reported with $status: no list fails',
    async (deadToken) => {
      const { time, api, failed, pagesAfter, one } = polling(['orders'], (api) => {
        api.deadToken = deadToken;
        api.lagMs = 6 * SECOND;
      });
      await time.pass(6.2 * SECOND);
      one('customers', '1').subscribe(); // the only success of this token
      await time.pass(SECOND / 2);
      api.revoke();
      await time.pass(2 * MINUTE);
      expect(failed).toEqual([]);
      expect(pagesAfter(60 * SECOND).length).toBeGreaterThan(5);
      expect(api.logins.length).toBeLessThanOrEqual(4);
    },
  );

  it('by one kind of query before it died with 403: the list does not fail', async () => {
    const { time, api, failed, one } = polling([], (api) => {
      api.deadToken = json(403, {});
    });
    one('orders', '1').subscribe();
    await time.pass(SECOND);
    api.revoke();
    one('customers', '1').subscribe();
    await time.pass(MINUTE);
    expect(failed).toEqual([]);
    expect(api.logins).toHaveLength(2);
  });
});

describe('a refusal of a token', () => {
  it("is the list's own only beside successes that ended before it and began after it", () => {
    const token = { text: 't', askedAt: 0, serverTime: undefined, lifeMs: 60 * MINUTE };
    const evidence = new TokenEvidence(token);
    const refusal = { sentAt: 200, answeredAt: 900 };
    evidence.recordSuccess({ token, list: 'orders', sentAt: 0 }, 300);
    evidence.recordSuccess({ token, list: 'orders', sentAt: 901 }, 950);
    expect(evidence.wasAcceptedDuring(refusal)).toBe(false); // the token may have been young

    const other = new TokenEvidence(token);
    other.recordSuccess({ token, list: 'orders', sentAt: 0 }, 100);
    other.recordSuccess({ token, list: 'orders', sentAt: 899 }, 950);
    expect(other.wasAcceptedDuring(refusal)).toBe(false); // it may have died since
    other.recordSuccess({ token, list: 'orders', sentAt: 901 }, 960);
    expect(other.wasAcceptedDuring(refusal)).toBe(true);
  });
});

describe('an API that fails for an hour, whatever the token', () => {
  const some = ['401', '400', '500', '200 with an error', '403 with HTML'];
  it.each(STYLES.filter(([name]) => some.includes(name)))(
    'with %s: costs few logins',
    async (_, answer) => {
      const { time, api, pagesAfter, mostLogins } = polling(SIX);
      await time.pass(MINUTE);
      api.inPlace = () => answer;
      await time.pass(60 * MINUTE);
      expect(mostLogins()).toBeLessThanOrEqual(4);
      expect(api.logins.length).toBeLessThanOrEqual(20);
      api.inPlace = () => undefined;
      await time.pass(2 * MINUTE);
      for (const list of SIX) expect(pagesAfter(62.5 * MINUTE, list).length).toBeGreaterThan(5);
    },
  );
});

describe('one list that fails beside others that work', () => {
  it.each<[string, Given, number]>([
    ['is forbidden with 403', json(403, {}), 1],
    ['is forbidden with 401', json(401, {}), 3],
    ['refuses its query', json(400, {}), 3],
  ])(
    '%s: it is final, costs next to no login and no page of another',
    async (_, answer, logins) => {
      const { time, api, failed, pages, pagesAfter } = polling(['orders', 'customers'], (api) => {
        api.inPlace = (list) => (list === 'orders' ? answer : undefined);
      });
      await time.pass(25 * MINUTE);
      expect(failed.length).toBeGreaterThan(15);
      for (const line of failed) {
        expect(line).toContain(`orders: http://api/v1/orders answered ${answer.status}`);
        expect(line.includes('no right to read this list')).toBe(answer.status !== 400);
      }
      expect(pagesAfter(0)).toEqual([]);
      expect(api.logins.length).toBeLessThanOrEqual(logins);
      const at = pages.map((page) => page.at);
      const gaps = at.slice(1).map((later, nth) => later - at[nth]!);
      expect(Math.max(...gaps)).toBeLessThan(1_500);
    },
  );

  it('alone at an account is final too, after fresh tokens', async () => {
    const { time, api, failed, mostLogins } = polling(['orders'], (api) => {
      api.inPlace = () => json(403, {});
    });
    await time.pass(3 * MINUTE);
    expect(failed[0]).toContain('http://api/v1/orders answered 403 to fresh tokens too');
    expect(mostLogins()).toBeLessThanOrEqual(4);
    api.inPlace = () => undefined;
    await time.pass(2 * MINUTE);
    expect(api.asked.at(-1)).toMatchObject({ status: 200 });
  });
});

describe('a query that the API refuses', () => {
  it('by the name of a parameter is final at once, without a login', async () => {
    const { time, api, failed, one } = polling(['orders'], (api) => {
      api.inPlace = (_, query) =>
        query.has('orderNumber') ? json(400, { message: 'orderNumber is not known' }) : undefined;
    });
    await time.pass(5 * SECOND);
    one('orders', '5').subscribe();
    await time.pass(100);
    expect(failed).toEqual(['orders 5: http://api/v1/orders answered 400']);
    expect(api.logins).toHaveLength(1);
  });

  it('without a reason is final once it was seen with a fresh token', async () => {
    const { time, api, failed, one } = polling(['orders'], (api) => {
      api.inPlace = (_, query) => (query.has('orderNumber') ? json(400, {}) : undefined);
    });
    await time.pass(5 * SECOND);
    one('orders', '5').subscribe();
    await time.pass(10 * SECOND);
    expect(failed).toEqual(['orders 5: http://api/v1/orders answered 400']);
    expect(api.logins.length).toBeLessThanOrEqual(2);
  });
});

describe('a search through many queries that the API refuses without a reason', () => {
  const search = async () => {
    const all = polling([], (api) => {
      api.inPlace = (_, query) => (query.get('orderNumber') === '5' ? json(400, {}) : undefined);
    });
    const { time, one } = all;
    const ask = async (key: string, ms: number) => {
      one('orders', key).subscribe();
      await time.pass(ms);
    };
    await ask('1', SECOND);
    one('orders', '5').subscribe(); // two lanes at once
    await ask('5', 10 * SECOND);
    await ask('1', SECOND);
    for (let nth = 0; nth < 4; nth += 1) await ask('5', SECOND);
    await ask('1', SECOND);
    return { ...all, ask };
  };

  it('takes a second for each but the first, and one login', async () => {
    const { api, failed } = await search();
    expect(failed).toEqual(Array(6).fill('orders 5: http://api/v1/orders answered 400'));
    expect(api.logins).toHaveLength(2);
  });

  it('keeps no token that dies later in the same way', async () => {
    const { time, api, failed, ask } = await search();
    await time.pass(MINUTE);
    api.deadToken = json(400, {});
    api.revoke();
    await ask('1', 10 * SECOND);
    expect(failed).toHaveLength(6);
    expect(api.logins).toHaveLength(3);
  });
});

describe('half of the requests refused by one backend of two', () => {
  it.each([json(401, {}), json(500, {}), json(403, {}), json(400, {})])(
    'with $status: few logins',
    async (answer) => {
      const { time, api, mostLogins } = polling(SIX, (api) => {
        let nth = 0;
        api.inPlace = () => (++nth % 2 === 0 ? answer : undefined);
      });
      await time.pass(4 * MINUTE);
      expect(mostLogins()).toBeLessThanOrEqual(4);
      expect(api.asked.filter(({ status }) => status === 200).length).toBeGreaterThan(120);
    },
  );
});

describe('what a login says of its token', () => {
  it.each([-1, 0, 1, 50, 1_000])(
    'a life of %d ms is not believed: its token is used',
    async (claimedMs) => {
      const { time, api, failed, pages } = polling(
        ['orders'],
        (api) => (api.claimedMs = claimedMs),
      );
      await time.pass(10 * MINUTE);
      expect(failed).toEqual([]);
      expect(api.logins).toHaveLength(1);
      expect(pages.length).toBeGreaterThan(550);
    },
  );

  it('a life of four seconds, which is true, makes no login loop and is named', async () => {
    const { time, failed, mostLogins, paced, pages } = polling(SIX, (api) => {
      api.lifeMs = 4_000;
      api.claimedMs = 4_000;
    });
    await time.pass(10 * MINUTE);
    expect(failed).toEqual([]);
    expect(mostLogins()).toBeLessThan(LOGINS_PER_MINUTE);
    expect(paced.length).toBeGreaterThan(50);
    expect(pages.length).toBeGreaterThan(600);
  });

  it('the same token again and again until its end, with what is left of it, costs few logins', async () => {
    const { time, api, failed, mostLogins, pages } = polling(['orders'], (api) => {
      api.isCached = true;
      api.lifeMs = 5 * MINUTE;
    });
    await time.pass(30 * MINUTE);
    expect(failed).toEqual([]);
    expect(mostLogins()).toBeLessThanOrEqual(4);
    expect(api.logins.length).toBeLessThan(30);
    expect(pages.length).toBeGreaterThan(28 * 58);
  });

  it('a token that lives for a tenth of what it claims', async () => {
    const { time, api, failed, mostLogins, pages } = polling(['orders']);
    for (let minute = 0; minute < 30; minute++) {
      await time.pass(MINUTE);
      api.revoke();
    }
    expect(failed).toEqual([]);
    expect(mostLogins()).toBeLessThanOrEqual(3);
    expect(pages.length).toBeGreaterThan(1_600);
  });
});

describe('a firewall in front of the API', () => {
  const blocked: Given = { status: 403, headers: {}, text: '<html>Request blocked</html>' };

  it('that blocks the login is waited for, and named', async () => {
    const { time, api, failed, retried, pagesAfter } = polling(
      SIX,
      (api) => (api.noLogin = blocked),
    );
    await time.pass(5 * MINUTE);
    expect(failed).toEqual([]);
    expect(retried.at(-1)).toContain('something in front of the API blocks this client');
    expect(retried.join()).not.toContain('API_KEY');
    api.noLogin = undefined;
    await time.pass(MINUTE);
    expect(pagesAfter(5 * MINUTE).length).toBeGreaterThan(5);
  });

  it('that blocks a list is waited for, and named', async () => {
    const { time, api, failed, retried, pagesAfter } = polling(SIX);
    await time.pass(MINUTE);
    api.inPlace = () => blocked;
    await time.pass(5 * MINUTE);
    expect(failed).toEqual([]);
    expect(retried.at(-1)).toContain('something in front of the API blocks this client');
    expect(api.logins.length).toBeLessThanOrEqual(4);
    api.inPlace = () => undefined;
    await time.pass(MINUTE);
    expect(pagesAfter(6 * MINUTE).length).toBeGreaterThan(5);
  });
});

it('a real server with young tokens, dead ones reported as 419: no list fails, one login a token', async () => {
  const sandbox = await startSandbox({
    records: { orders: 5, customers: 5 },
    tokenLagMs: 500,
    readings: { unauthorized: 419 },
  });
  onTestFinished(() => sandbox.close());
  const { dispatcher, listOf, tokens, unlimited } = liveTokens(sandbox);
  const read = (name: string) =>
    firstValueFrom(listRequest({ ...listOf(name), tokens, dispatcher })({}, unlimited));
  const both = () => Promise.all([read('orders'), read('customers')]);
  const lengths = async () => (await both()).map(({ data }) => data.length);
  expect(await lengths()).toEqual([5, 5]);
  expect(sandbox.truth.requests('login')).toHaveLength(1);
  sandbox.revokeTokens();
  expect(await lengths()).toEqual([5, 5]);
  expect(sandbox.truth.requests('login')).toHaveLength(2);
}, 40_000);
