import fc from 'fast-check';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { oddRecords } from './odd-records.ts';

export const RESOURCE = { resource: 'wine-clubs', keyFields: ['id'] };

/** A page, and the schema that holds it. */
export interface Step {
  readonly page: readonly JsonObject[];
  readonly schema: RecordSchema;
}

/**
 * What arrives from an API that nobody has described, and goes on changing: pages one after the
 * other, each with the schema grown by it. First comes anything, then what suits the schema so far
 * (or nearly: see `oddRecords`) and members that are new, at any depth.
 */
export function steps(start: RecordSchema | undefined, count: number): fc.Arbitrary<Step[]> {
  const page = (schema: RecordSchema | undefined) => {
    const records = schema ? fc.oneof(oddRecords(schema), grafted(schema)) : RECORD;
    return fc.array(records, { minLength: 1, maxLength: start ? 3 : 6 });
  };
  const after = (schema: RecordSchema | undefined): fc.Arbitrary<Step> =>
    page(schema).map((records) => ({
      page: records,
      schema: growSchema(schema, records, RESOURCE),
    }));
  let all = after(start).map((step) => [step]);
  for (let n = 1; n < count; n++) {
    all = all.chain((done) => after(done.at(-1)!.schema).map((step) => [...done, step]));
  }
  return all;
}

/** A record that suits the schema, with one of no schema laid over it. */
function grafted(schema: RecordSchema): fc.Arbitrary<JsonObject> {
  return fc
    .tuple(oddRecords(schema), RECORD, fc.nat())
    .map(([known, stranger, pick]) => overlaid(known, stranger, pick) as JsonObject);
}

/** Descends into one object of the value, if it can, and adds the members of the other there. */
function overlaid(value: JsonValue, members: JsonObject, pick: number): JsonValue {
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value;
  const entries = Object.entries(value as JsonObject);
  const parts = entries.filter(([, item]) => typeof item === 'object' && item !== null);
  const part = parts[pick % (parts.length + 1)];
  if (part) part[1] = overlaid(part[1], members, pick >> 2);
  if (Array.isArray(value)) return entries.map(([, item]) => item);
  return Object.fromEntries(part ? entries : [...entries, ...Object.entries(members)]);
}

const KEYS = [
  ...['id', 'name', 'a b', 'a.b', 'a_b', 'A_B', 'été', '名', '姓', '2nd', '', '_', 'a/b', '~'],
  ...['nulls', 'unmapped', '__proto__', 'constructor', 'toString', 'Value', '\ud800', 'parts'],
  'x'.repeat(201),
];

const times = fc.integer({ min: 0, max: 2e12 }).map((ms) => new Date(ms).toISOString());

const SCALARS: readonly fc.Arbitrary<JsonValue>[] = [
  times,
  times.map((time) => time.slice(0, 10)),
  fc.constantFrom('2024-05-01T12:00:00Z', '2024-05-01T12:00:00.5+02:00', '2024-02-30', '\ud800'),
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom<JsonValue>(-0, 2 ** 53, new JsonNumber('12345678901234567890')),
  fc.boolean(),
  fc.constant(null),
];

/** Any record. A key has the same type more often than not. */
export const RECORD: fc.Arbitrary<JsonObject> = fc.letrec<{ value: JsonValue; object: JsonObject }>(
  (tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      ...SCALARS,
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc
      .array(
        fc
          .nat(KEYS.length - 1)
          .chain((at) =>
            fc.tuple(
              fc.constant(KEYS[at]!),
              fc.oneof(
                { weight: 3, arbitrary: SCALARS[at % SCALARS.length]! },
                { weight: 2, arbitrary: tie('value') },
              ),
            ),
          ),
        { maxLength: 6 },
      )
      .map((entries) => Object.fromEntries(entries)),
  }),
).object;
