import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { CellarstreamError, describeError, isRetryable } from '../../../src/core/errors.ts';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { createRegistry } from '../../../src/schemas/registry/registry.ts';
import type { Registry } from '../../../src/schemas/registry/registry.ts';
import type { RegistryOptions } from '../../../src/schemas/registry/registry-http.ts';

const schema: RecordSchema = { type: 'record', name: 'A', fields: [] };
const other: RecordSchema = { type: 'record', name: 'B', fields: [] };

/** A request as the fake saw it, and what it is to answer. */
type Request = {
  readonly line: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
};
type Answer = {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
};
type Script = (request: Request) => Answer | undefined;

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A server that answers by a script (`undefined`: never), and a registry client for it. */
async function fake(script: Script, options: Partial<RegistryOptions> = {}) {
  const seen: Request[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      const asked = { line: `${request.method} ${request.url}`, body, headers: request.headers };
      seen.push(asked);
      const answer = script(asked);
      if (!answer) return;
      const text =
        typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {});
      response.writeHead(answer.status ?? 200, answer.headers).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  const registry: Registry = createRegistry({ url, ...options });
  open.push(
    () => registry.close(),
    () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  );
  return { registry, seen, url, lines: () => seen.map(({ line }) => line) };
}

const missing = { status: 404, body: { error_code: 40401, message: 'not there' } };

/** The error of a promise that must fail with one of ours. */
async function failure(promise: Promise<unknown>): Promise<CellarstreamError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CellarstreamError);
  return error as CellarstreamError;
}

describe('a registry that speaks TLS, asked in plain text', () => {
  it.each([
    ['closes the connection', ''],
    ['says so in an alert first', '\x15\x03\x01\x00\x02\x02F'],
    [
      'answers with a 400 of its own',
      'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n',
    ],
  ])('is named with its setting where it %s', async (_, bytes) => {
    const port = createTcpServer((socket) => {
      socket.once('data', () => socket.end(bytes, 'latin1'));
    });
    await new Promise<void>((resolve) => port.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(port.address() as AddressInfo).port}`;
    const registry = createRegistry({ url });
    open.push(
      () => registry.close(),
      () => new Promise((resolve) => port.close(resolve)),
    );
    expect((await failure(registry.latest('s'))).message).toContain(
      'if the port uses TLS, begin SCHEMA_REGISTRY_URL with https://',
    );
  });

  it('is not suspected where it answers 400 in words of its own', async () => {
    const { registry } = await fake(() => ({ status: 400, body: { message: 'no' } }));
    expect((await failure(registry.latest('s'))).message).toMatch(/ answered 400: no$/);
  });
});

describe('register', () => {
  const registering: Script = ({ line }) => {
    if (line.startsWith('GET')) return missing;
    return { body: line.startsWith('POST') ? { id: 7 } : {} };
  };

  it('makes the subject FULL_TRANSITIVE, then registers', async () => {
    const { registry, seen } = await fake(registering);

    expect(await registry.register('wine.orders-value', schema)).toBe(7);
    expect(seen.map(({ line, body }) => `${line} ${body}`)).toEqual([
      'GET /api/config/wine.orders-value?defaultToGlobal=true ',
      'PUT /api/config/wine.orders-value {"compatibility":"FULL_TRANSITIVE"}',
      `POST /api/subjects/wine.orders-value/versions ${JSON.stringify({
        schemaType: 'AVRO',
        schema: JSON.stringify(schema),
      })}`,
    ]);
  });

  it('leaves a subject alone that is so already', async () => {
    const { registry, lines } = await fake(({ line }) => ({
      body: line.startsWith('GET') ? { compatibilityLevel: 'FULL_TRANSITIVE' } : { id: 7 },
    }));
    await registry.register('a b', schema);

    expect(lines()).toEqual([
      'GET /api/config/a%20b?defaultToGlobal=true',
      'POST /api/subjects/a%20b/versions',
    ]);
  });

  it.each([
    ['no registry would use', 404, '<html>'],
    ['without an error code', 404, { message: 'no' }],
    ['of a method', 405, { message: 'no' }],
  ])('sets the level where asking for it is refused in words %s', async (_, status, body) => {
    const { registry, lines } = await fake(({ line }) => {
      if (line.startsWith('GET')) return { status, body };
      return { body: line.startsWith('POST') ? { id: 7 } : {} };
    });
    expect(await registry.register('s', schema)).toBe(7);
    expect(lines().map((line) => line.split(' ')[0])).toEqual(['GET', 'PUT', 'POST']);
  });

  it('asks once for all who ask, then and later', async () => {
    const { registry, lines } = await fake(registering);
    const both = await Promise.all([
      registry.register('a', schema),
      registry.register('a', schema),
    ]);

    expect([...both, await registry.register('a', schema)]).toEqual([7, 7, 7]);
    expect(lines()).toHaveLength(3);
  });

  it('sends the schemas of one subject one after the other', async () => {
    const { registry, lines } = await fake(registering);
    await Promise.all([registry.register('a', schema), registry.register('a', other)]);

    const one = [
      'GET /api/config/a?defaultToGlobal=true',
      'PUT /api/config/a',
      'POST /api/subjects/a/versions',
    ];
    expect(lines()).toEqual([...one, ...one]);
  });

  it.each(['PUT', 'POST'])('asks once more where another client was first: %s', async (method) => {
    let conflicts = 1;
    const { registry, lines } = await fake((request) =>
      request.line.startsWith(method) && conflicts-- > 0 ? { status: 409 } : registering(request),
    );
    expect(await registry.register('a', schema)).toBe(7);
    expect(lines()).toHaveLength(4);
  });

  it('is refused where a conflict stays', async () => {
    const { registry } = await fake((request) =>
      request.line.startsWith('POST') ? { status: 409 } : registering(request),
    );
    const error = await failure(registry.register('a', schema));
    expect([error.code, isRetryable(error)]).toEqual(['REGISTRY_REFUSED', false]);
  });

  it('tries again after a failure, and is not held up by it', async () => {
    let healthy = false;
    const { registry } = await fake((request) =>
      healthy ? registering(request) : { status: 503 },
    );
    await Promise.all([
      failure(registry.register('a', schema)),
      failure(registry.register('a', other)),
    ]);
    healthy = true;

    expect(await registry.register('a', schema)).toBe(7);
  });
});

describe('schemaById', () => {
  it('asks once for an id', async () => {
    const { registry, lines } = await fake(() => ({ body: { schema: JSON.stringify(schema) } }));

    expect(await Promise.all([registry.schemaById(3), registry.schemaById(3)])).toEqual([
      schema,
      schema,
    ]);
    expect(await registry.schemaById(3)).toEqual(schema);
    expect(lines()).toEqual(['GET /api/schemas/ids/3']);
  });

  it('says so when there is no such id, or no record behind it', async () => {
    const { registry } = await fake(({ line }) =>
      line.endsWith('/3') ? missing : { body: { schema: '"int"' } },
    );

    expect((await failure(registry.schemaById(3))).message).toMatch(/^schema 3 is not in/);
    expect((await failure(registry.schemaById(4))).message).toMatch(
      /^schema 4 .* not an Avro record/,
    );
  });
});

describe('latest and compatible', () => {
  it('know a subject that is not there', async () => {
    const { registry } = await fake(() => missing);

    expect(await registry.latest('a')).toBeUndefined();
    expect(await registry.compatible('a', schema)).toBe(true);
  });

  it('give what the registry says', async () => {
    const { registry, lines } = await fake(({ line }) => ({
      body: line.startsWith('GET')
        ? { subject: 'a', id: 3, version: 2, schema: JSON.stringify(schema) }
        : { is_compatible: false },
    }));

    expect(await registry.latest('a')).toEqual({ id: 3, version: 2, schema });
    expect(await registry.compatible('a', schema)).toBe(false);
    expect(lines()).toEqual([
      'GET /api/subjects/a/versions/latest',
      'POST /api/compatibility/subjects/a/versions',
    ]);
  });
});

describe('errors', () => {
  it.each([408, 429, 500, 503])('%i can pass', async (status) => {
    const { registry } = await fake(() => ({ status, body: { message: 'busy' } }));
    const error = await failure(registry.latest('a'));

    expect([error.code, error.context.status]).toEqual(['REGISTRY_UNREACHABLE', status]);
    expect(isRetryable(error)).toBe(true);
  });

  it.each([
    [301, ''],
    [401, ': check SCHEMA_REGISTRY_USERNAME and SCHEMA_REGISTRY_PASSWORD'],
    [403, ': SCHEMA_REGISTRY_USERNAME needs the right to read and register schemas'],
    [409, ''],
    [422, ''],
  ])('%i is final', async (status, advice) => {
    const headers = { location: '/elsewhere' };
    const { registry, lines } = await fake(() => ({
      status,
      headers,
      body: { message: 'no\n  way' },
    }));
    const error = await failure(registry.latest('wine.orders-value'));

    expect([error.code, isRetryable(error)]).toEqual(['REGISTRY_REFUSED', false]);
    expect(error.message).toMatch(/^wine\.orders-value: the schema registry at .*: no way/);
    expect(error.message.split(': no way')[1]).toBe(advice);
    expect(lines()).toHaveLength(1);
  });

  it.each([
    ['a 404 that is no registry’s', { status: 404, body: '<html>' }],
    ['a 404 in other words', { status: 404, body: { message: 'no such path' } }],
    ['an answer that is no JSON', { body: '<html>' }],
  ])('%s is final', async (_, answer) => {
    const { registry } = await fake(() => answer);

    expect((await failure(registry.latest('a'))).code).toBe('REGISTRY_REFUSED');
  });

  it.each([
    ['', 'give SCHEMA_REGISTRY_URL the path of its API, as /apis/ccompat/v7 of Apicurio'],
    ['/apis', 'check the path in SCHEMA_REGISTRY_URL'],
  ])(
    'an address that no registry answers at is said to lack its path: "%s"',
    async (path, advice) => {
      const { url } = await fake(() => ({ status: 404, body: '<html>' }));
      const registry = createRegistry({ url: new URL(url).origin + path });
      const error = await failure(registry.latest('a'));
      expect(error.message).toContain(
        `answered 404: the response is not from a schema registry: ${advice}`,
      );
      await registry.close();
    },
  );

  it('an answer that does not come can pass', async () => {
    const { registry } = await fake(() => undefined, { timeoutMs: 100 });
    const error = await failure(registry.latest('a'));

    expect([error.code, isRetryable(error)]).toEqual(['REGISTRY_UNREACHABLE', true]);
  });

  it('a closed port can pass', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const registry = createRegistry({ url: `http://127.0.0.1:${port}` });

    expect(describeError(await failure(registry.latest('a')))).toMatch(
      /^no answer from the schema registry at http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/,
    );
    await registry.close();
  });

  it.each(['options', 'the address'])('never show a password that came in %s', async (where) => {
    const { url } = await fake(() => ({ status: 401, body: { message: 'who are you?' } }));
    const registry = createRegistry(
      where === 'options'
        ? { url, username: 'me', password: 's3cret/' }
        : { url: url.replace('//', '//me:s3cret%2F@') },
    );
    open.unshift(() => registry.close());
    const error = await failure(registry.register('a', schema));

    expect(error.message).toContain('who are you?');
    expect(`${describeError(error)} ${error.stack} ${JSON.stringify(error)}`).not.toContain(
      's3cret',
    );
  });
});

it.each([
  ['options', { username: 'me', password: 'p:ä' }],
  ['neither', {}],
])('sends credentials from %s', async (_, options) => {
  const { registry, seen } = await fake(() => missing, options);
  await registry.latest('a');

  const expected =
    'username' in options ? `Basic ${Buffer.from('me:p:ä').toString('base64')}` : undefined;
  expect(seen[0]?.headers.authorization).toBe(expected);
});
