import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { firstValueFrom, lastValueFrom, take } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openApi } from '../../src/account/api.ts';
import type { Api } from '../../src/account/api.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { steadyScheduler } from '../../src/core/clock.ts';
import { describeError } from '../../src/core/errors.ts';
import { listNamed } from '../../src/description/description.ts';
import { descriptionInWords } from '../../src/description/in-words.ts';
import { RefreshTokenFile } from '../../src/state/refresh-token.ts';
import { failureOf } from '../support/failure.ts';
import { hurriedTime } from '../support/hurried-time.ts';
import { serve } from '../support/http-server.ts';
import type { HttpServer } from '../support/http-server.ts';

/** The value of each credential; none of them is part of any other text. */
const VALUES = {
  API_KEY: 'k-3y&of=shop+xQ1',
  API_USERNAME: 'ursula-xQ2',
  API_PASSWORD: 'p:ss %wörd-xQ3',
  API_CLIENT_ID: 'client one-xQ4',
  API_CLIENT_SECRET: 's3cret/+%-xQ5',
  API_REFRESH_TOKEN: 'refresh-0-xQ6',
};

let cwd: string;
let server: HttpServer;
let answer: (request: IncomingMessage, response: ServerResponse) => unknown;
const opened: Api[] = [];
/** Errors of retries, and kinds of requests. */
const retried: unknown[] = [];

const page = (response: ServerResponse) => response.end('{"data":[{"id":1}],"total":1}');

beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'cellarstream-credentials-'));
  answer = (_, response) => page(response);
  server = await serve((request, response) => void answer(request, response));
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((api) => api.close()));
  await server.close();
  rmSync(cwd, { recursive: true });
  retried.length = 0;
});

function configOf(auth: string, env: Readonly<Record<string, string>> = {}) {
  writeFileSync(
    join(cwd, 'shop.yaml'),
    `
format: 1
api: shop
parameters: [realm]
headers: { X-Realm: '{realm}' }
auth: ${auth}
quota: 100/min per list
list:
  paging: offset
  limit: 100
  query: { at: '{offset}', n: '{limit}' }
  records: /data
  total: /total
  key: id
lists:
  links:
    path: /links
    paging: link
    query: { n: '{limit}' }
    next: /next
  carts: { path: /carts, one: { path: '/carts/{key}', record: /data } }
  gifts: { path: '/{realm}/gifts' }
`,
  );
  return loadConfig({
    env: {
      ...VALUES,
      API_DESCRIPTION: 'shop.yaml',
      API_BASE_URL: server.url.origin,
      API_PARAM_REALM: 'r/1',
      ...env,
    },
    cwd,
    needs: ['api'],
  });
}

const unlimited = <T>(source: T): T => source;

/** @param options.scheduler Default: a clock that runs at once to when the next timer is due. */
function opensApi(
  auth: string,
  options: { env?: Readonly<Record<string, string>>; scheduler?: SchedulerLike } = {},
) {
  const config = configOf(auth, options.env);
  const { api: own, description, stateDir } = config;
  const api = openApi({
    ...{ config: own, description, stateDir, loginLimit: unlimited },
    scheduler: options.scheduler ?? hurriedTime().scheduler,
    hooks: { onRetry: ({ error }) => void retried.push(error) },
    random: () => 0.5,
  });
  opened.push(api);
  const pageOf = (list = 'carts', query = {}) =>
    api.list(listNamed(description, list)).pages()(
      { offset: 0, pageSize: 25, ...query },
      unlimited,
    );
  return { api, config, pageOf };
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

const codesOf = (errors: readonly unknown[]) =>
  errors.map((error) => (error as { code: string }).code);

describe('static credentials', () => {
  it.each<[string, Readonly<Record<string, string | undefined>>, string?]>([
    ['none', { authorization: undefined }],
    ["{ bearer: '{api_key}' }", { authorization: `Bearer ${VALUES.API_KEY}` }],
    [
      "{ basic: ['{username}', '{password}'] }",
      { authorization: basic(VALUES.API_USERNAME, VALUES.API_PASSWORD) },
    ],
    ["{ header: X-Api-Key, value: 'k={api_key}' }", { 'x-api-key': `k=${VALUES.API_KEY}` }],
    ["{ header: x-realm, value: '{api_key}' }", { 'x-realm': VALUES.API_KEY }],
    [
      "{ query: key, value: '{api_key}' }",
      { authorization: undefined },
      '&key=k-3y%26of%3Dshop%2BxQ1',
    ],
  ])('are sent with every request: %s', async (auth, headers, parameter = '') => {
    const { pageOf, api } = opensApi(auth);
    expect((await firstValueFrom(pageOf())).data).toHaveLength(1);
    await firstValueFrom(api.tokens.token$);
    expect(server.requests.map(({ url }) => url)).toEqual([`/carts?at=0&n=25${parameter}`]);
    for (const [name, value] of Object.entries({ 'x-realm': 'r/1', ...headers })) {
      expect(server.requests[0]!.headers[name]).toBe(value);
    }
    expect(server.requests[0]!.rawHeaders.filter((name) => /realm/i.test(name))).toHaveLength(1);
  });

  it.each([
    ["{ bearer: '{api_key}' }", 'refused the API key (401): check API_KEY'],
    [
      "{ basic: ['{username}', '{password}'] }",
      'refused the credentials (401): check API_USERNAME, API_PASSWORD',
    ],
    ['none', 'refused the credentials (401): check auth in API_DESCRIPTION'],
  ])('that were never accepted are refused by the first 401: %s', async (auth, words) => {
    answer = (_, response) => response.writeHead(401).end();
    const { pageOf } = opensApi(auth);
    const error = await failureOf(pageOf('gifts'));
    expect(error.message).toBe(`${server.url.origin}/r%2F1/gifts ${words}`);
    expect(error.code).toBe('API_KEY_REJECTED');
    expect(server.requests).toHaveLength(1);
  });

  it('that were accepted before are tried for API_KEY_PATIENCE_MS, with growing pauses', async () => {
    const time = hurriedTime();
    const { pageOf } = opensApi("{ bearer: '{api_key}' }", { scheduler: time.scheduler });
    await firstValueFrom(pageOf());
    answer = (_, response) => response.writeHead(401).end('{}');
    const error = await failureOf(pageOf());
    expect(error.code).toBe('API_KEY_REJECTED');
    expect(time.scheduler.now()).toBeGreaterThanOrEqual(600_000);
    expect(time.scheduler.now()).toBeLessThan(620_000);
    expect(new Set(codesOf(retried))).toEqual(new Set(['API_KEY_REJECTED']));
    expect(server.requests.length).toBeLessThan(60);
    expect((retried[0] as Error).message).toBe(
      `${server.url.origin}/carts refused the API key (401), which it has accepted before: check API_KEY`,
    );
  });

  it('go on once a refusal is over, and the patience begins anew', async () => {
    const time = hurriedTime();
    const { pageOf } = opensApi("{ bearer: '{api_key}' }", { scheduler: time.scheduler });
    for (let round = 0; round < 3; round += 1) {
      await firstValueFrom(pageOf());
      const until = time.scheduler.now() + 400_000;
      answer = (_, response) => {
        if (time.scheduler.now() < until) response.writeHead(401).end('{}');
        else page(response);
      };
    }
    expect((await firstValueFrom(pageOf())).data).toHaveLength(1);
    expect(time.scheduler.now()).toBeGreaterThan(1_000_000);
  });

  it.each([401, 403])(
    'without the right to one list (%i) leave the others alone',
    async (status) => {
      answer = ({ url }, response) =>
        url!.includes('gifts') ? response.writeHead(status).end('{}') : page(response);
      const { pageOf } = opensApi("{ header: x-key, value: '{api_key}' }");
      await firstValueFrom(pageOf());
      let isOver = false;
      const refused = failureOf(pageOf('gifts')).finally(() => (isOver = true));
      while (!isOver) await firstValueFrom(pageOf());
      expect(await refused).toMatchObject({
        code: 'API_STATUS',
        message: `${server.url.origin}/r%2F1/gifts answered ${status}: the API key (API_KEY) may have no right to read this list. Grant that right, or leave the list out of RESOURCES`,
      });
    },
  );

  it('are not in the address of the next page, though the API repeats them there', async () => {
    answer = ({ url }, response) => {
      const next = `${server.url.origin}${url}&after=a%2Fb&k%65y=old#f`;
      response.end(JSON.stringify({ data: [{ id: 1 }], total: 1, next }));
    };
    const { pageOf } = opensApi("{ query: key, value: '{api_key}' }");
    const { next } = await firstValueFrom(pageOf('links'));
    expect(next).toBe(`${server.url.origin}/links?n=25&after=a%2Fb#f`);
    await firstValueFrom(pageOf('links', { cursor: next!.replace('#f', '') }));
    await firstValueFrom(pageOf('links', { cursor: '/links?key=old&after=a%2Fb' }));
    expect(server.requests.slice(1).map(({ url }) => url)).toEqual([
      '/links?n=25&after=a%2Fb&key=k-3y%26of%3Dshop%2BxQ1',
      '/links?key=k-3y%26of%3Dshop%2BxQ1&after=a%2Fb',
    ]);
  });

  it('do not cross to another origin, by a redirect or otherwise', async () => {
    const other = await serve((_, response) => page(response));
    answer = (_, response) =>
      server.requests.length < 3
        ? response.writeHead(307, { location: other.url.href }).end()
        : page(response);
    const { pageOf } = opensApi("{ query: key, value: '{api_key}' }");
    await firstValueFrom(pageOf());
    expect(server.requests).toHaveLength(3);
    expect(other.requests).toHaveLength(0);
    await other.close();
    expect(() => configOf("{ login: { path: '@evil.example', body: {}, token: /t } }")).toThrow(
      'auth.login.path: must begin with /: it is appended to API_BASE_URL',
    );
  });
});

describe('settings', () => {
  it('are needed only if the description uses them', () => {
    const nothing = Object.fromEntries(Object.keys(VALUES).map((name) => [name, '']));
    expect(configOf('none', nothing).api.credentials).toEqual({});
    expect(() => configOf("{ basic: ['{username}', '{password}'] }", nothing)).toThrow(
      '2 settings are wrong:\n' +
        '- API_USERNAME is not set, nor API_USERNAME_FILE: shop.yaml:6:17 auth.basic.0: {username} needs API_USERNAME or API_USERNAME_FILE\n' +
        '- API_PASSWORD is not set, nor API_PASSWORD_FILE: shop.yaml:6:31 auth.basic.1: {password} needs API_PASSWORD or API_PASSWORD_FILE',
    );
    writeFileSync(join(cwd, 'secret'), 'from-file\n');
    const { credentials } = configOf("{ query: key, value: '{password}' }", {
      ...nothing,
      API_PASSWORD_FILE: 'secret',
    }).api;
    expect(credentials.password?.reveal()).toBe('from-file');
  });

  it('for a header hold what a header can', () => {
    expect(() => configOf("{ bearer: '{api_key}' }", { API_KEY: 'a\nb' })).toThrow(
      '- API_KEY has characters that a header can not hold, such as line breaks: check its value',
    );
  });
});

describe('a login', () => {
  it('takes any credentials, fills parameters into its path, and gives the token of the requests', async () => {
    let body = '';
    answer = async (request, response) => {
      if (request.method === 'GET') return page(response);
      body = await text(request);
      response.end('{"access":"t1","ms":60000}');
    };
    const { pageOf, config } = opensApi(
      "{ login: { path: '/{realm}/login', form: { user: '{username}', pass: '{password}' }, token: /access, life: { at: /ms, unit: ms } } }",
    );
    expect(config.api.loginUrl).toBe(`${server.url.origin}/r%2F1/login`);
    await firstValueFrom(pageOf());
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      user: VALUES.API_USERNAME,
      pass: VALUES.API_PASSWORD,
    });
    expect(server.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/r%2F1/login', undefined],
      ['/carts?at=0&n=25', 'Bearer t1'],
    ]);
  });

  it('that refuses names all its settings', async () => {
    answer = (_, response) => response.writeHead(401).end('{}');
    const { pageOf } = opensApi(
      "{ login: { path: /login, body: { u: '{username}', p: '{password}' }, token: /t } }",
    );
    expect((await failureOf(pageOf())).message).toBe(
      `the login at ${server.url.origin}/login refused the credentials (401): check API_USERNAME, API_PASSWORD`,
    );
  });
});

/** A model of an authorization server: each refresh token is good for one use, and a second use revokes the whole chain. */
class AuthorizationServer {
  readonly forms: Readonly<Record<string, string>>[] = [];
  readonly issued: string[] = [];
  rotates = true;
  /** Called when a token was made and before it is sent. */
  beforeAnswer = (): unknown => undefined;
  #good: string | undefined = VALUES.API_REFRESH_TOKEN;
  readonly #spent = new Set<string>();

  /** Whether a request carries an access token of this server. */
  hasIssued({ headers: { authorization = '' } }: IncomingMessage): boolean {
    return this.issued.includes(authorization.replace('Bearer ', ''));
  }

  begin(token: string): void {
    this.#good = token;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    this.forms.push(form);
    const refuse = (status: number, error: string) =>
      void response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error, error_description: `about ${JSON.stringify(form)}` }));
    const [id, secret] = (
      request.headers.authorization
        ? Buffer.from(request.headers.authorization.slice(6), 'base64').toString().split(':')
        : [form.client_id ?? '', form.client_secret ?? ''].map(encodeURIComponent)
    ).map(decodeURIComponent);
    if (id !== VALUES.API_CLIENT_ID || secret !== VALUES.API_CLIENT_SECRET) {
      refuse(401, 'invalid_client');
      return;
    }
    let refresh: string | undefined;
    if (form.grant_type === 'refresh_token') {
      const sent = form.refresh_token!;
      if (this.#spent.has(sent)) this.#good = undefined;
      if (sent !== this.#good) {
        refuse(400, 'invalid_grant');
        return;
      }
      if (this.rotates) {
        this.#spent.add(sent);
        refresh = this.#good = `refresh-${this.issued.length + 1}-xQ6`;
      }
    }
    this.issued.push(`access-${this.issued.length + 1}-xQ7`);
    await this.beforeAnswer();
    response.end(
      JSON.stringify({
        ...{ access_token: this.issued.at(-1), token_type: 'Bearer', expires_in: 60 },
        ...(refresh !== undefined && { refresh_token: refresh }),
      }),
    );
  }
}

const REFRESH =
  "{ oauth2: { token_url: /token, grant_type: refresh_token, client_id: '{client_id}', client_secret: '{client_secret}', refresh_token: '{refresh_token}' } }";
const CLIENT =
  "{ oauth2: { token_url: '/{realm}/token', grant_type: client_credentials, client_id: '{client_id}', client_secret: '{client_secret}', scope: 'a b'";

describe('OAuth 2', () => {
  let issuer: AuthorizationServer;
  beforeEach(() => {
    issuer = new AuthorizationServer();
    answer = (request, response) => {
      if (request.method === 'POST') return issuer.answer(request, response);
      return issuer.hasIssued(request) ? page(response) : response.writeHead(401).end('{}');
    };
  });
  const file = () => join(cwd, '.cellarstream', 'refresh-token');

  it.each([
    ['basic', `${CLIENT} } }`, { grant_type: 'client_credentials', scope: 'a b' }],
    [
      'body',
      `${CLIENT}, client_auth: body } }`,
      {
        ...{ grant_type: 'client_credentials', scope: 'a b' },
        ...{ client_id: VALUES.API_CLIENT_ID, client_secret: VALUES.API_CLIENT_SECRET },
      },
    ],
  ])('gives tokens to a client that authenticates by %s', async (by, auth, form) => {
    const { pageOf, api } = opensApi(auth, { scheduler: steadyScheduler });
    expect((await firstValueFrom(pageOf())).data).toHaveLength(1);
    expect(issuer.forms).toEqual([form]);
    expect(server.requests[0]).toMatchObject({ url: '/r%2F1/token', method: 'POST' });
    expect(server.requests[0]!.headers.authorization?.startsWith('Basic ') ?? false).toBe(
      by === 'basic',
    );
    expect(api.tokens.current()).toMatchObject({ text: 'access-1-xQ7', lifeMs: 60_000 });
  });

  it('has its token endpoint elsewhere if the description names an address, or API_LOGIN_URL does', async () => {
    const other = await serve((request, response) => void issuer.answer(request, response));
    const url = `${other.url.origin}/other/token`;
    const at = (address: string) => CLIENT.replace("'/{realm}/token'", address) + ' } }';
    await firstValueFrom(opensApi(at(url)).pageOf());
    await firstValueFrom(opensApi(at('/token'), { env: { API_LOGIN_URL: url } }).pageOf());
    expect(other.requests.map((request) => request.url)).toEqual(['/other/token', '/other/token']);
    expect(server.requests.every(({ method }) => method === 'GET')).toBe(true);
    await other.close();
  });

  it('waits for an endpoint that is unavailable for a while, and says what it refuses', async () => {
    let times = 0;
    const issue = answer;
    answer = (request, response) => {
      times += 1;
      return times < 3
        ? response.writeHead(400).end('{"error":"temporarily_unavailable"}')
        : issue(request, response);
    };
    await firstValueFrom(opensApi(`${CLIENT} } }`).pageOf());
    expect(times).toBeGreaterThan(3);
    const env = { API_CLIENT_SECRET: 'wrong-xQ8' };
    const error = await failureOf(opensApi(`${CLIENT} } }`, { env }).pageOf());
    expect(error.message).toBe(
      `the token endpoint at ${server.url.origin}/r%2F1/token refused the credentials (401 invalid_client): check API_CLIENT_ID, API_CLIENT_SECRET`,
    );
    expect(error.code).toBe('API_KEY_REJECTED');
  });

  it('follows a chain of refresh tokens, over renewals and restarts', async () => {
    const first = opensApi(REFRESH);
    const tokens = await lastValueFrom(first.api.tokens.token$.pipe(take(4)));
    expect(tokens.text).toBe('access-4-xQ7');
    await first.api.close();
    expect(readFileSync(file(), 'utf8')).toContain('refresh-4-xQ6');
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const second = opensApi(REFRESH);
    await firstValueFrom(second.pageOf());
    expect(issuer.forms.map((form) => form.refresh_token)).toEqual(
      [0, 1, 2, 3, 4].map((nth) => `refresh-${nth}-xQ6`),
    );
  });

  it('keeps a refresh token that the server does not replace', async () => {
    issuer.rotates = false;
    await lastValueFrom(opensApi(REFRESH).api.tokens.token$.pipe(take(3)));
    expect(new Set(issuer.forms.map((form) => form.refresh_token))).toEqual(
      new Set([VALUES.API_REFRESH_TOKEN]),
    );
  });

  it('keeps the token of a response that arrives after the stop has begun', async () => {
    let goOn: () => void;
    const isWaiting = new Promise<void>((resolve) => {
      issuer.beforeAnswer = () =>
        new Promise<void>((go) => {
          goOn = go;
          resolve();
        });
    });
    const { api, pageOf } = opensApi(REFRESH, { scheduler: steadyScheduler });
    const reading = pageOf().subscribe({ error: () => undefined });
    await isWaiting;
    reading.unsubscribe();
    const closed = api.close();
    goOn!();
    await closed;
    issuer.beforeAnswer = () => undefined;
    await firstValueFrom(opensApi(REFRESH).pageOf());
    expect(issuer.forms.map((form) => form.refresh_token)).toEqual([
      'refresh-0-xQ6',
      'refresh-1-xQ6',
    ]);
  });

  it('lets a command and a running service share one chain', async () => {
    const service = opensApi(REFRESH, { scheduler: steadyScheduler });
    const command = opensApi(REFRESH, { scheduler: steadyScheduler });
    const [one, other] = await Promise.all([
      firstValueFrom(service.api.tokens.token$),
      firstValueFrom(command.api.tokens.token$),
    ]);
    expect([one.text, other.text].sort()).toEqual(['access-1-xQ7', 'access-2-xQ7']);
    expect(issuer.forms.map((form) => form.refresh_token)).toEqual([
      'refresh-0-xQ6',
      'refresh-1-xQ6',
    ]);
    await firstValueFrom(service.pageOf());
    await firstValueFrom(command.pageOf());
  });

  it('begins a new chain with a new API_REFRESH_TOKEN, which a refusal advises', async () => {
    await firstValueFrom(opensApi(REFRESH).pageOf());
    issuer.begin('refresh-new-xQ6');
    const error = await failureOf(opensApi(REFRESH).pageOf());
    expect(error.message).toMatch(
      /refused the credentials \(400 invalid_grant\): check API_CLIENT_ID, API_CLIENT_SECRET, API_REFRESH_TOKEN; if the refresh token has expired or was used elsewhere, set API_REFRESH_TOKEN to a new one$/,
    );
    await firstValueFrom(
      opensApi(REFRESH, { env: { API_REFRESH_TOKEN: 'refresh-new-xQ6' } }).pageOf(),
    );
  });
});

describe('RefreshTokenFile', () => {
  const path = () => join(cwd, 'state', 'refresh-token');

  it('holds a token that the disk refuses, and says so', () => {
    const tokens = new RefreshTokenFile(path());
    expect(tokens.begin('first')).toBe('first');
    rmSync(join(cwd, 'state'), { recursive: true });
    expect(() => tokens.replace('second')).toThrow(
      expect.objectContaining({ code: 'STATE_FOLDER' }),
    );
    tokens.end();
    expect(tokens.begin('first')).toBe('second');
    tokens.replace('third');
    tokens.end();
    expect(new RefreshTokenFile(path()).begin('first')).toBe('third');
  });

  it('has the old token or the new one, whole, whenever the process ends', () => {
    const tokens = new RefreshTokenFile(path());
    tokens.begin('first');
    tokens.replace('second');
    writeFileSync(`${path()}.new`, '{"first":"'); // killed while it wrote
    tokens.end();
    expect(new RefreshTokenFile(path()).begin('first')).toBe('second');
    const before = openSync(path(), 'r');
    tokens.replace('third');
    expect(readFileSync(before, 'utf8')).toContain('second'); // replaced by a rename, never written to
    closeSync(before);
    expect(readFileSync(path(), 'utf8')).toContain('third');
  });

  it('is used by one process at a time', () => {
    const tokens = new RefreshTokenFile(path());
    tokens.begin('first');
    const other = new RefreshTokenFile(path());
    expect(() => other.begin('first')).toThrow(
      /being renewed by another process with the same state folder/,
    );
    tokens.replace('second');
    tokens.end();
    expect(other.begin('first')).toBe('second');
    other.end();
  });
});

describe('no secret is shown', () => {
  const KINDS = [
    "{ bearer: '{api_key}' }",
    "{ basic: ['{username}', '{password}'] }",
    "{ header: x-key, value: 'Token {api_key}' }",
    "{ query: key, value: '{api_key}' }",
    "{ login: { path: /login, body: { u: '{username}', p: '{password}' }, token: /access_token } }",
    `${CLIENT}, client_auth: body } }`,
    REFRESH,
  ];
  const secrets = () => {
    const texts = [...Object.values(VALUES), 'refresh-1-xQ6', 'access-1-xQ7', 'access-2-xQ7'];
    return texts.flatMap((each) => [
      ...[each, encodeURIComponent(each), new URLSearchParams({ a: each }).toString().slice(2)],
      Buffer.from(each).toString('base64').slice(0, -4),
    ]);
  };
  const printed = (thing: unknown) =>
    [
      describeError(thing),
      inspect(thing, { depth: null, showHidden: true }),
      JSON.stringify(thing),
      JSON.stringify((thing as Error).stack ?? ''),
      JSON.stringify((thing as { context?: unknown }).context ?? {}),
    ].join('\n');
  const expectHidden = (thing: unknown) => {
    const shown = printed(thing);
    expect(secrets().filter((each) => shown.includes(each))).toEqual([]);
  };

  it.each(KINDS)('in the configuration and its errors, or in words: %s', (auth) => {
    const config = configOf(auth);
    expectHidden(config);
    expectHidden(descriptionInWords(config.description));
    expectHidden(
      descriptionInWords(configOf(auth.replace('{api_key}', VALUES.API_KEY)).description),
    );
  });

  it.each(KINDS)('while everything fails: %s', async (auth) => {
    const issuer = new AuthorizationServer();
    let step = 0;
    const FAULTS: ((request: IncomingMessage, response: ServerResponse) => unknown)[] = [
      (_, response) => response.writeHead(401).end('{"error":"expired"}'),
      (request, response) => response.writeHead(500).end(`no: ${request.url}`),
      (request) => request.socket.destroy(),
      (request, response) => response.end(`not JSON: ${JSON.stringify(request.headers)}`),
      (request, response) =>
        response.writeHead(302, { location: `http://x.example${request.url}` }).end(),
      (_, response) => {
        response.writeHead(200, { 'content-length': 100 }).write('{"data');
        response.destroy();
      },
      (request, response) => response.writeHead(403).end(`<p>${request.url}</p>`),
      (request, response) => response.writeHead(404).end(JSON.stringify({ error: request.url })),
      (_, response) => response.writeHead(200, { 'content-type': 'a; charset=x-none' }).end('{}'),
    ];
    const isToken = (request: IncomingMessage) => request.method === 'POST';
    const usual: typeof answer = (request, response) =>
      auth.includes('login') && isToken(request)
        ? response.end(`{"access_token":"access-${step}-xQ7"}`)
        : isToken(request)
          ? issuer.answer(request, response)
          : page(response);
    answer = (request, response) => {
      step += 1;
      const isFaulty = step > 2 && step % 2 === 1;
      const fault = FAULTS[((step - 3) / 2) % FAULTS.length];
      return isFaulty && step < 40 ? fault!(request, response) : usual(request, response);
    };
    const { pageOf } = opensApi(auth);
    const ends: unknown[] = [];
    for (let nth = 0; nth < 30; nth += 1) {
      const query = nth % 3 === 0 ? { key: 'private-key-xQ9' } : {};
      ends.push(await lastValueFrom(pageOf('carts', query)).catch((error: unknown) => error));
    }
    const errors = [...retried, ...ends.filter((end) => end instanceof Error)];
    expect(errors.length).toBeGreaterThan(5);
    for (const error of errors) {
      expectHidden(error);
      expect(printed(error)).not.toContain('private-key-xQ9');
    }
  });
});
