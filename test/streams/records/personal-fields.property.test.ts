import fc from 'fast-check';
import { from, lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { deadLetterCodec } from '../../../src/schemas/events/own-records.ts';
import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { isJsonObject, stringifyJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { unframe } from '../../../src/schemas/registry/wire.ts';
import { deadLetterMessages } from '../../../src/pipeline/publish/dead-letters.ts';
import { changeMessages } from '../../../src/pipeline/publish/messages.ts';
import { diff } from '../../../src/streams/diff/diff.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import { rejectDigest, keyRecords } from '../../../src/streams/records/records.ts';
import { withHiddenFields } from '../../../src/streams/diff/change.ts';
import { personalFields, HIDING_METHODS } from '../../../src/streams/records/personal-fields.ts';
import type { PersonalField } from '../../../src/streams/records/personal-fields.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { scaled } from '../../support/scale.ts';

const PATHS = ['email', 'who.name', 'who', 'cards.four', 'cards', 'who.cards.four', 'deep.er.in'];
const NAMES = ['email', 'who', 'name', 'cards', 'four', 'deep', 'er', 'in', 'other', '_proto'];

/** Anything, its leaves to be planted. */
const { tree: TREE } = fc.letrec<{ tree: JsonValue; object: JsonValue }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<JsonValue>('text', 1, null, true),
    tie('object'),
    fc.array(tie('tree'), { maxLength: 3 }),
  ),
  object: fc.dictionary(fc.constantFrom(...NAMES), tie('tree'), { maxKeys: 5 }),
}));
const RECORD = fc.dictionary(fc.constantFrom(...NAMES), TREE, { minKeys: 1, maxKeys: 6 });
const FIELDS = fc.uniqueArray(
  fc.record({
    path: fc.constantFrom(...PATHS.map((path) => path.split('.'))),
    method: fc.constantFrom(...HIDING_METHODS),
  }),
  { minLength: 1, maxLength: 4, selector: ({ path }) => path.join() },
);

/** The same with a value of its own at each leaf, as no other text has it. */
function planted(value: JsonValue, count: { leaves: number }): JsonValue {
  if (Array.isArray(value)) return value.map((each) => planted(each, count));
  if (isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, planted(v, count)]));
  }
  if (value === 'text') return `planted-${1_000_000 + count.leaves++}`;
  return typeof value === 'number' ? 7_000_000 + count.leaves++ : value;
}

/** What a field's path leads to: the leaves at its end, and a leaf that stands in its way. */
function leavesAt(value: JsonValue | undefined, path: readonly string[]): string[] {
  if (value === undefined || value === null || typeof value === 'boolean') return [];
  if (Array.isArray(value)) return value.flatMap((each) => leavesAt(each, path));
  if (!isJsonObject(value)) return [stringifyJson(value).replaceAll('"', '')];
  const [name, ...rest] = path;
  if (name === undefined) return Object.values(value).flatMap((each) => leavesAt(each, []));
  return leavesAt(value[name], rest);
}

const keyOf = keyOfFields(['id']);
const origin = { account: 'a', resource: 'customers', prefix: 'wine', version: '1' };
const at = {
  to: { topic: 't', schemaId: 1 },
  resource: 'customers',
  offset: 0,
  now: 1,
  maxBytes: 800_000,
};

/** All that comes of elements of data: events and dead letters as bytes and as JSON, images, digests. */
async function outcome(
  data: readonly JsonValue[],
  stored: readonly JsonObject[],
  fields: readonly PersonalField[],
): Promise<string> {
  const personal = personalFields(fields, () => 'a key that nobody guesses');
  const { keyed, rejected } = keyRecords(data.map(personal.hide), keyOf);
  const all = [...keyed.map(({ json }) => json), ...stored];
  const codec = createEnvelopeCodec(
    growSchema(undefined, all, { resource: 'customers', keyFields: ['id'] }),
    'customers',
  );
  const images = new Map(stored.map((record) => [keyOf(record)!, codec.values.encode(record)]));
  const records = keyed.filter(({ key }) => key !== 'gone');
  const differences = await lastValueFrom(
    from([{ records, gone: ['gone'] }]).pipe(diff({ codec: codec.values, images }), toArray()),
  );
  const again = [...images].map(([key, image]): Change => {
    const record = codec.values.decode(image);
    return {
      key,
      op: 'r',
      before: record,
      after: record,
      images: { before: image, after: image },
      changed: [],
      updatedAt: null,
    };
  });
  const changes = [...differences.flatMap((each) => each.changes), ...again].map((change) =>
    withHiddenFields(change, codec.values, personal),
  );
  const seen: (string | Buffer)[] = rejected.map((each) => rejectDigest(each));
  for (const change of changes) {
    seen.push(change.images.before ?? '', change.images.after ?? '');
    for (const { key, value } of changeMessages(change, 1, { to: at.to, codec, origin, now: 1 })) {
      seen.push(key ?? '', value ?? '');
      const event = value && codec.decode(unframe(value).payload);
      if (event) seen.push(stringifyJson([event.before, event.after, ...event.changed]));
    }
  }
  for (const { value } of rejected.flatMap((each) => deadLetterMessages(each, at))) {
    seen.push(value!, deadLetterCodec.decode(unframe(value!).payload).raw);
  }
  return seen.map((each) => each.toString('utf8')).join('\n');
}

describe('whatever the API sends, and whatever was stored', () => {
  it('no value of a named field is in an event, an image or a dead letter', async () => {
    const ids = fc.constantFrom<JsonValue>('a', 'b', 'gone', null, 3);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof({ weight: 5, arbitrary: fc.tuple(ids, RECORD) }, TREE), { maxLength: 4 }),
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'gone'), RECORD), { maxLength: 3 }),
        FIELDS,
        async (sent, kept, fields) => {
          const count = { leaves: 0 };
          const plant = (each: JsonValue | [JsonValue, JsonObject]) => {
            if (!Array.isArray(each) || each.length !== 2) return planted(each, count);
            const [id, record] = each;
            return isJsonObject(record)
              ? { id: id!, ...(planted(record, count) as JsonObject) }
              : planted(each, count);
          };
          const data = sent.map(plant);
          const stored = [
            ...new Map(
              kept.map(([id, record]) => [id, plant([id, record]) as JsonObject]),
            ).values(),
          ];
          const text = await outcome(data, stored, fields);

          const leaves = (paths: readonly (readonly string[])[]) =>
            new Set(
              paths.flatMap((path) => [...data, ...stored].flatMap((each) => leavesAt(each, path))),
            );
          const personal = leaves(fields.map(({ path }) => path));
          const shown = (text.match(/\b(planted-)?\d{7}\b/g) ?? []).filter((leaf) =>
            personal.has(leaf),
          );
          expect(shown).toEqual([]);
        },
      ),
      { numRuns: scaled(80, 400) },
    );
  });

  it('all else of a record is as it was', () => {
    fc.assert(
      fc.property(RECORD, FIELDS, (record, fields) => {
        const data = planted(record, { leaves: 0 }) as JsonObject;
        const { hide } = personalFields(fields, () => 'a key that nobody guesses');
        const all = leavesAt(data, []);
        const personal = new Set(fields.flatMap(({ path }) => leavesAt(data, path)));
        expect(leavesAt(hide(data), []).filter((leaf) => !/^(\*{3}|hmac-.*)$/.test(leaf))).toEqual(
          all.filter((leaf) => !personal.has(leaf)),
        );
      }),
    );
  });
});
