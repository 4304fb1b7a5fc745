import { describe, expect, it } from 'vitest';
import type { ImageCodec } from '../../../src/streams/diff/change.ts';
import { FreshRecord, freshReader } from '../../../src/streams/records/fresh-record.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { encodeParsed } from '../../support/encode-parsed.ts';
import { jsonOf, keyIn, updatedAtIn } from '../../../src/streams/records/sent-record.ts';

const values: ImageCodec = {
  encode: ({ id }) => Buffer.from(`image of ${JSON.stringify(id)}`),
  decode: () => ({}),
};
/** Has no field for what is called `more`. */
const encode = encodeParsed((record) =>
  'more' in record ? undefined : { image: values.encode(record), values },
);

const read = (text: string, at = 0) =>
  freshReader({ keyFields: ['id'], keyOf: keyOfFields(['id']), encode })(Buffer.from(text), at);

describe('freshReader', () => {
  it('leaves of a record its image, its key, its times and its bytes', () => {
    const text =
      '{"id":7,"name":"Grüner","created_at":"2026-03-01","updated_at":"2026-03-05T12:00:00Z"}';
    const { value, end } = read(`[${text},{"id":8}]`, 1);
    expect(end).toBe(1 + Buffer.byteLength(text));
    expect(value).toBeInstanceOf(FreshRecord);
    expect(value).toMatchObject({
      key: '7',
      image: Buffer.from('image of 7'),
      values,
      createdAt: Date.UTC(2026, 2, 1),
      updatedAt: Date.UTC(2026, 2, 5, 12),
      text: undefined,
      isNew: undefined,
    });
    expect(jsonOf(value)).toEqual(JSON.parse(text));
    expect([keyIn(value, () => 'not asked'), updatedAtIn(value)]).toEqual([
      '7',
      Date.UTC(2026, 2, 5, 12),
    ]);
  });

  it.each([
    ['a record that the schema has to grow for', '{"id":7,"more":1}'],
    ['a record without a key', '{"id":null}'],
    ['a number', '7'],
    ['a text', '"id"'],
    ['an array', '[{"id":7}]'],
    ['null', 'null'],
  ])('parses %s', (_, text) => {
    expect(read(text)).toEqual({ value: JSON.parse(text) as unknown, end: text.length });
  });

  it.each(['{"id":7', '{"id":7,}', '', ']'])('throws a SyntaxError at %j', (text) => {
    expect(() => read(text)).toThrow(SyntaxError);
  });
});
