// A client of a schema registry that speaks Confluent's API.

import { boundedMap } from '../../core/bounded-map.ts';
import type { BoundedMap } from '../../core/bounded-map.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { objectIn } from '../../core/json-object.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { createRegistryHttp } from './registry-http.ts';
import type { RegistryAnswer, RegistryOptions } from './registry-http.ts';

/** A version of a subject's schema. */
export interface RegisteredSchema {
  readonly id: number;
  readonly version: number;
  readonly schema: RecordSchema;
}

/** A subject as the registry has it, and what keeps {@link Registry.register} from working there. */
export interface SubjectInspection {
  /** Newest version; undefined where nothing is registered under the subject. */
  readonly version: number | undefined;
  /** Compatibility level in force: the subject's own, else the global one; undefined where the registry tells neither. */
  readonly compatibility: string | undefined;
  /** The registry's refusals, one line each; empty where `register` would work. */
  readonly refusals: readonly string[];
}

/**
 * A schema registry that speaks Confluent's API.
 *
 * Every method throws CellarstreamError: `REGISTRY_UNREACHABLE` where a later try may do, else
 * `REGISTRY_REFUSED` with what the registry said, or `TLS_REFUSED`.
 */
export interface Registry {
  /**
   * The id of the schema under the subject, where it is registered unless it's there already. A subject whose level in
   * force is another is made FULL_TRANSITIVE first. A schema is sent once, however often it is asked for; of
   * one subject one at a time.
   */
  register(subject: string, schema: RecordSchema): Promise<number>;
  /** The newest version; undefined when there is none. */
  latest(subject: string): Promise<RegisteredSchema | undefined>;
  /** The schema that messages name by this id. Remembered: an id never changes its meaning. */
  schemaById(id: number): Promise<RecordSchema>;
  /** Whether the subject would take the schema as its next version. */
  compatible(subject: string, schema: RecordSchema): Promise<boolean>;
  /** Looks at a subject, and at what this client may do with it, without changing anything. */
  inspect(subject: string): Promise<SubjectInspection>;
  /** Ends the connections; requests under way fail. */
  close(): Promise<void>;
}

const COMPATIBILITY = 'FULL_TRANSITIVE';
const CONFLICT = 409;

/** Answers that are remembered, of each kind; at least the newest half. */
const MAX_REMEMBERED = 2_000;

// Not @kafkajs/confluent-schema-registry: it gives schemas as avsc types, which have lost the field
// property `json`, it can't ask whether a schema would be compatible, and it brings protobufjs along.
/**
 * A client of a registry with Confluent's API. What it has seen it does not ask for again.
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
  const { ask, close } = createRegistryHttp(options);
  const ids = boundedMap<string, Promise<number>>(MAX_REMEMBERED);
  const schemas = boundedMap<number, Promise<RecordSchema>>(MAX_REMEMBERED);
  const lastTurns = new Map<string, Promise<unknown>>();

  /** The subject's own compatibility level, else the registry's; undefined where the registry does not know the subject, or tells no level. */
  const subjectLevel = async (subject: string): Promise<string | undefined> =>
    levelIn(await orUntold(ask('GET', `${configOf(subject)}?defaultToGlobal=true`, subject)));

  /** The level of subjects that have none of their own. Apicurio and Karapace do not tell it for a subject without a schema. */
  const globalLevel = async (subject: string): Promise<string | undefined> =>
    levelIn(await orUntold(ask('GET', '/config', subject)));

  const makeCompatible = async (subject: string): Promise<void> => {
    const own = await subjectLevel(subject);
    if (own === COMPATIBILITY) return;
    try {
      const wanted = { compatibility: COMPATIBILITY };
      const { found } = await again(() => ask('PUT', configOf(subject), subject, wanted));
      if (!found) throw refused(`${subject}: the schema registry can't make it ${COMPATIBILITY}`);
    } catch (error) {
      if (!isRefused(error)) throw error;
      // Roles that may register but not set a level work where an administrator has set the right one for the whole registry.
      const inForce = own ?? (await globalLevel(subject));
      if (inForce === COMPATIBILITY) return;
      const { context } = error;
      if (inForce === undefined && NO_SUCH_PATH.includes(context.status)) throw error; // the address is wrong
      throw new CellarstreamError('REGISTRY_REFUSED', `${error.message}: ${levelAdvice(inForce)}`, {
        cause: error,
        context,
      });
    }
  };

  const send = async (subject: string, schema: string): Promise<number> => {
    await makeCompatible(subject);
    const version = { schemaType: 'AVRO', schema };
    const { body } = await again(() => ask('POST', versions(subject), subject, version));
    return integer(body.id, subject);
  };

  const register = (subject: string, schema: RecordSchema): Promise<number> => {
    const text = JSON.stringify(schema);
    return remembered(ids, `${subject} ${text}`, () => {
      const turn = () => send(subject, text);
      const sent = (lastTurns.get(subject) ?? Promise.resolve()).then(turn, turn);
      lastTurns.set(subject, sent);
      return sent;
    });
  };

  const latest = async (subject: string): Promise<RegisteredSchema | undefined> => {
    const { found, body } = await ask('GET', `${versions(subject)}/latest`, subject);
    if (!found) return undefined;
    const { id, version, schema } = body;
    return {
      id: integer(id, subject),
      version: integer(version, subject),
      schema: recordSchema(schema, subject),
    };
  };

  const schemaById = (id: number): Promise<RecordSchema> =>
    remembered(schemas, id, async () => {
      const about = `schema ${id}`;
      const { found, body } = await ask('GET', `/schemas/ids/${id}`, about);
      if (found) return recordSchema(body.schema, about);
      throw refused(
        `${about} is not in the schema registry: is SCHEMA_REGISTRY_URL the right one?`,
      );
    });

  const compatible = async (subject: string, schema: RecordSchema): Promise<boolean> => {
    const path = `/compatibility${versions(subject)}`;
    const asked = { schemaType: 'AVRO', schema: JSON.stringify(schema) };
    const { found, body } = await ask('POST', path, subject, asked);
    return !found || body.is_compatible === true; // a subject that isn't there takes anything
  };

  /** The registry's refusal of a request that could not succeed in any case; undefined where it lacks no right. */
  const refusalOf = async (
    method: string,
    path: string,
    subject: string,
    malformed: object,
  ): Promise<string | undefined> => {
    try {
      await ask(method, path, subject, malformed);
    } catch (error) {
      if (isForbidden(error)) return error.message;
      // Registries check rights before they look at the body: any other answer says that the right is there.
      if (!(error instanceof CellarstreamError) || error.context.status === undefined) throw error;
    }
    return undefined;
  };

  const inspect = async (subject: string): Promise<SubjectInspection> => {
    const newest = await latest(subject);
    const compatibility = (await subjectLevel(subject)) ?? (await globalLevel(subject));
    const schema = { schemaType: NO_SUCH, schema: '{}' };
    const register = await refusalOf('POST', versions(subject), subject, schema);
    const setLevel =
      compatibility === COMPATIBILITY
        ? undefined
        : await refusalOf('PUT', configOf(subject), subject, { compatibility: NO_SUCH });
    const refusals = [
      ...(register === undefined ? [] : [register]),
      ...(setLevel === undefined ? [] : [`${setLevel}: ${levelAdvice(compatibility)}`]),
    ];
    return { version: newest?.version, compatibility, refusals };
  };

  return { register, latest, schemaById, compatible, inspect, close };
}

/** A compatibility level and a schema type that no registry knows: a request with one of them changes nothing. */
const NO_SUCH = 'NO_SUCH_THING';

/** Confluent's error code for writing to a subject, or a whole registry, in read-only mode. */
const READ_ONLY = 42205;

function isRefused(error: unknown): error is CellarstreamError {
  return error instanceof CellarstreamError && error.code === 'REGISTRY_REFUSED';
}

/** Whether the account lacks a right, or the registry takes no writes. */
function isForbidden(error: unknown): error is CellarstreamError {
  if (!isRefused(error)) return false;
  const { status, errorCode } = error.context;
  return status === 401 || status === 403 || errorCode === READ_ONLY;
}

/** Statuses of a path that is not there, such as a gateway's that passes on only some paths of a registry. */
const NO_SUCH_PATH: readonly unknown[] = [404, 405, 501];

/** The level that was asked for; undefined where the account may not ask, or where levels can't be asked for. */
function orUntold<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((error: unknown) => {
    const isNowhere =
      error instanceof CellarstreamError && NO_SUCH_PATH.includes(error.context.status);
    if (isNowhere || isForbidden(error)) return undefined;
    throw error;
  });
}

/** The level in an answer: registries call it `compatibilityLevel` or `compatibility`, some each at another path. */
function levelIn(answer: RegistryAnswer | undefined): string | undefined {
  if (!answer?.found) return undefined;
  const found = answer.body.compatibilityLevel ?? answer.body.compatibility;
  return typeof found === 'string' ? found : undefined;
}

function levelAdvice(current: string | undefined): string {
  return (
    `its compatibility level is ${current ?? 'not known'} and must be ${COMPATIBILITY}: give the account the right to set ` +
    `the level of a subject, or have an administrator set it for the subject or for the whole registry`
  );
}

function configOf(subject: string): string {
  return `/config/${encodeURIComponent(subject)}`;
}

/**
 * Who makes a subject at the same moment as another client meets a conflict, and finds it made the next time. A schema that is
 * not compatible is a conflict each time.
 */
function again<T>(ask: () => Promise<T>): Promise<T> {
  return ask().catch((error: unknown) => {
    if (error instanceof CellarstreamError && error.context.status === CONFLICT) return ask();
    throw error;
  });
}

function versions(subject: string): string {
  return `/subjects/${encodeURIComponent(subject)}/versions`;
}

/** The answer given last time; one request for all who ask at once. Failures are not remembered. */
function remembered<K, T>(
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
  throw refused(`${about} in the schema registry is not an Avro record`);
}

/** The rest of it is for the registry to have checked. */
function isRecordSchema(schema: object): schema is RecordSchema {
  return 'fields' in schema;
}

function integer(value: unknown, about: string): number {
  if (Number.isInteger(value)) return value as number;
  throw refused(`${about}: the schema registry answered without an id or version`);
}

function refused(message: string): CellarstreamError {
  return new CellarstreamError('REGISTRY_REFUSED', message);
}
