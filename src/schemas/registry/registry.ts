import { boundedMap } from '../../core/bounded-map.ts';
import type { BoundedMap } from '../../core/bounded-map.ts';
import { CellarstreamError } from '../../core/errors.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { objectIn } from '../json/json.ts';
import { createRegistryHttp } from './registry-http.ts';
import type { RegistryOptions } from './registry-http.ts';

/** A version of a subject's schema. */
export interface RegisteredSchema {
  readonly id: number;
  readonly version: number;
  readonly schema: RecordSchema;
}

/**
 * A schema registry that speaks Confluent's API.
 *
 * Every method throws CellarstreamError: `REGISTRY_UNREACHABLE` where a later try may do, else
 * `REGISTRY_REFUSED` with what the registry said, or `TLS_REFUSED`.
 */
export interface Registry {
  /**
   * The id of the schema under the subject, where it is registered unless it's there already. The
   * subject is made FULL_TRANSITIVE first. A schema is sent once, however often it is asked for; of
   * one subject one at a time.
   */
  register(subject: string, schema: RecordSchema): Promise<number>;
  /** The newest version; undefined when there is none. */
  latest(subject: string): Promise<RegisteredSchema | undefined>;
  /** The schema that messages name by this id. Remembered: an id never changes its meaning. */
  schemaById(id: number): Promise<RecordSchema>;
  /** Whether the subject would take the schema as its next version. */
  compatible(subject: string, schema: RecordSchema): Promise<boolean>;
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

  const send = async (subject: string, schema: string): Promise<number> => {
    const config = `/config/${encodeURIComponent(subject)}`;
    const { body: current } = await ask('GET', config, subject);
    if (current.compatibilityLevel !== COMPATIBILITY) {
      const wanted = { compatibility: COMPATIBILITY };
      const { found } = await again(() => ask('PUT', config, subject, wanted));
      if (!found) throw refused(`${subject}: the schema registry can't make it ${COMPATIBILITY}`);
    }
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

  return { register, latest, schemaById, compatible, close };
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
