import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import { leased } from '../../src/core/interceptors.ts';
import { authority } from '../support/certificates.ts';
import { serve } from '../support/http-server.ts';
import { TcpProxy } from '../support/proxy/tcp-proxy.ts';
import { frontOf } from '../support/tls-front.ts';

function agent(options: Agent.Options = {}): Agent {
  const made = new Agent(options);
  onTestFinished(() => made.destroy());
  return made;
}

const codeOf = (error: unknown) => (error instanceof CellarstreamError ? error.code : error);
const asked = (url: string | URL, dispatcher: Dispatcher) =>
  request(url, { dispatcher }).then(
    async ({ statusCode, body }) => {
      await body.dump();
      return statusCode;
    },
    (error: unknown) => codeOf(error),
  );

describe('a request whose time is over', () => {
  it('is sent while it may be, and not when it may not', async () => {
    let arrived = 0;
    const server = await serve((_, response) => response.end(String((arrived += 1))));
    onTestFinished(() => server.close());
    let mayBeSent = true;
    const dispatcher = leased(agent(), () => mayBeSent);

    expect(await asked(server.url, dispatcher)).toBe(200);
    mayBeSent = false;
    expect(await asked(server.url, dispatcher)).toBe('LEASE_OVER');
    expect(arrived).toBe(1);
    mayBeSent = true;
    expect(await asked(server.url, dispatcher)).toBe(200);
  });

  it('that is sent may be answered with early hints first', async () => {
    const server = await serve((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.end();
    });
    onTestFinished(() => server.close());
    expect(
      await asked(
        server.url,
        leased(agent(), () => true),
      ),
    ).toBe(200);
  });

  it('never leaves when it runs out in the middle of a TLS connect', async () => {
    let arrived = 0;
    const server = await serve((_, response) => response.end(String((arrived += 1))));
    const ca = authority('of the test');
    const front = await frontOf(String(server.url), { certificate: ca.issue() });
    const { hostname, port } = new URL(front.url);
    const proxy = await TcpProxy.listen({ target: { host: hostname, port: Number(port) } });
    onTestFinished(
      async () => void (await Promise.all([proxy.close(), front.close(), server.close()])),
    );
    proxy.delay(200); // each flight of the handshake
    const dispatcher = leased(agent({ connect: { ca: ca.cert } }), () => proxy.accepted === 0);

    expect(await asked(`https://127.0.0.1:${proxy.port}/`, dispatcher)).toBe('LEASE_OVER');
    expect(proxy.accepted).toBe(1);
    expect(arrived).toBe(0);
  });

  it('leaves the connection to those that may be sent', async () => {
    const server = createServer((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 204 No Content\r\n\r\n'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    let turn = 0;
    const dispatcher = leased(agent({ connections: 1 }), () => (turn += 1) !== 2);

    const all = await Promise.all([1, 2, 3].map(() => asked(url, dispatcher)));
    expect(all).toEqual([204, 'LEASE_OVER', 204]);
  });
});
