import { boundedMap, type BoundedMap } from '../../core/bounded-map.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { objectIn } from '../../core/http-text.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { RegistryHttp, type RegistryOptions } from './registry-http.ts';

/** A version of a subject's schema as registered in the schema registry. */
export interface RegisteredSchema {
  readonly id: number;
  readonly version: number;
  readonly schema: RecordSchema;
}

/** State of a subject in the registry, and the rights for {@link Registry.register} that the client lacks. */
export interface SubjectInspection {
  /** Number of the newest version of the subject's schema; undefined if no schema is registered under the subject. */
  readonly version: number | undefined;
  /** Effective compatibility level of the subject: its own, else the global one; undefined if the registry reports neither. */
  readonly compatibility: string | undefined;
  /**
   * Error messages, one line each, with which `register` would fail because the client lacks a right or the registry is read-only. Whether
   * the registry would accept a schema is not tested.
   */
  readonly refusals: readonly string[];
}

/**
 * A schema registry with Confluent's API. Every method throws CellarstreamError with one of these codes:
 *
 * - `REGISTRY_UNREACHABLE`: a retry may succeed.
 * - `TLS_REFUSED`: no TLS connection can be set up, for example because a certificate is not trusted.
 * - `REGISTRY_REFUSED`: any other failure, with the registry's message.
 */
export interface Registry {
  /**
   * Ensures that the subject has the compatibility level FULL_TRANSITIVE and contains the schema, and returns the schema's id. The id is
   * cached.
   */
  register(subject: string, schema: RecordSchema): Promise<number>;
  /** Returns the newest version of the subject's schema; undefined if there is none. */
  latest(subject: string): Promise<RegisteredSchema | undefined>;
  /** Returns the schema of messages with this schema id. Cached: the schema of an id never changes. */
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
 * Maximum number of cached schema ids, and of cached schemas; at least the newest half is retained. Too few: more requests to the registry.
 */
const MAX_REMEMBERED = 2_000;

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
  return new RegistryClient(options);
}

/**
 * Implementation of {@link Registry}. Ids and schemas are cached as promises, so that concurrent calls share a request. Schemas of one
 * subject are sent one after another.
 */
class RegistryClient implements Registry {
  readonly #http: RegistryHttp;
  readonly #ids = boundedMap<string, Promise<number>>(MAX_REMEMBERED);
  readonly #schemas = boundedMap<number, Promise<RecordSchema>>(MAX_REMEMBERED);
  /** For each subject, the promise of its latest schema registration. The subject's next registration is sent after this one has ended. */
  readonly #lastSent = new Map<string, Promise<unknown>>();

  constructor(options: RegistryOptions) {
    this.#http = new RegistryHttp(options);
  }

  register(subject: string, schema: RecordSchema): Promise<number> {
    const text = JSON.stringify(schema);
    return memoized(this.#ids, `${subject} ${text}`, () => {
      const send = () => this.#send(subject, text);
      const sent = (this.#lastSent.get(subject) ?? Promise.resolve()).then(send, send);
      this.#lastSent.set(subject, sent);
      return sent;
    });
  }

  async latest(subject: string): Promise<RegisteredSchema | undefined> {
    const path = `${versionsPath(subject)}/latest`;
    const { exists, body } = await this.#http.request('GET', path, subject);
    if (!exists) return undefined;
    return {
      id: integer(body.id, subject),
      version: integer(body.version, subject),
      schema: recordSchema(body.schema, subject),
    };
  }

  schemaById(id: number): Promise<RecordSchema> {
    return memoized(this.#schemas, id, async () => {
      const about = `schema ${id}`;
      const { exists, body } = await this.#http.request('GET', `/schemas/ids/${id}`, about);
      if (exists) return recordSchema(body.schema, about);
      throw registryRefusal(
        `${about} is not in the schema registry: check that SCHEMA_REGISTRY_URL is that of the service`,
      );
    });
  }

  async compatible(subject: string, schema: RecordSchema): Promise<boolean> {
    const path = `/compatibility${versionsPath(subject)}`;
    const version = { schemaType: 'AVRO', schema: JSON.stringify(schema) };
    const { exists, body } = await this.#http.request('POST', path, subject, version);
    return !exists || body.is_compatible === true; // a subject that does not exist accepts any schema
  }

  async inspect(subject: string): Promise<SubjectInspection> {
    const newest = await this.latest(subject);
    const level = (await this.#subjectLevel(subject)) ?? (await this.#globalLevel(subject));
    const refusals: string[] = [];
    const malformed = { schemaType: NONEXISTENT_VALUE, schema: '{}' };
    const register = await this.#refusalOf('POST', versionsPath(subject), subject, malformed);
    if (register !== undefined) refusals.push(register);
    if (level !== COMPATIBILITY) {
      const noLevel = { compatibility: NONEXISTENT_VALUE };
      const setLevel = await this.#refusalOf('PUT', configPath(subject), subject, noLevel);
      if (setLevel !== undefined) refusals.push(`${setLevel}: ${levelAdvice(level)}`);
    }
    return { version: newest?.version, compatibility: level, refusals };
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  async #send(subject: string, schema: string): Promise<number> {
    await this.#makeCompatible(subject);
    const version = { schemaType: 'AVRO', schema };
    const { body } = await this.#change('POST', versionsPath(subject), subject, version);
    return integer(body.id, subject);
  }

  /** Sends a request that changes a subject, and repeats it once after the status 409. */
  async #change(method: string, path: string, subject: string, body: object) {
    const send = () => this.#http.request(method, path, subject, body);
    return send().catch((error: unknown) => {
      // If two clients create a subject at the same time, a registry may refuse one of them.
      if (error instanceof CellarstreamError && error.context.status === CONFLICT) return send();
      throw error;
    });
  }

  async #makeCompatible(subject: string): Promise<void> {
    const own = await this.#subjectLevel(subject);
    if (own === COMPATIBILITY) return;
    try {
      const wanted = { compatibility: COMPATIBILITY };
      const { exists } = await this.#change('PUT', configPath(subject), subject, wanted);
      if (!exists)
        throw registryRefusal(
          `${subject}: the schema registry can't set the compatibility level ${COMPATIBILITY} for this subject`,
        );
    } catch (error) {
      if (!isRegistryRefusal(error)) throw error;
      // Some roles may register schemas but not set a level. They work if an administrator has set the required level globally.
      const inForce = own ?? (await this.#globalLevel(subject));
      if (inForce === COMPATIBILITY) return;
      const { context } = error;
      if (inForce === undefined && MISSING_PATH_STATUSES.includes(context.status)) throw error; // the URL is wrong
      throw new CellarstreamError('REGISTRY_REFUSED', `${error.message}: ${levelAdvice(inForce)}`, {
        cause: error,
        context,
      });
    }
  }

  /** Returns the subject's own compatibility level, else the registry's; undefined if the registry reports neither. */
  #subjectLevel(subject: string): Promise<string | undefined> {
    return this.#levelAt(`${configPath(subject)}?defaultToGlobal=true`, subject);
  }

  /**
   * Returns the registry's global compatibility level, which applies to subjects for which none is set; undefined if the registry does not
   * report it.
   *
   * @param subject Subject that an error message names.
   */
  #globalLevel(subject: string): Promise<string | undefined> {
    // `#subjectLevel` is not enough: for a subject without a schema, Apicurio and Karapace do not report the global level.
    return this.#levelAt('/config', subject);
  }

  /**
   * Returns the compatibility level at a path of the registry's API; undefined if none is set, if the path does not exist, or if this
   * client may not read it.
   */
  async #levelAt(path: string, subject: string): Promise<string | undefined> {
    try {
      const { exists, body } = await this.#http.request('GET', path, subject);
      const level = body.compatibilityLevel ?? body.compatibility; // depends on the registry and the path
      return exists && typeof level === 'string' ? level : undefined;
    } catch (error) {
      const isMissing =
        error instanceof CellarstreamError && MISSING_PATH_STATUSES.includes(error.context.status);
      if (isMissing || isForbidden(error)) return undefined;
      throw error;
    }
  }

  /**
   * Tests a right of this client with a malformed request, which changes nothing. Returns the registry's error message if the client lacks
   * the right or the registry is read-only, else undefined.
   */
  async #refusalOf(method: string, path: string, subject: string, malformed: object) {
    try {
      await this.#http.request(method, path, subject, malformed);
    } catch (error) {
      if (isForbidden(error)) return error.message;
      // Registries check rights before they validate the body, so any other response means that the client has the right.
      if (!(error instanceof CellarstreamError) || error.context.status === undefined) throw error;
    }
    return undefined;
  }
}

/** Value that no registry supports as a compatibility level or as a schema type: a request that contains it changes nothing. */
const NONEXISTENT_VALUE = 'NO_SUCH_THING';

/** Confluent's error code for writing to a subject, or a whole registry, in read-only mode. */
const READ_ONLY = 42205;

function isRegistryRefusal(error: unknown): error is CellarstreamError {
  return error instanceof CellarstreamError && error.code === 'REGISTRY_REFUSED';
}

/** Whether the registry refused a request because of the client's credentials (401), a missing right (403), or read-only mode. */
function isForbidden(error: unknown): error is CellarstreamError {
  if (!isRegistryRefusal(error)) return false;
  const { status, errorCode } = error.context;
  return status === 401 || status === 403 || errorCode === READ_ONLY;
}

/** HTTP statuses for a path that does not exist, as from a gateway that forwards only some paths of a registry. */
const MISSING_PATH_STATUSES: readonly unknown[] = [404, 405, 501];

function levelAdvice(current: string | undefined): string {
  return (
    `the compatibility level of the subject is ${current ?? 'not known'} and must be ${COMPATIBILITY}: give the registry's user the right to set ` +
    `the level of a subject, or have an administrator set it for the subject or for the whole registry`
  );
}

const configPath = (subject: string): string => `/config/${encodeURIComponent(subject)}`;

const versionsPath = (subject: string): string =>
  `/subjects/${encodeURIComponent(subject)}/versions`;

/** Returns the cached result for a key, or runs `work` and caches its promise for concurrent and later callers. Failures are not cached. */
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
  if (schema && 'fields' in schema) return schema as unknown as RecordSchema; // the registry has validated the rest
  throw registryRefusal(`${about} in the schema registry is not an Avro record`);
}

function integer(value: unknown, about: string): number {
  if (Number.isInteger(value)) return value as number;
  throw registryRefusal(`${about}: the schema registry answered without an id or version`);
}

function registryRefusal(message: string): CellarstreamError {
  return new CellarstreamError('REGISTRY_REFUSED', message);
}
