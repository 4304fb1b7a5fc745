// Client of a schema registry with Confluent's API.

import { boundedMap } from '../../core/bounded-map.ts';
import type { BoundedMap } from '../../core/bounded-map.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { objectIn } from '../../core/http-text.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { createRegistryHttp } from './registry-http.ts';
import type { RegistryResponse, RegistryOptions } from './registry-http.ts';

/** A version of a subject's schema as registered in the schema registry. */
export interface RegisteredSchema {
  readonly id: number;
  readonly version: number;
  readonly schema: RecordSchema;
}

/** State of a subject in the registry, and the reasons why {@link Registry.register} would fail for it. */
export interface SubjectInspection {
  /** Number of the newest version of the subject's schema; undefined if no schema is registered under the subject. */
  readonly version: number | undefined;
  /** Effective compatibility level of the subject: its own, else the global one; undefined if the registry reports neither. */
  readonly compatibility: string | undefined;
  /** The registry's refusals, with which `register` would fail, one line each; empty if it would succeed. */
  readonly refusals: readonly string[];
}

/**
 * A schema registry with Confluent's API.
 *
 * Every method throws CellarstreamError: `REGISTRY_UNREACHABLE` if a retry may succeed, else `REGISTRY_REFUSED` with the registry's
 * message, or `TLS_REFUSED`.
 */
export interface Registry {
  /**
   * Returns the id of the schema under the subject, and registers the schema if it isn't registered yet. First sets the subject's
   * compatibility level to FULL_TRANSITIVE, unless that is its effective level. Each schema is sent once, however often it is requested;
   * schemas of one subject are sent one at a time.
   */
  register(subject: string, schema: RecordSchema): Promise<number>;
  /** Returns the newest version of the subject's schema; undefined if there is none. */
  latest(subject: string): Promise<RegisteredSchema | undefined>;
  /** Returns the schema with this registry id, which messages contain. Cached: the schema of an id never changes. */
  schemaById(id: number): Promise<RecordSchema>;
  /** Returns whether the registry would accept the schema as the subject's next version. */
  compatible(subject: string, schema: RecordSchema): Promise<boolean>;
  /** Returns the state of a subject, and which rights this client lacks for it, without changing anything. */
  inspect(subject: string): Promise<SubjectInspection>;
  /** Closes the connections; requests in flight fail. */
  close(): Promise<void>;
}

const COMPATIBILITY = 'FULL_TRANSITIVE';
const CONFLICT = 409;

/**
 * Maximum number of cached schema ids, and of cached schemas; at least the newest half of each is retained. Too few means more requests to
 * the registry.
 */
const MAX_REMEMBERED = 2_000;

// @kafkajs/confluent-schema-registry is not used because it returns schemas as avsc types, which lack the field property `json`, can't
// check compatibility, and depends on protobufjs.
/**
 * Creates a client of a registry with Confluent's API. Ids and schemas are cached.
 *
 * @example
 * ```ts
 * import { createRegistry, valueSubject } from 'cellarstream/schemas';
 *
 * const registry = createRegistry({ url: 'http://127.0.0.1:8081/apis/ccompat/v7' });
 * const newest = await registry.latest(valueSubject('wine.orders'));
 * console.log(newest?.version, newest?.schema.fields.map(({ name }) => name));
 * await registry.close();
 * ```
 */
export function createRegistry(options: RegistryOptions): Registry {
  const { request, close } = createRegistryHttp(options);
  const ids = boundedMap<string, Promise<number>>(MAX_REMEMBERED);
  const schemas = boundedMap<number, Promise<RecordSchema>>(MAX_REMEMBERED);
  const lastTurns = new Map<string, Promise<unknown>>();

  /**
   * Returns the subject's own compatibility level, else the registry's; undefined if the registry does not know the subject, or reports no
   * level.
   */
  const subjectLevel = async (subject: string): Promise<string | undefined> =>
    levelIn(
      await undefinedIfForbidden(
        request('GET', `${configPath(subject)}?defaultToGlobal=true`, subject),
      ),
    );

  /**
   * Returns the registry's compatibility level for subjects without a level of their own. Apicurio and Karapace don't report it in
   * `subjectLevel` for a subject without a schema.
   */
  const globalLevel = async (subject: string): Promise<string | undefined> =>
    levelIn(await undefinedIfForbidden(request('GET', '/config', subject)));

  const makeCompatible = async (subject: string): Promise<void> => {
    const own = await subjectLevel(subject);
    if (own === COMPATIBILITY) return;
    try {
      const wanted = { compatibility: COMPATIBILITY };
      const { exists } = await retryOnConflict(() =>
        request('PUT', configPath(subject), subject, wanted),
      );
      if (!exists)
        throw registryRefusal(`${subject}: the schema registry can't make it ${COMPATIBILITY}`);
    } catch (error) {
      if (!isRegistryRefusal(error)) throw error;
      // Some roles may register schemas but not set a level. They work if an administrator has set the required level globally.
      const inForce = own ?? (await globalLevel(subject));
      if (inForce === COMPATIBILITY) return;
      const { context } = error;
      if (inForce === undefined && MISSING_PATH_STATUSES.includes(context.status)) throw error; // the URL is wrong
      throw new CellarstreamError('REGISTRY_REFUSED', `${error.message}: ${levelAdvice(inForce)}`, {
        cause: error,
        context,
      });
    }
  };

  const send = async (subject: string, schema: string): Promise<number> => {
    await makeCompatible(subject);
    const version = { schemaType: 'AVRO', schema };
    const { body } = await retryOnConflict(() =>
      request('POST', versionsPath(subject), subject, version),
    );
    return integer(body.id, subject);
  };

  const register = (subject: string, schema: RecordSchema): Promise<number> => {
    const text = JSON.stringify(schema);
    return memoized(ids, `${subject} ${text}`, () => {
      const turn = () => send(subject, text);
      const sent = (lastTurns.get(subject) ?? Promise.resolve()).then(turn, turn);
      lastTurns.set(subject, sent);
      return sent;
    });
  };

  const latest = async (subject: string): Promise<RegisteredSchema | undefined> => {
    const { exists, body } = await request('GET', `${versionsPath(subject)}/latest`, subject);
    if (!exists) return undefined;
    const { id, version, schema } = body;
    return {
      id: integer(id, subject),
      version: integer(version, subject),
      schema: recordSchema(schema, subject),
    };
  };

  const schemaById = (id: number): Promise<RecordSchema> =>
    memoized(schemas, id, async () => {
      const about = `schema ${id}`;
      const { exists, body } = await request('GET', `/schemas/ids/${id}`, about);
      if (exists) return recordSchema(body.schema, about);
      throw registryRefusal(
        `${about} is not in the schema registry: is SCHEMA_REGISTRY_URL the right one?`,
      );
    });

  const compatible = async (subject: string, schema: RecordSchema): Promise<boolean> => {
    const path = `/compatibility${versionsPath(subject)}`;
    const asked = { schemaType: 'AVRO', schema: JSON.stringify(schema) };
    const { exists, body } = await request('POST', path, subject, asked);
    return !exists || body.is_compatible === true; // a subject that does not exist accepts any schema
  };

  /**
   * Sends a malformed request to the registry, to test whether the client has a right without changing anything. Returns the registry's
   * refusal; undefined if the client has the right.
   */
  const refusalOf = async (
    method: string,
    path: string,
    subject: string,
    malformed: object,
  ): Promise<string | undefined> => {
    try {
      await request(method, path, subject, malformed);
    } catch (error) {
      if (isForbidden(error)) return error.message;
      // Registries check rights before they validate the body, so any other response means that the client has the right.
      if (!(error instanceof CellarstreamError) || error.context.status === undefined) throw error;
    }
    return undefined;
  };

  const inspect = async (subject: string): Promise<SubjectInspection> => {
    const newest = await latest(subject);
    const compatibility = (await subjectLevel(subject)) ?? (await globalLevel(subject));
    const schema = { schemaType: NONEXISTENT_VALUE, schema: '{}' };
    const register = await refusalOf('POST', versionsPath(subject), subject, schema);
    const setLevel =
      compatibility === COMPATIBILITY
        ? undefined
        : await refusalOf('PUT', configPath(subject), subject, {
            compatibility: NONEXISTENT_VALUE,
          });
    const refusals = [
      ...(register === undefined ? [] : [register]),
      ...(setLevel === undefined ? [] : [`${setLevel}: ${levelAdvice(compatibility)}`]),
    ];
    return { version: newest?.version, compatibility, refusals };
  };

  return { register, latest, schemaById, compatible, inspect, close };
}

/** Compatibility level and schema type that no registry supports: a request with it changes nothing. */
const NONEXISTENT_VALUE = 'NO_SUCH_THING';

/** Confluent's error code for writing to a subject, or a whole registry, in read-only mode. */
const READ_ONLY = 42205;

function isRegistryRefusal(error: unknown): error is CellarstreamError {
  return error instanceof CellarstreamError && error.code === 'REGISTRY_REFUSED';
}

/** Whether the registry refused because the account lacks a right, or because the registry is read-only. */
function isForbidden(error: unknown): error is CellarstreamError {
  if (!isRegistryRefusal(error)) return false;
  const { status, errorCode } = error.context;
  return status === 401 || status === 403 || errorCode === READ_ONLY;
}

/** HTTP statuses for a path that does not exist, as from a gateway that forwards only some paths of a registry. */
const MISSING_PATH_STATUSES: readonly unknown[] = [404, 405, 501];

/**
 * Returns a promise of the response that resolves to undefined, instead of failing, if the account lacks the right to the request or the
 * path does not exist.
 */
function undefinedIfForbidden<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((error: unknown) => {
    const isNowhere =
      error instanceof CellarstreamError && MISSING_PATH_STATUSES.includes(error.context.status);
    if (isNowhere || isForbidden(error)) return undefined;
    throw error;
  });
}

/** Returns the compatibility level in a registry's response: `compatibilityLevel` or `compatibility`, depending on registry and path. */
function levelIn(answer: RegistryResponse | undefined): string | undefined {
  if (!answer?.exists) return undefined;
  const found = answer.body.compatibilityLevel ?? answer.body.compatibility;
  return typeof found === 'string' ? found : undefined;
}

function levelAdvice(current: string | undefined): string {
  return (
    `its compatibility level is ${current ?? 'not known'} and must be ${COMPATIBILITY}: give the account the right to set ` +
    `the level of a subject, or have an administrator set it for the subject or for the whole registry`
  );
}

function configPath(subject: string): string {
  return `/config/${encodeURIComponent(subject)}`;
}

/**
 * Repeats a request once after a 409: two clients that create a subject at the same time conflict, and the second attempt succeeds. For an
 * incompatible schema the second attempt conflicts too.
 */
function retryOnConflict<T>(ask: () => Promise<T>): Promise<T> {
  return ask().catch((error: unknown) => {
    if (error instanceof CellarstreamError && error.context.status === CONFLICT) return ask();
    throw error;
  });
}

function versionsPath(subject: string): string {
  return `/subjects/${encodeURIComponent(subject)}/versions`;
}

/**
 * Returns the cached result for a key, or runs `work` and caches its promise, so that concurrent callers share one request. Failures are
 * not cached.
 */
function memoized<K, T>(
  answers: BoundedMap<K, Promise<T>>,
  key: K,
  work: () => Promise<T>,
): Promise<T> {
  const known = answers.get(key);
  if (known) return known;
  const answer = work();
  answers.set(key, answer);
  answer.catch(() => answers.get(key) === answer && answers.delete(key));
  return answer;
}

function recordSchema(text: unknown, about: string): RecordSchema {
  const schema = typeof text === 'string' ? objectIn(text) : undefined;
  if (schema && isRecordSchema(schema)) return schema;
  throw registryRefusal(`${about} in the schema registry is not an Avro record`);
}

/** Whether a schema is a record; the registry has validated the rest. */
function isRecordSchema(schema: object): schema is RecordSchema {
  return 'fields' in schema;
}

function integer(value: unknown, about: string): number {
  if (Number.isInteger(value)) return value as number;
  throw registryRefusal(`${about}: the schema registry answered without an id or version`);
}

function registryRefusal(message: string): CellarstreamError {
  return new CellarstreamError('REGISTRY_REFUSED', message);
}
