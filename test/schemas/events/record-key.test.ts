import avro from 'avsc';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  avroKey,
  joinKey,
  keyText,
  recordKeySchema,
} from '../../../src/schemas/events/record-key.ts';
import { unframe } from '../../../src/schemas/registry/wire.ts';

const parts = fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), {
  minLength: 1,
  maxLength: 4,
});

it('has each key field as a string, read by any Avro library', () => {
  fc.assert(
    fc.property(parts, (values) => {
      const fields = values.map((_, nth) => `part ${nth}`);
      const type = avro.Type.forSchema(recordKeySchema('wine-clubs', fields) as avro.Schema);
      const bytes = avroKey(7, joinKey(values), fields.length);
      const { schemaId, payload } = unframe(bytes);
      expect(schemaId).toBe(7);
      expect(Object.values(type.fromBuffer(payload) as object)).toEqual(values);
      expect(keyText(bytes)).toBe(joinKey(values));
    }),
  );
});

it('is read as text where it is text, also with a first byte of 0', () => {
  for (const text of ['100234', 'a|b', '', '\0', '\0\0\0\0\0', '\0 a key']) {
    expect(keyText(Buffer.from(text))).toBe(text);
  }
});

it('is a record of a namespace of the list, with names that Avro allows', () => {
  expect(recordKeySchema('wine-clubs', ['club id', 'club_id'])).toMatchObject({
    name: 'Key',
    namespace: 'cellarstream.wine_clubs',
    fields: [{ name: 'club_id' }, { name: expect.stringMatching(/^club_id_[0-9a-f]{8}$/) }],
  });
});
