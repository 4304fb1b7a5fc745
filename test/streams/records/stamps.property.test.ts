import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { JsonNumber, stringifyJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { encodingDecoder, parsingDecoder } from '../../../src/streams/decode/decoder.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { Stamps } from '../../../src/streams/records/stamps.ts';
import { timeFormat } from '../../../src/description/time-format.ts';

const AT = Date.UTC(2026, 2, 5, 12, 34, 56);
const LIST = { updated: ['modified', 'inserted'], created: 'inserted' };
const TIMES = ['iso', 'epoch-s', 'epoch-ms', 'http-date'] as const;
const FORMATS = [...TIMES, { pattern: 'yyyy-MM-dd.HH:mm:ss', zone: 'UTC' } as const].map(
  (times) => [typeof times === 'string' ? times : 'a pattern', timeFormat(times)] as const,
);

describe.each(FORMATS)('stamps in %s', (name, format) => {
  const stamps = new Stamps(LIST, format);
  const at = (ms: number) =>
    name.startsWith('epoch') ? Number(format.write(ms)) : format.write(ms);

  it('are those of the first field that has a time', () => {
    const both = { id: 1, modified: at(AT + 5_000), inserted: at(AT) };
    expect([stamps.updatedAt(both), stamps.createdAt(both)]).toEqual([AT + 5_000, AT]);
    const never = { ...both, modified: null };
    expect([stamps.updatedAt(never), stamps.createdAt(never)]).toEqual([AT, AT]);
    const invalid = { ...both, modified: 'soon' };
    expect(stamps.updatedAt(invalid)).toBe(AT);
    const timeless = { id: 1, updated_at: at(AT), created_at: at(AT) };
    expect([stamps.updatedAt(timeless), stamps.createdAt(timeless)]).toEqual([null, null]);
    expect([stamps.updatedAt([both]), stamps.createdAt(null)]).toEqual([null, null]);
  });

  it('are the same from bytes and from parsed JSON', () => {
    const value = fc.oneof(
      { weight: 5, arbitrary: fc.integer({ min: 0, max: 4e12 }).map((ms): JsonValue => at(ms)) },
      fc.integer({ min: 0, max: 4e12 }).map((ms): JsonValue => format.write(ms)),
      fc.constantFrom<JsonValue>(null, '', 'soon', true, 0, -7, 1.5, 1e300, [], {}, { at: AT }),
      fc.constantFrom<JsonValue>(
        '2026-03-05',
        '2026-03-05 12:34',
        '-12.5',
        ['2026-03-05'],
        '\ud800',
      ),
      fc.constant(new JsonNumber('12345678901234567890')),
    );
    const shown = fc.option(value, { nil: undefined });
    let times = 0;
    fc.assert(
      fc.property(
        fc.array(fc.tuple(shown, shown), { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(shown, shown), { maxLength: 4 }),
        (first, later) => {
          const recordOf = ([modified, inserted]: (JsonValue | undefined)[], id: number) => ({
            id,
            ...(modified !== undefined && { modified }),
            ...(inserted !== undefined && { inserted }),
          });
          const records: JsonObject[] = [...first, ...later].map(recordOf);
          const schema = growSchema(undefined, records.slice(0, first.length), {
            resource: 'shop',
            keyFields: ['id'],
          });
          const codec = new RecordCodec(schema);
          const keyFields = ['id'];
          const keyOf = keyOfFields(keyFields);
          const parse = parsingDecoder(keyOf, stamps);
          const encode = encodingDecoder(
            {
              ...{ keyFields, keyOf, stamps },
              encode: (page, from, wanted) => {
                let isLacking = false;
                const read = codec.transcode(page, from, wanted, () => (isLacking = true));
                return isLacking || !read ? undefined : { ...read, codec };
              },
            },
            parse,
          );
          for (const record of records) {
            const page = new Body(Buffer.from(stringifyJson(record)));
            const [parsed] = parse(page, 0).values;
            const [encoded] = encode(page, 0).values;
            const { updatedAt, createdAt } = encoded!;
            expect([updatedAt, createdAt]).toEqual([parsed!.updatedAt, parsed!.createdAt]);
            times += Number(updatedAt !== null);
          }
        },
      ),
      { seed: 1, numRuns: 200 },
    );
    expect(times).toBeGreaterThan(200);
  });
});

it('a list without names of stamps has none, whatever its records are', () => {
  const none = new Stamps({ updated: [] });
  const record = { id: 1, updated_at: '2026-03-05T12:00:00Z', created_at: '2026-03-05T12:00:00Z' };
  const page = new Body(Buffer.from(JSON.stringify(record)));
  const [read] = parsingDecoder(keyOfFields(['id']), none)(page, 0).values;
  expect([read!.updatedAt, read!.createdAt]).toEqual([null, null]);
  expect(none.wanted).toEqual({ values: [], instants: [] });
  expect(none.updatedText(record)).toBe(none.updatedText({}));
});
