import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { Elements } from '../../../src/schemas/json/json-bytes.ts';
import type { ImageCodec, PayloadDigest } from '../../../src/streams/records/page-record.ts';
import {
  encodingDecoder,
  digestDecoder,
  parsingDecoder,
} from '../../../src/streams/decode/decoder.ts';
import type { RecordDecoder } from '../../../src/streams/decode/decoder.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import type { PagePart } from '../../../src/streams/records/page-records.ts';
import { encodeParsed } from '../../support/encode-parsed.ts';
import { WINE_STAMPS } from '../../support/records.ts';

const codec: ImageCodec = {
  encode: ({ id }) => Buffer.from(`image of ${JSON.stringify(id)}`),
  decode: () => ({}),
};
/** Has no field for what is called `more`. */
const encode = encodeParsed((record) =>
  'more' in record ? undefined : { image: codec.encode(record), codec },
);
const keyOf = keyOfFields(['id']);
const stamps = WINE_STAMPS;
const byEncoding = encodingDecoder(
  { keyFields: ['id'], keyOf, stamps, encode },
  parsingDecoder(keyOf, stamps),
);

/** What is decoded one by one. */
function one({ values: [value, ...others], end }: Elements<PagePart>) {
  if (!(value instanceof PageRecord) || others.length > 0) expect.fail('more than one');
  return { value, end };
}

const bodyOf = (text: string) => new Body(Buffer.from(text));

describe('encoding', () => {
  const read = (text: string, at = 0) => one(byEncoding(bodyOf(text), at));

  it('leaves of a record its image, its key, its times and its bytes', () => {
    const text =
      '{"id":7,"name":"Grüner","created_at":"2026-03-01","updated_at":"2026-03-05T12:00:00Z"}';
    const { value, end } = read(`[${text},{"id":8}]`, 1);
    expect(end).toBe(1 + Buffer.byteLength(text));
    expect(value.image).toEqual({ kind: 'encoded', bytes: Buffer.from('image of 7'), codec });
    expect([value.key, value.createdAt, value.updatedAt, value.digest]).toEqual([
      '7',
      Date.UTC(2026, 2, 1),
      Date.UTC(2026, 2, 5, 12),
      undefined,
    ]);
    expect(value.json).toEqual(JSON.parse(text));
  });

  it.each([
    ['a record that the schema has to grow for', '{"id":7,"more":1}', '7'],
    ['a record without a key', '{"id":null}', undefined],
    ['a number', '7', undefined],
    ['a text', '"id"', undefined],
    ['an array', '[{"id":7}]', undefined],
    ['null', 'null', undefined],
  ])('parses %s', (_, text, key) => {
    const { value, end } = read(text);
    expect([value.json, value.key, value.image, end]).toEqual([
      JSON.parse(text) as unknown,
      key,
      undefined,
      text.length,
    ]);
  });

  it.each(['{"id":7', '{"id":7,}', '', ']'])('throws a SyntaxError at %j', (text) => {
    expect(() => read(text)).toThrow(SyntaxError);
  });
});

/** A decoder, and what is kept by key: by itself it keeps nothing. */
function recognising(...keyFields: string[]) {
  const keyOf = keyOfFields(keyFields);
  return recognisingBy(parsingDecoder(keyOf, stamps), keyFields);
}

function recognisingBy(next: RecordDecoder, keyFields: readonly string[]) {
  const kept = new Map<string, PayloadDigest>();
  const keyOf = keyOfFields(keyFields);
  const known = (key: string) => kept.get(key);
  const decode = digestDecoder({ keyFields, keyOf, stamps, payloadDigestOf: known }, next);
  const read = (text: string, at = 0) => one(decode(bodyOf(text), at));
  /** Reads a record, and keeps its digest as if its image had been stored. */
  const keep = (text: string): PayloadDigest => {
    const { key, digest } = read(text).value;
    kept.set(key!, digest!);
    return digest!;
  };
  return { decode, kept, read, keep };
}

const isKnown = ({ image }: PageRecord) => image?.kind === 'published';

describe('matchingDigests', () => {
  it('knows a record by its bytes, wherever it stands in a page', () => {
    const { read, keep } = recognising('id');
    const text = '{"id":7,"name":"Grüner","updated_at":"2026-03-05T12:00:00Z"}';
    const kept = keep(text);
    expect(kept).toEqual({
      digest: expect.any(String) as string,
      length: Buffer.byteLength(text),
      updatedAt: Date.UTC(2026, 2, 5, 12),
    });
    expect(kept.digest).toHaveLength(16);
    for (const before of ['', '[', ' {"id":8}, ']) {
      for (const after of ['', ',', '}]', ' , {"id":9}']) {
        const at = Buffer.byteLength(before);
        const { value, end } = read(before + text + after, at);
        expect(value).toMatchObject({ key: '7', digest: kept, updatedAt: kept.updatedAt });
        expect(value.image).toEqual({ kind: 'published' });
        expect(end).toBe(at + Buffer.byteLength(text));
        expect(value.json).toEqual(JSON.parse(text));
      }
    }
  });

  it.each([
    ['one byte differs', '{"id":7,"a":1}', '{"id":7,"a":2}'],
    [
      'its last byte differs',
      `{"id":7,"a":"${'x'.repeat(500)}1"}`,
      `{"id":7,"a":"${'x'.repeat(500)}2"}`,
    ],
    ['its keys stand in another order', '{"id":7,"a":1}', '{"a":1,"id":7}'],
    ['there is white space', '{"id":7,"a":1}', '{"id":7, "a":1}'],
    ['it goes on', '{"id":7,"a":1}', '{"id":7,"a":1,"b":2}'],
    ['it is shorter', '{"id":7,"a":1}', '{"id":7}'],
    ['its key is another', '{"id":7,"a":1}', '{"id":8,"a":1}'],
    ['a number is written otherwise', '{"id":7,"a":1.5}', '{"id":7,"a":1.50}'],
    ['a letter is written otherwise', '{"id":7,"a":"é"}', '{"id":7,"a":"\\u00e9"}'],
  ])('parses a record anew when %s', (_, kept, sent) => {
    const { read, keep } = recognising('id');
    keep(kept);
    const { value, end } = read(`${sent},{"id":7,"a":1}`);
    expect([value.json, value.image, end]).toEqual([
      JSON.parse(sent),
      undefined,
      Buffer.byteLength(sent),
    ]);
    expect(value.digest).toMatchObject({ length: Buffer.byteLength(sent) });
  });

  it('encodes what it does not know, and tells its digest', () => {
    const { read, keep, kept } = recognisingBy(byEncoding, ['id']);
    const text = '{"id":7,"updated_at":"2026-03-05T12:00:00Z"}';
    const { value } = read(text);
    expect(value.key).toBe('7');
    expect(value.image).toEqual({ kind: 'encoded', bytes: Buffer.from('image of 7'), codec });
    expect(value.digest).toEqual(recognising('id').keep(text));
    kept.set('7', value.digest!);
    expect(isKnown(read(text).value)).toBe(true);

    const lacking = '{"id":8,"more":1}';
    expect(read(lacking).value.image).toBeUndefined();
    keep(lacking);
    expect(isKnown(read(lacking).value)).toBe(true);
    expect(read('{"id":null}').value.key).toBeUndefined();
  });

  it('parses a record whose bytes are those of another key', () => {
    const { kept, read, keep } = recognising('id');
    const text = '{"id":7,"a":1}';
    kept.set('8', keep(text));
    kept.delete('7');
    const { value } = read(text);
    expect([value.json, isKnown(value)]).toEqual([{ id: 7, a: 1 }, false]);
  });

  it.each([
    ['behind a nested object with such a field', '{"part":{"id":8},"id":7}'],
    ['behind a text that looks like it', '{"note":"the \\"id\\":8","id":7}'],
    ['behind a name that ends like it', '{"a\\"id":8,"id":7}'],
    ['spelt with an escape', '{"\\u0069d":7,"a":1}'],
    ['twice', '{"id":8,"id":7}'],
    ['with an escape in it', '{"id":"a\\u0062"}'],
    ['with a quote in it', '{"id":"a\\"b"}'],
    ['below zero', '{"id":-5}'],
    ['longer than what a double holds', '{"id":12345678901234567890}'],
    ['with a point', '{"id":7.0}'],
    ['with an exponent', '{"id":7e0}'],
  ])('says of a record what it would say without, its key %s', (_, text) => {
    const plain = recognising('id');
    const { value } = plain.read(text);
    const { read, keep } = recognising('id');
    keep('{"id":8}'); // what a wrong guess leads to
    keep(text);
    const again = read(`${text},{"id":8}`);
    expect([again.value.json, again.value.key]).toEqual([value.json, value.key]);
    expect(again.end).toBe(Buffer.byteLength(text));
  });

  it.each([
    ['a number', '{"a":[{"b":1}],"id":123456789012345}', '123456789012345'],
    ['zero', '{"id":0}', '0'],
    ['a text', '{"id":"W-é|"}', 'W-é|'],
    ['the last field', '{"a":"]}","id":7}', '7'],
    ['behind white space', '{"id" :\t 7 }', '7'],
    ['behind its name as a text', '{"a":"id","b":["id"],"id":7}', '7'],
    ['before a nested one', '{"id":7,"part":{"id":8}}', '7'],
  ])('knows a record whose key is %s', (_, text, key) => {
    const { read, keep } = recognising('id');
    keep(text);
    const { value } = read(text);
    expect([value.key, isKnown(value)]).toEqual([key, true]);
  });

  it('knows a record by several fields, in whatever order they come, and by none of them alone', () => {
    const { kept, read, keep } = recognising('club', 'member|id');
    const text = '{"member|id":"a|b","x":{"y":[1]},"club":3}';
    keep(text);
    expect([...kept.keys()]).toEqual(['3|a\\|b']);
    const { value } = read(text);
    expect([value.key, isKnown(value)]).toEqual(['3|a\\|b', true]);
    // The second field of the next record is no field of this one.
    expect(read('{"club":3},{"member|id":"a|b"}').value.json).toEqual({ club: 3 });
  });

  it.each([
    '',
    '0',
    '[1]',
    '"id"',
    'null',
    'true',
    '{}',
    '{"id":{"id":7}}',
    '{"id":[7]}',
    '{"id":""}',
  ])('gives what is no record to know as it is: %s', (text) => {
    const { read, keep } = recognising('id');
    keep('{"id":7}');
    if (text === '') return expect(() => read('{"id":7},', 9)).toThrow(SyntaxError);
    const { value, end } = read(`${text},{"id":7}`);
    expect([value.json, end]).toEqual([JSON.parse(text), text.length]);
    expect([value.key, value.updatedAt, isKnown(value)]).toEqual([undefined, null, false]);
  });

  it('refuses what is not JSON, though it begins like what is known', () => {
    const { read, keep } = recognising('id');
    keep('{"id":7}');
    for (const text of ['{"id":7', '{"id":007}', '{"id":7,}', '{"id":7]', '{"id":"7\n"}', '{"id":'])
      expect(() => read(text)).toThrow(SyntaxError);
  });

  it('looks no further than the page, whatever stands behind it in memory', () => {
    const { decode, kept, keep } = recognising('id');
    const text = '{"id":7,"a":"long"}';
    const known = keep(text);
    const memory = Buffer.from(text);
    for (let end = 0; end < text.length; end++) {
      expect(() => decode(new Body(memory.subarray(0, end)), 0)).toThrow(SyntaxError);
    }
    kept.set('7', { ...known, length: 2 ** 32 - 1 });
    const { value, end } = one(decode(new Body(memory), 0));
    expect([value.json, end]).toEqual([{ id: 7, a: 'long' }, text.length]);
  });

  it('looks once through the rest of a page in which no key is left', () => {
    const { decode, keep } = recognising('id');
    keep('{"id":7}');
    const page = Buffer.from(`{"id":7},${'{"no":1},'.repeat(50)}`);
    const body = new Body(page);
    const indexOf = vi.spyOn(page, 'indexOf');
    let at = 0;
    for (let k = 0; k <= 50; k++) {
      const { value, end } = one(decode(body, at));
      expect(isKnown(value)).toBe(k === 0);
      at = end + 1;
    }
    expect([at, indexOf.mock.calls.length]).toEqual([page.length, 2]);
    expect(isKnown(one(decode(bodyOf('{"id":7}'), 0)).value)).toBe(true);
  });

  it('parses a known record when somebody asks, once', () => {
    const { read, keep } = recognising('id');
    const text = '{"id":7,"a":[1,12345678901234567890]}';
    keep(text);
    const parse = vi.spyOn(JSON, 'parse');
    const { value } = read(text);
    expect([isKnown(value), value.key, value.updatedAt]).toEqual([true, '7', null]);
    expect(parse).not.toHaveBeenCalled();
    const record = value.json as JsonObject;
    expect(record.a).toEqual([1, new JsonNumber('12345678901234567890')]);
    const { length: calls } = parse.mock.calls;
    expect(value.json).toBe(record);
    expect(parse).toHaveBeenCalledTimes(calls);
    parse.mockRestore();
  });

  it('knows of a list that is read again exactly those whose bytes are the same', () => {
    const odd = fc.constantFrom<JsonValue>(0, -5, 'x', '"id":3', '}', null, [{ id: 3 }], { id: 2 });
    const plain = fc.constantFrom<JsonValue>(0, '"id":3', ']', [{ a: '}' }], { b: null });
    const id = fc.constantFrom<JsonValue>(1, 2, 3, 4, '5', 'é');
    const list = fc.uniqueArray(fc.record({ a: plain, id, b: odd }), {
      selector: (record) => record.id,
      maxLength: 6,
    });
    const changes = fc.array(fc.tuple(fc.nat(5), odd), { maxLength: 3 });
    let known = 0;
    fc.assert(
      fc.property(list, changes, fc.boolean(), (records, changed, turn) => {
        const { decode, keep } = recognising('id');
        const before = records.map((record) => JSON.stringify(record));
        before.forEach(keep);
        const now = records.map((record) => ({ ...record }));
        for (const [place, b] of changed) if (now[place]) now[place].b = b;
        const after = (turn ? now.reverse() : now).map((record) => JSON.stringify(record));
        const page = bodyOf(after.join(','));
        let at = 0;
        for (const text of after) {
          const { value, end } = one(decode(page, at));
          expect([isKnown(value), end]).toEqual([
            before.includes(text),
            at + Buffer.byteLength(text),
          ]);
          expect(value.json).toEqual(JSON.parse(text));
          known += Number(isKnown(value));
          at = end + 1;
        }
      }),
      { seed: 1, numRuns: 200 },
    );
    expect(known).toBeGreaterThan(200);
  });
});
