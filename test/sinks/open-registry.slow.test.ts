import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterAll, describe, expect, it } from 'vitest';
import type { RegistryConfig } from '../../src/config/config.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { Secret } from '../../src/core/secret.ts';
import { openRegistry } from '../../src/sinks/open-kafka.ts';
import { authority } from '../support/certificates.ts';
import { serve } from '../support/http-server.ts';
import { CLIENT, startTokenEndpoint } from '../support/token-endpoint.ts';

const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const NO_SCHEMA = { error_code: 40401, message: 'not there' };
const notFound = (_: IncomingMessage, response: ServerResponse) => {
  response.writeHead(404).end(JSON.stringify(NO_SCHEMA));
};

function registryAt(url: string, config: Partial<RegistryConfig>) {
  const none = { auth: undefined, headers: {}, ca: undefined, client: undefined };
  const registry = openRegistry({ url, ...none, ...config });
  open.push(() => registry.close());
  return registry;
}

/** An identity provider, and the login that it takes. */
async function identityProvider() {
  const endpoint = await startTokenEndpoint();
  open.push(() => endpoint.close());
  const credentials = {
    tokenUrl: endpoint.url,
    clientId: CLIENT.id,
    clientSecret: new Secret(CLIENT.secret),
    scope: 'registry',
  };
  return { endpoint, auth: { kind: 'oauth', credentials } as const };
}

it('sends a bearer token and further headers', async () => {
  const server = await serve(notFound);
  open.push(() => server.close());
  const registry = registryAt(server.url.href, {
    auth: { kind: 'bearer', token: new Secret('t0ken') },
    headers: { 'x-tenant': new Secret('wines') },
  });
  await registry.latest('a');

  expect(server.requests[0]?.headers).toMatchObject({
    authorization: 'Bearer t0ken',
    'x-tenant': 'wines',
    'user-agent': expect.stringMatching(/^cellarstream\//) as string,
  });
});

it('asks an identity provider for one token, and sends it with each request', async () => {
  const { endpoint, auth } = await identityProvider();
  const server = await serve(notFound);
  open.push(() => server.close());
  const registry = registryAt(server.url.href, { auth });
  await Promise.all([registry.latest('a'), registry.latest('b'), registry.latest('c')]);

  const sent = server.requests.map(({ headers }) => headers.authorization);
  expect(new Set(sent).size).toBe(1);
  expect(sent[0]).toMatch(/^Bearer ey/);
  expect(endpoint.requests.map(({ form }) => form.scope)).toEqual(['registry']);
});

// They wait for the real pauses between requests, which must outlast the age below which a refused token is kept: all at once.
describe.concurrent('a token that the registry refuses', () => {
  it('keeps a new token that the registry refuses at first', async ({ expect }) => {
    const { endpoint, auth } = await identityProvider();
    let refusals = 2;
    const server = await serve((request, response) => {
      if ((refusals -= 1) < 0) return notFound(request, response);
      response.writeHead(401).end('<html>not yet</html>');
    });
    open.push(() => server.close());
    const registry = registryAt(server.url.href, { auth });

    expect(await registry.latest('a')).toBeUndefined();
    expect(endpoint.requests).toHaveLength(1);
  }, 15_000);

  it('asks for another token when the registry refuses one before its end', async ({ expect }) => {
    const { endpoint, auth } = await identityProvider();
    const revoked = new Set<string | undefined>();
    const server = await serve((request, response) => {
      if (!revoked.has(request.headers.authorization)) return notFound(request, response);
      response.writeHead(401).end(JSON.stringify({ error_code: 401, message: 'revoked' }));
    });
    open.push(() => server.close());
    const registry = registryAt(server.url.href, { auth });
    await registry.latest('a');
    revoked.add(server.requests[0]?.headers.authorization);

    expect(await registry.latest('a')).toBeUndefined();
    expect(endpoint.requests).toHaveLength(2);
  }, 20_000);

  it('asks for no third token when the registry refuses each of them', async ({ expect }) => {
    const { endpoint, auth } = await identityProvider();
    const server = await serve((_, response) => {
      response.writeHead(401).end(JSON.stringify({ error_code: 401, message: 'unknown issuer' }));
    });
    open.push(() => server.close());
    const registry = registryAt(server.url.href, { auth });
    const error: unknown = await registry.latest('a').catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(CellarstreamError);
    expect(error).toMatchObject({ code: 'REGISTRY_REFUSED' });
    expect((error as Error).message).toContain('unknown issuer: check SCHEMA_REGISTRY_OAUTH_SCOPE');
    expect(endpoint.requests).toHaveLength(2);
  }, 20_000);
});

it('names the settings of the token endpoint when that refuses the client', async () => {
  const { endpoint, auth } = await identityProvider();
  const credentials = { ...auth.credentials, clientSecret: new Secret('wrong') };
  const server = await serve(notFound);
  open.push(() => server.close());
  const registry = registryAt(server.url.href, { auth: { kind: 'oauth', credentials } });

  await expect(registry.latest('a')).rejects.toMatchObject({
    code: 'REGISTRY_REFUSED',
    message: expect.stringMatching(
      /^SCHEMA_REGISTRY_OAUTH_TOKEN_URL answered 401.*: check SCHEMA_REGISTRY_OAUTH_CLIENT_ID and SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET/,
    ) as string,
  });
  expect(endpoint.requests.length).toBeGreaterThan(0);
  expect(server.requests).toEqual([]);
});

it('presents a client certificate', async () => {
  const signer = authority('registry authority');
  const presented: boolean[] = [];
  const server = createServer(
    { ...signer.issue(), ca: signer.cert, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      presented.push((request.socket as TLSSocket).authorized);
      notFound(request, response);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { cert, key } = signer.issue({ purpose: 'clientAuth' });
  const registry = registryAt(url, {
    ca: signer.cert,
    client: { cert, key: new Secret(key), password: undefined },
  });

  expect(await registry.latest('a')).toBeUndefined();
  expect(presented).toEqual([true]);
});

/** TLS alerts (RFC 5246, section 7.2) by their numbers. Java's servers send the first one to clients without a certificate. */
it.each([
  ['requires a client certificate: set SCHEMA_REGISTRY_CERT_FILE and SCHEMA_REGISTRY_KEY_FILE', 42],
  ['refuses the client certificate in SCHEMA_REGISTRY_CERT_FILE', 48],
])('names the settings of the client certificate when the registry %s', async (text, alert) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, alert])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => new Promise((resolve) => server.close(resolve)));
  const registry = registryAt(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, {});

  await expect(registry.latest('a')).rejects.toMatchObject({
    code: 'TLS_REFUSED',
    message: expect.stringContaining(text) as string,
  });
});
