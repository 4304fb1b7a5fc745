import net from 'node:net';
import tls from 'node:tls';
import { Agent, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { httpConnections } from '../../src/core/http-connections.ts';
import type { HttpConnectionOptions } from '../../src/core/http-connections.ts';
import { describeError } from '../../src/core/errors.ts';
import { httpError } from '../../src/core/http-error.ts';
import { proxiedConnections } from '../../src/core/proxied-connections.ts';
import { readProxy } from '../../src/core/proxies.ts';
import { sharedReads } from '../../src/streams/http/response-reader.ts';
import { authority } from '../support/certificates.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import type { HttpProxy, HttpProxyOptions } from '../support/http-proxy.ts';
import { serve } from '../support/http-server.ts';
import { frontOf } from '../support/tls-front.ts';

const ours = authority('our authority');

function connections(options: Partial<HttpConnectionOptions> = {}): Dispatcher {
  const dispatcher = httpConnections({
    connectTimeoutMs: 2_000,
    responseTimeoutMs: 2_000,
    onread: sharedReads(),
    ...options,
  });
  onTestFinished(() => dispatcher.destroy());
  return dispatcher;
}

async function ask(
  dispatcher: Dispatcher,
  origin: string,
  path = '/v1/orders?page=2',
): Promise<string> {
  const { statusCode, body } = await dispatcher.request({ origin, path, method: 'GET' });
  return `${statusCode} ${await body.text()}`;
}

async function failure(dispatcher: Dispatcher, origin: string): Promise<string> {
  const error: unknown = await ask(dispatcher, origin).then(String, (cause: unknown) => cause);
  const known = httpError(error, {
    who: 'the API',
    protocol: new URL(origin).protocol,
    address: 'API_BASE_URL',
    ca: 'API_CA_FILE',
    unreachable: 'API_UNREACHABLE',
  });
  expect(known.code).toBe('API_UNREACHABLE');
  return describeError(known);
}

/** A plain server and one with TLS, and a proxy that is the only way to their names. */
async function behindProxy(options: Partial<HttpProxyOptions> = {}) {
  const server = await serve((request, response) => response.end(`saw ${request.url}`));
  const front = await frontOf(server.url.origin, {
    certificate: ours.issue({ hosts: ['api.invalid'] }),
  });
  const proxy = await startHttpProxy({
    routes: {
      'api.invalid:80': Number(server.url.port),
      'api.invalid': Number(server.url.port),
      'api.invalid:443': Number(new URL(front.url).port),
    },
    ...options,
  });
  onTestFinished(async () => {
    await proxy.close();
    await front.close();
    await server.close();
  });
  return { server, proxy };
}

const through = (proxy: HttpProxy, login = ''): Partial<HttpConnectionOptions> => ({
  ca: ours.cert,
  proxies: { http: readProxy(proxy.url.replace('//', `//${login}`)) },
});

describe('a server that only a proxy reaches', () => {
  it('is asked inside a tunnel, with TLS and without', async () => {
    const { proxy } = await behindProxy();
    const dispatcher = connections(through(proxy));
    expect(await ask(dispatcher, 'http://api.invalid')).toBe('200 saw /v1/orders?page=2');
    expect(await ask(dispatcher, 'https://api.invalid')).toBe('200 saw /v1/orders?page=2');
    expect(proxy.tunnels).toEqual(['api.invalid:80', 'api.invalid:443']);
    expect(proxy.forwarded).toEqual([]);
  });

  it('is asked with a user and a password that the proxy requires', async () => {
    const { proxy, server } = await behindProxy({ login: 'us:pä@:ss' });
    const dispatcher = connections(through(proxy, 'us:p%C3%A4%40:ss@'));
    expect(await ask(dispatcher, 'https://api.invalid')).toMatch('200');
    expect(await ask(dispatcher, 'http://api.invalid')).toMatch('200');
    for (const { headers } of server.requests)
      expect(headers).not.toHaveProperty('proxy-authorization');
  });

  it.each([403, 405, 501, 'closed'] as const)(
    'is asked without a tunnel where the proxy refuses one to plain servers (%s)',
    async (status) => {
      const refuse = (target: string) => (target.endsWith(':80') ? status : undefined);
      const { proxy, server } = await behindProxy({ refuse, login: 'u:p' });
      const dispatcher = connections(through(proxy, 'u:p@'));
      const all = [1, 2, 3].map((page) =>
        ask(dispatcher, 'http://api.invalid', `/v1/orders?page=${page}`),
      );
      expect(await Promise.all(all)).toEqual(
        [1, 2, 3].map((page) => `200 saw /v1/orders?page=${page}`),
      );
      expect(await ask(dispatcher, 'http://api.invalid', '/4')).toBe('200 saw /4');
      expect(proxy.forwarded).toHaveLength(4);
      expect(server.requests[0]!.headers.host).toBe('api.invalid');
    },
  );

  it('is asked through a proxy that speaks TLS, whose certificate is checked', async () => {
    const { proxy } = await behindProxy({ certificate: ours.issue() });
    expect(await failure(connections(through(proxy)), 'https://api.invalid')).toMatch(
      /the proxy https:\/\/127\.0\.0\.1:\d+ of HTTP_PROXY can't be reached \(.*\): check HTTP_PROXY/,
    );
    const direct = buildConnector({ ca: ours.cert });
    const dispatcher = proxiedConnections({
      proxies: through(proxy).proxies!,
      direct,
      toProxy: direct,
      timeoutMs: 2_000,
      agentWith: (connect) => new Agent({ connect }),
    });
    onTestFinished(() => dispatcher.destroy());
    expect(await ask(dispatcher, 'https://api.invalid')).toMatch('200');
    expect(await ask(dispatcher, 'http://api.invalid')).toMatch('200');
    expect(proxy.tunnels).toEqual(['api.invalid:443', 'api.invalid:80']);
  });
});

describe('a proxy that opens no connection is named with its setting', () => {
  it.each([
    [
      407,
      'it requires a user and a password: HTTP_PROXY must be http://USER:PASSWORD@host:port',
      '',
    ],
    [407, 'it does not accept the user and password in HTTP_PROXY', 'user:secret@'],
    [
      403,
      'the rules of the proxy must allow connections to this host, or NO_PROXY must name the host',
      '',
    ],
    [502, "it can't reach that address", ''],
  ])('as it answers %i: %s', async (status, advice, login) => {
    const { proxy } = await behindProxy({ refuse: () => status });
    const text = await failure(connections(through(proxy, login)), 'https://api.invalid');
    expect(text).toBe(
      `no answer from the API: the proxy ${proxy.url} of HTTP_PROXY answered ${status} to CONNECT api.invalid:443: ${advice}`,
    );
  });

  it('as it answers 403 to the tunnel of a plain server, and to the request without one', async () => {
    const { proxy } = await behindProxy({ refuse: () => 403, refuseRequests: 403 });
    expect(await failure(connections(through(proxy)), 'http://api.invalid')).toBe(
      `no answer from the API: the proxy ${proxy.url} of HTTP_PROXY answered 403 to a request for http://api.invalid: the rules of the proxy must allow connections to this host, or NO_PROXY must name the host`,
    );
  });

  it('as it is not there', async () => {
    const { proxy } = await behindProxy();
    await proxy.close();
    const dispatcher = connections({ proxies: { https: readProxy(proxy.url) } });
    expect(await failure(dispatcher, 'https://api.invalid')).toBe(
      `no answer from the API: the proxy ${proxy.url} of HTTPS_PROXY can't be reached (ECONNREFUSED): check HTTPS_PROXY: ` +
        `connect ECONNREFUSED ${proxy.url.slice('http://'.length)}`,
    );
  });

  it('as it does not answer', async () => {
    const { proxy } = await behindProxy({ refuse: () => 'silent' });
    const dispatcher = connections({ ...through(proxy), connectTimeoutMs: 50 });
    expect(await failure(dispatcher, 'http://api.invalid')).toMatch(
      'of HTTP_PROXY did not answer CONNECT api.invalid:80 in 0.05 s',
    );
  });

  it('as it is another kind of server', async () => {
    const port = net
      .createServer((socket) => socket.end('220 mail.example ESMTP\r\n\r\n'))
      .listen(0, '127.0.0.1');
    onTestFinished(() => void port.close());
    await vi.waitUntil(() => port.listening);
    const url = `http://127.0.0.1:${(port.address() as net.AddressInfo).port}`;
    const dispatcher = connections({ proxies: { http: readProxy(url) } });
    expect(await failure(dispatcher, 'http://api.invalid')).toMatch(
      'of HTTP_PROXY does not speak HTTP at that port',
    );
  });
});

it('reaches the hosts of NO_PROXY directly', async () => {
  const { proxy, server } = await behindProxy();
  const { proxies } = through(proxy);
  const dispatcher = connections({ proxies: { ...proxies, noProxy: '127.0.0.1' } });
  expect(await ask(dispatcher, server.url.origin)).toMatch('200');
  expect(proxy.tunnels).toEqual([]);
});

it.each(['http', 'https'])(
  'gives each address of a host seconds (%s): 250 ms are too few for a server that is far away',
  async (protocol) => {
    const connect = vi.spyOn(protocol === 'http' ? net : tls, 'connect');
    onTestFinished(() => connect.mockRestore());
    await ask(connections(), `${protocol}://127.0.0.1:1`).catch(() => undefined);
    expect(connect.mock.calls[0]![0]).toMatchObject({
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: 2_500,
    });
  },
);
