import { inspect } from 'node:util';
import type { RequestListener, ServerResponse } from 'node:http';
import { firstValueFrom } from 'rxjs';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseDescription } from '../../../src/description/read-description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { describeError } from '../../../src/core/errors.ts';
import type { Retry } from '../../../src/streams/flow/backoff.ts';
import type { AnswerSeen } from '../../../src/streams/http/http.ts';
import { login } from '../../../src/streams/http/login.ts';
import type { LoginOptions, Token } from '../../../src/streams/http/login.ts';
import { tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import { failureOf } from '../../support/failure.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { serve } from '../../support/http-server.ts';
import type { HttpServer } from '../../support/http-server.ts';
import { jwt } from '../../support/jwt.ts';

const MINUTE = 60_000;
/** The server's clock: in whole seconds, as `Date` and JWTs have it. */
const NOW = Date.UTC(2026, 2, 5, 12);
const SECONDS = NOW / 1_000;

let dispatcher: Agent;
let server: HttpServer | undefined;

beforeEach(() => {
  dispatcher = new Agent();
});
afterEach(async () => {
  await dispatcher.destroy();
  await server?.close();
  server = undefined;
});

/** Options for a login at a server that answers so, on a clock that does not run by itself. */
async function options(answer: RequestListener): Promise<LoginOptions> {
  server = await serve(answer);
  const limit = tokenBucket({ capacity: 10, windowMs: MINUTE });
  return {
    baseUrl: server.url,
    description: WINE,
    apiKey: () => 'my-s3cret-key',
    dispatcher,
    limit,
    scheduler: hurriedTime(5).scheduler,
  };
}

/** Answers with a token of these claims. */
function answering(
  claims: Readonly<Record<string, unknown>>,
  expiresIn: unknown,
  date: string | null = new Date(NOW).toUTCString(),
): RequestListener {
  return (_, response) => {
    response.sendDate = false;
    if (date !== null) response.setHeader('date', date);
    response.end(JSON.stringify({ accessToken: jwt(claims), expiresIn }));
  };
}

const refusing =
  (status: number): RequestListener =>
  (_, response) =>
    response.writeHead(status).end('{}');

const tokenFrom = async (answer: RequestListener): Promise<Token> =>
  firstValueFrom(login(await options(answer)));

describe('login', () => {
  it.each([201, 202, 203])('takes the token of an answer with status %i', async (status) => {
    const token = await tokenFrom((_, response) =>
      response.writeHead(status).end(JSON.stringify({ accessToken: jwt({}) })),
    );
    expect(token.text).toBe(jwt({}));
  });

  it('sends the key as JSON and gives the token as it was sent', async () => {
    let body = '';
    const token = await tokenFrom((request, response) => {
      request.on('data', (part) => (body += part));
      request.on('end', () => answering({ exp: SECONDS + 60 }, 1)(request, response));
    });
    expect(server!.requests[0]).toMatchObject({ method: 'POST', url: '/v1/auth/public/login' });
    expect(server!.requests[0]!.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(JSON.parse(body)).toEqual({ apiKey: 'my-s3cret-key' });
    expect(token).toEqual({
      text: jwt({ exp: SECONDS + 60 }),
      askedAt: 5,
      lifeMs: MINUTE,
      serverTime: NOW,
    });
  });

  it('reads the key anew at each login', async () => {
    const keys = ['first', 'second'];
    const sent: string[] = [];
    const at = await options((request, response) => {
      request.on('data', (part) => sent.push(String(part)));
      request.on('end', () => answering({}, 1)(request, response));
    });
    const login$ = login({ ...at, apiKey: () => keys.shift()! });
    await firstValueFrom(login$);
    await firstValueFrom(login$);
    expect(sent).toEqual(['{"apiKey":"first"}', '{"apiKey":"second"}']);
  });
});

describe('a login that the description makes otherwise', () => {
  /** Logs in at a server that answers so, by a description with this login. */
  async function loggedIn(text: string, answer: RequestListener) {
    const yaml = `
format: 1
api: shop
parameters: [shop]
headers: { X-Shop: '{shop}' }
auth: { login: ${text} }
quota: 100/min
list: { paging: none, records: '', key: id }
lists: { carts: { path: /carts } }`;
    const description = parseDescription(yaml, 'shop.yaml');
    const at = await options(answer);
    return login({ ...at, description, parameters: { shop: 'n1' } });
  }
  const token =
    (value: object): RequestListener =>
    (_, response) =>
      response.end(JSON.stringify(value));

  it('sends a form to its path, with the headers of every request', async () => {
    let body = '';
    const login$ = await loggedIn(
      "{ path: '/{shop}/token', form: { grant: key, key: '{api_key}+&' }, token: /result/0/text }",
      (request, response) => {
        request.on('data', (part) => (body += part));
        request.on('end', () => token({ result: [{ text: 't' }] })(request, response));
      },
    );
    expect((await firstValueFrom(login$)).text).toBe('t');
    expect(server!.requests[0]).toMatchObject({ method: 'POST', url: '/n1/token' });
    expect(server!.requests[0]!.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      'x-shop': 'n1',
    });
    expect(body).toBe('grant=key&key=my-s3cret-key%2B%26');
  });

  it.each<[string, string, object, number]>([
    ['in its unit', 'life: { at: /in, unit: s }', { t: 'x', in: 3_600 }, 60],
    ['in minutes', 'life: { at: /in, unit: min }', { t: 'x', in: '90' }, 90],
    ['by default', 'life: { at: /in, unit: s, default: 2h }', { t: 'x' }, 120],
    ['if nothing says it', '', { t: 'x' }, 30],
    [
      'not by the claims of a JWT, if the description does not say that the token is one',
      '',
      { t: jwt({ iat: SECONDS, exp: SECONDS + 60 }) },
      30,
    ],
    ['by a JWT', 'life: { jwt: true }', { t: jwt({ iat: SECONDS, exp: SECONDS + 60 }) }, 1],
  ])('reads how long a token lives: %s', async (_, life, value, minutes) => {
    const text = `{ path: /t, body: { shop: '{shop}' }, token: /t, ${life} }`;
    const { lifeMs } = await firstValueFrom(await loggedIn(text, token(value)));
    expect(lifeMs).toBe(minutes * MINUTE);
  });

  it('takes the statuses that it names for a wrong key, and finds the token in its place', async () => {
    const text = "{ path: /t, body: { k: '{api_key}' }, token: /auth/key, refused: [422] }";
    expect(await failureOf(await loggedIn(text, refusing(422)))).toMatchObject({
      code: 'API_KEY_REJECTED',
      context: { status: 422 },
    });
    await server!.close();
    expect(await failureOf(await loggedIn(text, refusing(400)))).toMatchObject({
      code: 'API_STATUS',
    });
    await server!.close();
    const answers = [token({}), token({ auth: { key: 't' } })];
    const login$ = await loggedIn(text, (...given) => answers.shift()!(...given));
    expect((await firstValueFrom(login$)).text).toBe('t');
    expect(server!.requests).toHaveLength(2);
  });

  it('is a mistake of the program if there is none', async () => {
    const at = await options(refusing(500));
    const description = { auth: 'none', headers: {} } as const;
    expect(() => login({ ...at, description })).toThrow(
      /the description has neither a login nor OAuth 2 in `auth`/,
    );
  });
});

describe('the life of a token', () => {
  const date = (ms: number) => new Date(ms).toUTCString();
  const exp = SECONDS + 20 * 60;

  it.each<[string, RequestListener, number]>([
    ['its exp, from Date', answering({ exp }, 1_800_000), 20],
    ['its exp, from iat when there is no Date', answering({ exp, iat: SECONDS }, 1, null), 20],
    [
      'its exp, though the clock of the server is a year ahead',
      answering(
        { exp: exp + 31_536_000, iat: SECONDS + 31_536_000 },
        1,
        date(NOW + 31_536_000_000),
      ),
      20,
    ],
    [
      'what is left of it, when the server gives the same token again',
      answering({ exp, iat: SECONDS - 10 * 60 }, 1_800_000),
      20,
    ],
    [
      'its exp from iat, when Date is behind',
      answering({ exp, iat: SECONDS }, 1, date(NOW - 3_600_000)),
      20,
    ],
    [
      'its exp from iat, when Date is past it',
      answering({ exp, iat: SECONDS }, 1, date(NOW + 3_600_000)),
      20,
    ],
    ['expiresIn, when exp is over already', answering({ exp: SECONDS - 1 }, 600_000), 10],
    ['expiresIn, when exp can be held against nothing', answering({ exp }, 600_000, null), 10],
    ['expiresIn in ms, when there is no exp', answering({}, 1_800_000), 30],
    ['30 minutes for expiresIn in seconds', answering({}, 1_800), 30],
    ['the least expiresIn that is believed', answering({}, 10_000), 1 / 6],
    ['the longest', answering({}, 24 * 60 * MINUTE), 24 * 60],
    ['30 minutes for expiresIn in microseconds', answering({}, 1_800_000_000), 30],
    ['30 minutes for an expiresIn of 0', answering({}, 0), 30],
    ['30 minutes for a negative expiresIn', answering({}, -1_800_000), 30],
    ['30 minutes for an expiresIn that is a text', answering({}, '1800000'), 30],
    ['30 minutes for an expiresIn past belief', answering({}, 1e300), 30],
    ['30 minutes without expiresIn', answering({}, undefined), 30],
    ['expiresIn in seconds, when that is not 30 minutes', answering({}, 3_600), 60],
    ['expiresIn as a text', answering({}, '3600'), 60],
    ['30 minutes for an expiresIn of null', answering({}, null), 30],
    ['its exp in ms', answering({ exp: exp * 1_000, iat: SECONDS * 1_000 }, 1), 20],
    ['a day at most', answering({ exp: exp + 3e9, iat: SECONDS }, 1), 24 * 60],
    [
      'its exp from iat, when Date is so far ahead that nothing would be left',
      answering({ exp, iat: SECONDS }, 1, date(NOW + 20 * MINUTE - 2_000)),
      20,
    ],
    ['expiresIn, when exp is no number', answering({ exp: 'tomorrow' }, 600_000), 10],
  ])('is %s', async (_, answer, minutes) => {
    expect((await tokenFrom(answer)).lifeMs).toBe(minutes * MINUTE);
  });

  it.each(['opaque', 'a.b.c', `a.${Buffer.from('[1]').toString('base64url')}.c`, 'a..c'])(
    'is expiresIn for a token that is no JWT: %s',
    async (accessToken) => {
      const token = await tokenFrom((_, response) =>
        response.end(JSON.stringify({ accessToken, expiresIn: 600_000 })),
      );
      expect(token).toMatchObject({ text: accessToken, lifeMs: 10 * MINUTE });
    },
  );
});

describe('the server time of a login', () => {
  it('is its Date, less what may have passed since', async () => {
    let now = 0;
    const at = await options(answering({}, 1));
    const scheduler = { ...hurriedTime().scheduler, now: () => (now += 40) };
    const token = await firstValueFrom(login({ ...at, scheduler }));
    expect(token).toMatchObject({ askedAt: 80, serverTime: NOW - 40 }); // 40 is when it began to wait
  });

  it('is the iat of the token when there is no Date, and unknown without both', async () => {
    const { serverTime } = await tokenFrom(answering({ iat: SECONDS }, 1, null));
    expect(serverTime).toBe(NOW);
    await server!.close();
    expect((await tokenFrom(answering({}, 1, null))).serverTime).toBeUndefined();
  });
});

describe('a login that fails', () => {
  it.each([400, 401, 403])('is final for %s, in one line without the key', async (status) => {
    const at = await options((_, response) => {
      response.writeHead(status);
      response.end('{"message":"no such key: my-s3cret-key"}');
    });
    const error = await failureOf(login(at));
    expect(error).toMatchObject({ code: 'API_KEY_REJECTED', context: { status } });
    expect(describeError(error)).toBe(
      `the login at ${at.baseUrl.href}v1/auth/public/login refused the API key (${status}): check API_KEY`,
    );
    expect(inspect(error, { depth: 10 })).not.toContain('s3cret');
    expect(server!.requests).toHaveLength(1);
  });

  it.each<[string, number, string]>([
    ['a firewall', 403, '<html>Request blocked</html>'],
    ['a firewall that sends plain text', 403, 'error code: 1020'],
    ['a firewall that sends nothing', 403, ''],
    ['a proxy', 401, '<html>Unauthorized</html>'],
    ['a TLS port', 400, 'Client sent an HTTP request to an HTTPS server.'],
    ['an old proxy', 418, 'no'],
  ])('because of %s is tried again, and does not blame the key', async (_, status, text) => {
    const answers = [
      (response: ServerResponse) => response.writeHead(status).end(text),
      (response: ServerResponse) => response.end('{"accessToken":"good"}'),
    ];
    const errors: unknown[] = [];
    const onRetry = ({ error }: Retry) => void errors.push(error);
    const at = await options((_request, response) => void answers.shift()!(response));
    await firstValueFrom(login({ ...at, hooks: { onRetry } }));
    expect(errors).toMatchObject([{ code: 'API_STATUS', context: { status } }]);
    const said = describeError(errors[0]);
    expect(said).toContain(`answered ${status} without JSON: something in front of the API blocks`);
    expect(said).toMatch(/Check API_BASE_URL and API_LOGIN_URL, .* IP address or the user agent/);
    expect(said).not.toContain('API_KEY');
    expect(said.includes('must begin with https://')).toBe(status === 400);
  });

  it.each<[number, Record<string, string>, RegExp]>([
    [404, {}, /answered 404: the login is not at this address\. check API_LOGIN_URL$/],
    [405, {}, /answered 405: the login is not at this address\. check API_LOGIN_URL$/],
    [
      308,
      { location: 'https://api.example/v2/login?token=s3cret' },
      /answered 308, a redirect to https:\/\/api\.example: .* set API_LOGIN_URL to its new address$/,
    ],
    [302, { location: '/login' }, /answered 302$/],
    [503, {}, /answered 503$/],
  ])('names the setting to look at for a %d', async (status, headers, expected) => {
    const answers = [
      (response: ServerResponse) => response.writeHead(status, headers).end('{}'),
      (response: ServerResponse) => response.end('{"accessToken":"good"}'),
    ];
    const errors: unknown[] = [];
    const onRetry = ({ error }: Retry) => void errors.push(error);
    const at = await options((_request, response) => void answers.shift()!(response));
    await firstValueFrom(
      login({ ...at, loginUrl: new URL('/login', at.baseUrl), hooks: { onRetry } }),
    );
    expect(describeError(errors[0])).toMatch(expected);
  });

  describe('of a key that has worked', () => {
    const good = answering({ exp: SECONDS + 600 }, 1);

    /** Answers in their order, and the last one from then on; every pause is as long as it may be. */
    const loginAt = async (answers: RequestListener[], given: Partial<LoginOptions> = {}) => {
      const retried: Retry[] = [];
      const at = await options((request, response) => {
        const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
        answer(request, response);
      });
      const onRetry = (retry: Retry) => void retried.push(retry);
      return { login$: login({ ...at, random: () => 1, hooks: { onRetry }, ...given }), retried };
    };

    it('once, by a gateway in trouble, is tried again with growing pauses and ends nothing', async () => {
      const answers = [good, refusing(401), refusing(403), refusing(400), good];
      const { login$, retried } = await loginAt(answers);
      await firstValueFrom(login$);
      await firstValueFrom(login$);
      expect(retried.map(({ delayMs }) => delayMs)).toEqual([250, 500, 1_000]);
      expect(retried.map(({ error }) => error)).toMatchObject(
        [401, 403, 400].map((status) => ({ code: 'API_KEY_REJECTED', context: { status } })),
      );
      expect(describeError(retried[0]!.error)).toMatch(
        /refused the API key \(401\), which it has accepted before: check API_KEY$/,
      );
    });

    it('for as long as is borne ends the login with the error of a wrong one', async () => {
      const { login$, retried } = await loginAt([good, refusing(401)], { keyPatienceMs: 1_500 });
      await firstValueFrom(login$);
      const error = await failureOf(login$);
      expect(retried.map(({ delayMs }) => delayMs)).toEqual([250, 500, 1_000]);
      expect(describeError(error)).toMatch(/refused the API key \(401\): check API_KEY$/);
      await failureOf(login$); // who logs in again has as much patience
      expect(retried).toHaveLength(6);
    });

    it('is borne for ten minutes, if nobody says otherwise', async () => {
      const { scheduler, waits } = hurriedTime();
      const limit = tokenBucket({ capacity: 100, windowMs: MINUTE, scheduler });
      const { login$ } = await loginAt([good, refusing(401)], { scheduler, limit });
      await firstValueFrom(login$);
      await failureOf(login$);
      const passed = waits.reduce((sum, ms) => sum + ms);
      expect(passed).toBeGreaterThanOrEqual(600_000);
      expect(passed).toBeLessThan(630_000);
    });

    it.each<[string, RequestListener]>([
      ['a status that says nothing of the key', refusing(503)],
      ['no answer', (request) => request.socket.destroy()],
      ['a token', good],
    ])('is borne afresh after %s', async (_, between) => {
      // Pauses of 250, 500, 1,000 ms: the later refusal comes too late for the first one's patience.
      const answers = [good, refusing(401), refusing(401), between, refusing(401), good];
      const { login$ } = await loginAt(answers, { keyPatienceMs: 300 });
      while (answers.length > 1) await firstValueFrom(login$);
    });

    it('says nothing of another key, whose first refusal is final', async () => {
      const keys = ['worked', 'new'];
      const { login$, retried } = await loginAt([good, refusing(401)], {
        apiKey: () => keys.shift()!,
      });
      await firstValueFrom(login$);
      expect(await failureOf(login$)).toMatchObject({ code: 'API_KEY_REJECTED' });
      expect(retried).toEqual([]);
    });
  });

  it('shows the key in no other error either', async () => {
    const errors: unknown[] = [];
    const answers: RequestListener[] = [
      (_, response) => response.writeHead(500).end('my-s3cret-key'),
      (_, response) => response.end('my-s3cret-key'),
      (request) => request.socket.destroy(),
      answering({}, 1),
    ];
    const at = await options((request, response) => answers.shift()!(request, response));
    const onRetry = ({ error }: Retry) => void errors.push(error);
    const seen: AnswerSeen[] = [];
    const onAnswer = (answer: AnswerSeen) => void seen.push(answer);
    await firstValueFrom(login({ ...at, hooks: { onAnswer, onRetry } }));
    expect(seen.map(({ status }) => status)).toEqual([500, 200, undefined, 200]);
    expect(errors).toMatchObject([
      { code: 'API_STATUS' },
      { code: 'API_ANSWER' },
      { code: 'API_UNREACHABLE' },
    ]);
    expect(inspect(errors, { depth: 10 })).not.toContain('s3cret');
  });

  it('pauses for a part that chance decides before it tries again', async () => {
    const clock = hurriedTime();
    let answers = 0;
    const given = await options((request, response) => {
      if (++answers > 2) return answering({}, 600_000)(request, response);
      response.writeHead(500).end();
    });
    await firstValueFrom(login({ ...given, scheduler: clock.scheduler, random: () => 0.5 }));
    expect(clock.waits).toEqual([125, 250]);
  });

  it.each([404, 302, 503])('is tried again for a %d, as of a gateway before it', async (status) => {
    const answers = [refusing(status), answering({}, 600_000)];
    const at = await options((request, response) => answers.shift()!(request, response));
    expect((await firstValueFrom(login(at))).lifeMs).toBe(600_000);
  });

  it.each<[string, string]>([
    ['Bearer good', 'good'],
    [' good\n', 'good'],
    ['bearer  good', 'good'],
  ])('takes a token sent as %j', async (accessToken, text) => {
    const token = await tokenFrom((_, response) => response.end(JSON.stringify({ accessToken })));
    expect(token.text).toBe(text);
  });

  it.each(['a b', 'a\nb', 'to\u212Aen', '\u0000'])(
    'names a token that no header can hold: %j',
    async (accessToken) => {
      const answers = [accessToken, 'good'];
      const errors: unknown[] = [];
      const at = await options((_, response) =>
        response.end(JSON.stringify({ accessToken: answers.shift() })),
      );
      const onRetry = ({ error }: Retry) => void errors.push(error);
      expect((await firstValueFrom(login({ ...at, hooks: { onRetry } }))).text).toBe('good');
      expect(errors).toMatchObject([{ code: 'API_ANSWER' }]);
      expect(describeError(errors[0])).toMatch(/an accessToken with characters that a header/);
    },
  );

  it.each(['{}', '{"accessToken":""}', '{"accessToken":7}', 'null', '"x"', '<html>', ''])(
    'is tried again for an answer of %s',
    async (text) => {
      const answers = [text, JSON.stringify({ accessToken: 'good' })];
      const at = await options((_, response) => response.end(answers.shift()));
      expect((await firstValueFrom(login(at))).text).toBe('good');
    },
  );

  it('waits as long as a 429 says, and then for the quota again', async () => {
    const starts: number[] = [];
    const clock = hurriedTime();
    const sandbox = await startSandbox({ loginQuotaPerMinute: 1, now: () => NOW + 18_000 });
    const at: LoginOptions = {
      baseUrl: new URL(sandbox.url),
      description: WINE,
      apiKey: () => sandbox.apiKey,
      dispatcher,
      limit: tokenBucket({
        capacity: 10,
        windowMs: MINUTE,
        scheduler: clock.scheduler,
        onStart: (start) => void starts.push(start),
      }),
      scheduler: clock.scheduler,
    };
    await firstValueFrom(login(at));
    const retried: Retry[] = [];
    const stopped = new Error('seen enough');
    const onRetry = (retry: Retry) => {
      retried.push(retry);
      if (retried.length === 3) throw stopped;
    };
    await expect(firstValueFrom(login({ ...at, hooks: { onRetry } }))).rejects.toBe(stopped);
    expect(retried.map(({ delayMs }) => delayMs)).toEqual([60_000, 60_000, 60_000]);
    expect(retried[0]!.error).toMatchObject({ code: 'QUOTA_EXCEEDED' });
    expect(starts).toEqual([0, 0, 60_000, 120_000]);
    await sandbox.close();
  });

  it('asks through the quota: not before there is room, and not again when unsubscribed', async () => {
    const at = await options(answering({}, 1));
    const clock = hurriedTime();
    const limit = tokenBucket({ capacity: 1, windowMs: 1_000, scheduler: clock.scheduler });
    const login$ = login({ ...at, limit, scheduler: clock.scheduler });
    expect((await firstValueFrom(login$)).askedAt).toBe(0);
    login$.subscribe().unsubscribe();
    expect((await firstValueFrom(login$)).askedAt).toBe(1_000);
    expect(server!.requests).toHaveLength(2);
  });
});
