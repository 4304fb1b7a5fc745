import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { createRegistry } from '../../../src/schemas/registry/registry.ts';

const schema: RecordSchema = {
  type: 'record',
  name: 'A',
  namespace: 'x',
  fields: [{ name: 'b', type: ['null', 'string'], default: null }],
};
const text = JSON.stringify(schema);
/** The same schema as Karapace writes it: the keys of each object in alphabetical order. */
const sorted =
  '{"fields":[{"default":null,"name":"b","type":["null","string"]}],"name":"A","namespace":"x","type":"record"}';

interface Answer {
  readonly status: number;
  readonly body: object | string;
}
const ok = (body: object): Answer => ({ status: 200, body });
const error = (status: number, error_code: number, message: string): Answer => ({
  status,
  body: { error_code, message },
});

/** Answers of one registry to each of the client's requests: recorded (Apicurio), or as its source and documents have them. */
interface Dialect {
  /** To a request for the level of a subject without a level of its own, with `defaultToGlobal=true`. */
  readonly unset: Answer;
  readonly global: Answer;
  readonly set: Answer;
  /** Of a level that does not exist. */
  readonly noSuchLevel: Answer;
  readonly noSuchType: Answer;
  readonly noSubject: Answer;
  readonly latest: Answer;
  readonly byId: Answer;
  readonly noId: Answer;
  readonly incompatible: Answer;
  readonly notCompatible: Answer;
}

const SUBJECT = 's';
const DIALECTS: Readonly<Record<string, Dialect>> = {
  'Apicurio 2.6': {
    unset: error(404, 40401, "No artifact with ID 's' in group 'null' was found."),
    global: ok({ compatibilityLevel: 'NONE' }),
    set: ok({ compatibility: 'FULL_TRANSITIVE' }),
    noSuchLevel: { status: 400, body: 'Not able to deserialize data provided.' },
    noSuchType: error(500, 0, 'No such artifact type provider: NO_SUCH_THING'),
    noSubject: error(404, 40401, "No artifact with ID 's' in group 'null' was found."),
    latest: ok({ id: 1, subject: SUBJECT, version: 1, schema: text, references: [] }),
    byId: ok({ schema: text, references: [] }),
    noId: error(404, 40403, "No content with id/hash 'contentId-99' was found."),
    incompatible: error(409, 409, 'RuleViolationException: Incompatible artifact: s [AVRO]'),
    notCompatible: ok({ is_compatible: false, reason: 'union lacks type: LONG' }),
  },
  'Apicurio 3.0': {
    unset: error(404, 40401, "No artifact with ID 's' in group 'null' was found."),
    global: ok({ compatibilityLevel: 'NONE' }),
    set: ok({ compatibilityLevel: 'FULL_TRANSITIVE' }),
    noSuchLevel: error(500, 0, 'Illegal compatibility level: NO_SUCH_THING'),
    noSuchType: error(500, 0, 'No such artifact type provider: NO_SUCH_THING'),
    noSubject: error(404, 40401, "No artifact with ID 's' in group 'null' was found."),
    latest: ok({
      ...{ subject: SUBJECT, version: 1, id: 1, schema: text },
      ...{ schemaType: 'AVRO', references: [] },
    }),
    byId: ok({ schema: text, schemaType: 'AVRO', references: [] }),
    noId: error(404, 40403, "No content with ID '99' was found."),
    incompatible: error(409, 409, 'RuleViolationException: Incompatible artifact: s [AVRO]'),
    notCompatible: ok({ is_compatible: false }),
  },
  'Karapace 5.0': {
    unset: error(404, 40401, "Subject 's' not found."),
    global: ok({ compatibilityLevel: 'BACKWARD' }),
    set: ok({ compatibility: 'FULL_TRANSITIVE' }),
    noSuchLevel: error(422, 42203, 'Invalid compatibility level'),
    noSuchType: error(422, 422, 'Invalid schemaType NO_SUCH_THING'),
    noSubject: error(404, 40401, "Subject 's' not found."),
    latest: ok({ subject: SUBJECT, id: 1, version: 1, schema: sorted }),
    byId: ok({ schema: sorted }),
    noId: error(404, 40403, 'Schema not found'),
    incompatible: error(409, 409, 'Incompatible schema, compatibility_mode=FULL_TRANSITIVE'),
    notCompatible: ok({ is_compatible: false, messages: ['reader union lacks type: long'] }),
  },
  Confluent: {
    unset: ok({ compatibilityLevel: 'BACKWARD' }),
    global: ok({ compatibilityLevel: 'BACKWARD' }),
    set: ok({ compatibility: 'FULL_TRANSITIVE' }),
    noSuchLevel: error(422, 42203, 'Invalid compatibility level. Valid values are none, backward'),
    noSuchType: error(422, 42201, 'Invalid schema type NO_SUCH_THING'),
    noSubject: error(404, 40401, "Subject 's' not found."),
    latest: ok({
      ...{ subject: SUBJECT, version: 1, id: 1, guid: '0b0b', schemaType: 'AVRO' },
      ...{ schema: text, ts: 1_780_000_000_000, deleted: false },
    }),
    byId: ok({ schema: text, guid: '0b0b' }),
    noId: error(404, 40403, 'Schema 99 not found'),
    incompatible: error(409, 409, 'Schema being registered is incompatible with an earlier schema'),
    notCompatible: ok({ is_compatible: false, messages: ['TYPE_MISMATCH'] }),
  },
};

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** What an account may do, and what the registry holds. */
interface World {
  readonly hasSchema?: boolean;
  /** Level of the whole registry in place of the usual one. */
  readonly globalLevel?: string;
  /** The answer to requests that would set a level, or register a schema. */
  readonly refuses?: { readonly put?: Answer; readonly post?: Answer };
}

/** A registry that speaks a dialect, and a client of it. */
async function speaking(dialect: Dialect, world: World = {}) {
  const seen: string[] = [];
  const level = world.globalLevel;
  const asGlobal = (answer: Answer) =>
    level !== undefined && answer.status === 200 ? ok({ compatibilityLevel: level }) : answer;
  const answerTo = (line: string, body: string): Answer => {
    const isMalformed = body.includes('NO_SUCH');
    switch (line) {
      case 'GET /config/s?defaultToGlobal=true':
        return asGlobal(dialect.unset);
      case 'GET /config':
        return asGlobal(dialect.global);
      case 'PUT /config/s':
        return world.refuses?.put ?? (isMalformed ? dialect.noSuchLevel : dialect.set);
      case 'POST /subjects/s/versions':
        if (world.refuses?.post) return world.refuses.post;
        if (isMalformed) return dialect.noSuchType;
        return body.includes('long') ? dialect.incompatible : ok({ id: 1 });
      case 'GET /subjects/s/versions/latest':
        return world.hasSchema ? dialect.latest : dialect.noSubject;
      case 'POST /compatibility/subjects/s/versions':
        return world.hasSchema ? dialect.notCompatible : dialect.noSubject;
      case 'GET /schemas/ids/1':
        return dialect.byId;
      default:
        return dialect.noId;
    }
  };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      const line = `${request.method} ${request.url}`;
      seen.push(line);
      const answer = answerTo(line, body);
      const isText = typeof answer.body === 'string';
      response.writeHead(answer.status).end(isText ? answer.body : JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registry = createRegistry({ url });
  open.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  open.push(() => registry.close());
  return { registry, seen };
}

async function failure(promise: Promise<unknown>): Promise<CellarstreamError> {
  const reason = await promise.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  expect(reason).toBeInstanceOf(CellarstreamError);
  return reason as CellarstreamError;
}

const FORBIDDEN = { status: 403, body: { error_code: 40301, message: 'User is denied operation' } };
const NOT_ALLOWED = [
  ['Confluent', FORBIDDEN],
  ['Karapace', { status: 403, body: { error: 'Authorization error', reason: 'Forbidden' } }],
  ['a gateway', { status: 401, body: '<html>who are you?</html>' }],
] as const;

describe.each(Object.entries(DIALECTS))('a registry that speaks as %s', (_, dialect) => {
  it('takes a first schema, and makes the subject FULL_TRANSITIVE', async () => {
    const { registry, seen } = await speaking(dialect);

    expect(await registry.latest(SUBJECT)).toBeUndefined();
    expect(await registry.compatible(SUBJECT, schema)).toBe(true);
    expect(await registry.register(SUBJECT, schema)).toBe(1);
    expect(seen.slice(-2)).toEqual(['PUT /config/s', 'POST /subjects/s/versions']);
  });

  it('gives schemas back', async () => {
    const { registry } = await speaking(dialect, { hasSchema: true });

    expect(await registry.latest(SUBJECT)).toEqual({ id: 1, version: 1, schema });
    expect(await registry.schemaById(1)).toEqual(schema);
    expect((await failure(registry.schemaById(99))).message).toMatch(/^schema 99 is not in/);
  });

  it('refuses an incompatible schema in its own words', async () => {
    const { registry } = await speaking(dialect, { hasSchema: true });
    const fields = [{ name: 'b', type: ['null', 'long'] as const, default: null }];
    const other: RecordSchema = { ...schema, fields };

    expect(await registry.compatible(SUBJECT, other)).toBe(false);
    expect(await failure(registry.register(SUBJECT, other))).toMatchObject({
      code: 'REGISTRY_REFUSED',
      message: expect.stringMatching(/^s: .* answered 409: .*[Ii]ncompatible/) as string,
    });
  });

  it.each(NOT_ALLOWED)(
    'registers for a role that may not set a level, where the right one is in force for all subjects: refused as %s does',
    async (__, put) => {
      const globalLevel = 'FULL_TRANSITIVE';
      const { registry } = await speaking(dialect, { globalLevel, refuses: { put } });
      expect(await registry.register(SUBJECT, schema)).toBe(1);
      expect(await registry.inspect(SUBJECT)).toMatchObject({ refusals: [] });
    },
  );

  it('names the level in force, and the missing right, where another level is in force', async () => {
    const { registry } = await speaking(dialect, {
      globalLevel: 'BACKWARD',
      refuses: { put: FORBIDDEN },
    });
    const { code, message } = await failure(registry.register(SUBJECT, schema));

    expect(code).toBe('REGISTRY_REFUSED');
    expect(message).toContain('answered 403: User is denied operation');
    expect(message).toContain(
      'the compatibility level of the subject is BACKWARD and must be FULL_TRANSITIVE',
    );
    expect((await registry.inspect(SUBJECT)).refusals).toEqual([message]);
  });

  it('is inspected without a change', async () => {
    const { registry, seen } = await speaking(dialect, { hasSchema: true });

    expect(await registry.inspect(SUBJECT)).toMatchObject({ version: 1, refusals: [] });
    expect(seen.filter((line) => !line.startsWith('GET'))).toEqual([
      'POST /subjects/s/versions', // with a type that no registry has
      'PUT /config/s', // with a level that no registry has
    ]);
  });

  it('is found to take no schemas of this role', async () => {
    const { registry } = await speaking(dialect, { refuses: { post: FORBIDDEN } });
    const { refusals } = await registry.inspect(SUBJECT);

    expect(refusals).toEqual([expect.stringContaining('answered 403: User is denied operation')]);
  });
});

it('finds a Confluent registry in read-only mode before anything is registered', async () => {
  const post = error(422, 42205, 'Subject s is in read-only mode');
  const { registry } = await speaking(DIALECTS.Confluent!, { refuses: { post } });
  const { refusals } = await registry.inspect(SUBJECT);

  expect(refusals).toEqual([expect.stringContaining('Subject s is in read-only mode')]);
});
