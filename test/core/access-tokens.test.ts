import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { AccessTokens } from '../../src/core/access-tokens.ts';
import { describeError, isRetryable } from '../../src/core/errors.ts';
import type { CellarstreamError } from '../../src/core/errors.ts';
import { Secret } from '../../src/core/secret.ts';
import { clientTokens } from '../../src/core/client-tokens.ts';
import { VERSION } from '../../src/core/version.ts';
import { jwt } from '../support/jwt.ts';
import { CLIENT, startTokenEndpoint } from '../support/token-endpoint.ts';
import type { OddAnswer, TokenEndpoint } from '../support/token-endpoint.ts';

let endpoint: TokenEndpoint;
let dispatcher: Agent;
let now: number;
beforeEach(async () => {
  endpoint = await startTokenEndpoint();
  dispatcher = new Agent();
  now = Date.now();
});
afterEach(async () => {
  await dispatcher.destroy();
  await endpoint.close();
});

function tokensOf(options: { readonly secret?: string; readonly url?: string } = {}) {
  const { secret = CLIENT.secret, url = endpoint.url } = options;
  const failures: [CellarstreamError, number][] = [];
  const endpointOf = {
    credentials: {
      tokenUrl: url,
      clientId: CLIENT.id,
      clientSecret: new Secret(secret),
      scope: 'kafka all',
    },
    errors: {
      settings: 'KAFKA_OAUTH',
      ca: 'KAFKA_SSL_CA_FILE',
      unreachable: 'KAFKA_UNREACHABLE',
      refused: 'KAFKA_REFUSED',
    },
    dispatcher,
  } as const;
  const tokens = clientTokens(endpointOf, {
    onRenewalFailed: (error, leftMs) => failures.push([error as CellarstreamError, leftMs]),
    now: () => now,
  });
  return { tokens, failures };
}

const granted = (body: object): OddAnswer => ({ body: { access_token: 'a-token', ...body } });

async function errorOf(tokens: AccessTokens): Promise<CellarstreamError> {
  return tokens.get().then(
    () => expect.fail('no error'),
    (error: unknown) => error as CellarstreamError,
  );
}

describe('an access token', () => {
  it('is asked for with HTTP Basic, encoded as RFC 6749 has it', async () => {
    endpoint.auth = 'basic';
    const { tokens } = tokensOf();
    await tokens.get();
    expect(endpoint.requests).toHaveLength(1);
    const [{ headers, form }] = endpoint.requests as [(typeof endpoint.requests)[number]];
    expect(form).toEqual({ grant_type: 'client_credentials', scope: 'kafka all' });
    expect(headers['user-agent']).toBe(`cellarstream/${VERSION}`);
  });

  it('is asked for with the secret in the form where the server does not take Basic', async () => {
    endpoint.auth = 'post';
    const { tokens } = tokensOf();
    const { value } = await tokens.get();
    now += 10_000;
    tokens.forget(value);
    await tokens.get();
    const ways = endpoint.requests.map(({ headers }) => headers.authorization?.split(' ')[0]);
    expect(ways).toEqual(['Basic', undefined, undefined]);
  });

  it('is not refused for good while an outage hides whether the server takes the secret in the form', async () => {
    endpoint.auth = 'post';
    const answers: OddAnswer[] = [{ status: 401, body: { error: 'invalid_client' } }];
    endpoint.answer = () => answers.shift() ?? { status: 503, body: {} };
    const { tokens } = tokensOf();
    expect(isRetryable(await errorOf(tokens))).toBe(true);
    endpoint.answer = undefined;
    now += 60_000;
    expect(await tokens.get()).toMatchObject({ value: expect.any(String) as string });
  });

  it('is asked for once by many at a time, and shared until 80 % of its life are over', async () => {
    endpoint.lifeSeconds = 100;
    const { tokens } = tokensOf();
    const many = await Promise.all(Array.from({ length: 5 }, () => tokens.get()));
    expect(new Set(many.map(({ value }) => value)).size).toBe(1);
    now += 75_000;
    expect(await tokens.get()).toEqual(many[0]);
    expect(endpoint.requests).toHaveLength(1);
    now += 6_000;
    expect(await tokens.get()).not.toEqual(many[0]);
    expect(endpoint.requests).toHaveLength(2);
  });

  it('serves until its end while it can not be renewed, and the endpoint is not asked at every call', async () => {
    endpoint.lifeSeconds = 100;
    const { tokens, failures } = tokensOf();
    const first = await tokens.get();
    endpoint.answer = () => ({ status: 503, text: 'down' });
    now += 85_000;
    expect(await tokens.get()).toEqual(first);
    expect(await tokens.get()).toEqual(first);
    expect(endpoint.requests).toHaveLength(2);
    const [[failure, leftMs]] = failures as [(typeof failures)[number]];
    expect(failure.message).toBe('KAFKA_OAUTH_TOKEN_URL answered 503');
    expect(leftMs).toBeGreaterThan(10_000);
    now += 16_000;
    expect(await errorOf(tokens)).toMatchObject({
      code: 'KAFKA_UNREACHABLE',
      message: 'KAFKA_OAUTH_TOKEN_URL answered 503',
    });
    endpoint.answer = undefined;
    now += 2_000;
    expect(await tokens.get()).not.toEqual(first);
  });

  it('is tried again for some seconds by a server that refuses it at first', async () => {
    const { tokens } = tokensOf();
    const { value } = await tokens.get();
    now += 5_000;
    tokens.forget(value);
    expect((await tokens.get()).value).toBe(value);
    expect(endpoint.requests).toHaveLength(1);
  });

  it('is not used again once a server has refused it', async () => {
    const { tokens } = tokensOf();
    const { value } = await tokens.get();
    now += 10_000;
    tokens.forget('another');
    expect((await tokens.get()).value).toBe(value);
    tokens.forget(value);
    expect((await tokens.get()).value).not.toBe(value);
  });

  const at = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;
  it.each<[string, () => object, number]>([
    ['a number of seconds', () => ({ expires_in: 100 }), 100],
    ['a text', () => ({ expires_in: '100' }), 100],
    ['nothing', () => ({}), 60],
    ['0', () => ({ expires_in: 0 }), 60],
    ['a negative number', () => ({ expires_in: -5 }), 60],
    ['no number', () => ({ expires_in: 'soon' }), 60],
    ['ten years', () => ({ expires_in: 315_360_000 }), 86_400],
    ['nothing, and a JWT with its end', () => ({ access_token: jwt({ exp: at(120) }) }), 120],
    [
      'more than the JWT',
      () => ({ expires_in: 3_600, access_token: jwt({ iat: at(0), exp: at(120) }) }),
      120,
    ],
    [
      'less than a JWT by a clock that is behind',
      () => ({ expires_in: 300, access_token: jwt({ iat: at(-600), exp: at(-300) }) }),
      300,
    ],
  ])('has a plausible life where the server says %s', async (_, body, seconds) => {
    endpoint.answer = () => granted(body());
    const { tokens } = tokensOf();
    const { expiresAt } = await tokens.get();
    expect(Math.abs(expiresAt - now - seconds * 1_000)).toBeLessThanOrEqual(2_000);
  });
});

describe('a token endpoint that gives no token is named with the setting to check', () => {
  it.each<[string, OddAnswer, string, RegExp]>([
    [
      'an HTML page',
      { text: '<html>Log in</html>' },
      'KAFKA_REFUSED',
      /answered 200, and the response contains no access token/,
    ],
    [
      'no token',
      { body: { token_type: 'Bearer' } },
      'KAFKA_REFUSED',
      /check that it is the address/,
    ],
    [
      'a token with a line end',
      granted({ access_token: 'a\r\nb' }),
      'KAFKA_REFUSED',
      /that it is the/,
    ],
    [
      '404',
      { status: 404, text: 'no such page' },
      'KAFKA_REFUSED',
      /answered 404, and the response contains no access token: .* address/,
    ],
    [
      'a redirect',
      { status: 302, text: '' },
      'KAFKA_REFUSED',
      /answered 302, and the response contains no access token: .* address/,
    ],
    [
      'an unknown scope',
      { status: 400, body: { error: 'invalid_scope' } },
      'KAFKA_REFUSED',
      /^KAFKA_OAUTH_TOKEN_URL answered 400 \(invalid_scope\): check KAFKA_OAUTH_SCOPE$/,
    ],
    [
      'a client without the grant',
      { status: 400, body: { error: 'unauthorized_client' } },
      'KAFKA_REFUSED',
      /client_credentials: allow it at the identity provider$/,
    ],
    ['503', { status: 503, text: '' }, 'KAFKA_UNREACHABLE', /answered 503$/],
    ['429', { status: 429, text: '' }, 'KAFKA_UNREACHABLE', /answered 429$/],
  ])('%s', async (_, answer, code, line) => {
    endpoint.answer = () => answer;
    const error = await errorOf(tokensOf().tokens);
    expect(error).toMatchObject({ code, message: expect.stringMatching(line) });
    expect(isRetryable(error)).toBe(code === 'KAFKA_UNREACHABLE');
  });

  it('a wrong secret, which is in no error', async () => {
    const { tokens } = tokensOf({ secret: 'wrong-secret-9' });
    const error = await errorOf(tokens);
    expect(error).toMatchObject({
      code: 'KAFKA_REFUSED',
      message:
        'KAFKA_OAUTH_TOKEN_URL answered 401 (invalid_client: Client authentication failed): ' +
        'check KAFKA_OAUTH_CLIENT_ID and KAFKA_OAUTH_CLIENT_SECRET',
    });
    endpoint.answer = () => ({
      status: 400,
      body: { error: 'invalid_client', error_description: 'no client with wrong-secret-9' },
    });
    now += 2_000;
    expect(describeError(await errorOf(tokens))).not.toContain('wrong-secret-9');
  });

  it('a port that is closed', async () => {
    const error = await errorOf(tokensOf({ url: 'http://127.0.0.1:1/token' }).tokens);
    expect(error).toMatchObject({
      code: 'KAFKA_UNREACHABLE',
      message: 'no answer from KAFKA_OAUTH_TOKEN_URL (http://127.0.0.1:1)',
    });
  });

  it('one that does not answer: the call ends after 3 s, and the next waits for the same answer', async () => {
    endpoint.answer = () => null;
    const { tokens } = tokensOf();
    const late = {
      code: 'KAFKA_UNREACHABLE',
      message: 'no answer from KAFKA_OAUTH_TOKEN_URL in 3 s',
    };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    for (let call = 1; call <= 2; call++) {
      const error = errorOf(tokens);
      await vi.waitUntil(() => endpoint.requests.length === 1);
      await vi.advanceTimersByTimeAsync(3_000);
      expect(await error).toMatchObject(late);
    }
    expect(endpoint.requests).toHaveLength(1);
  });

  it('a page in its place passes once it has given tokens', async () => {
    const { tokens } = tokensOf();
    const { value } = await tokens.get();
    endpoint.answer = () => ({ status: 404, text: 'no route' });
    now += 10_000;
    tokens.forget(value);
    expect(await errorOf(tokens)).toMatchObject({ code: 'KAFKA_UNREACHABLE' });
  });
});
