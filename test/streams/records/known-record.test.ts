import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { isJsonObject, JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { ImageCodec } from '../../../src/streams/diff/change.ts';
import { FreshRecord } from '../../../src/streams/records/fresh-record.ts';
import { KnownRecord, digestMatcher } from '../../../src/streams/records/known-record.ts';
import type { DigestMatcherOptions } from '../../../src/streams/records/known-record.ts';
import { jsonOf, keyIn, updatedAtIn } from '../../../src/streams/records/sent-record.ts';
import type { Sent, PayloadDigest } from '../../../src/streams/records/sent-record.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { encodeParsed } from '../../support/encode-parsed.ts';

/** A digestMatcher, and what is kept by key: by itself it keeps nothing. */
function recognising(...keyFields: string[]) {
  return recognisingBy({ keyFields });
}

function recognisingBy({ keyFields, ...more }: Pick<DigestMatcherOptions, 'keyFields' | 'encode'>) {
  const kept = new Map<string, PayloadDigest>();
  let state = 0;
  const keyOf = keyOfFields(keyFields);
  const texts = digestMatcher({
    keyFields,
    keyOf,
    known: (key) => kept.get(key),
    asOf: () => state,
    ...more,
  });
  const read = (text: string, at = 0) => texts.read(Buffer.from(text), at);
  /** Reads a record, and keeps its text as if its image had been stored. */
  const keep = (text: string): PayloadDigest => {
    const record = jsonOf(read(text).value) as JsonObject;
    const found = texts.textOf(record)!;
    kept.set(keyOf(record)!, found);
    return found;
  };
  return { texts, kept, read, keep, moveOn: () => (state += 1) };
}

const isKnown = (sent: Sent): sent is KnownRecord => sent instanceof KnownRecord;

describe('digestMatcher', () => {
  it('knows a record by its bytes, wherever it stands in a page', () => {
    const { texts, read, keep, moveOn } = recognising('id');
    const text = '{"id":7,"name":"Grüner","updated_at":"2026-03-05T12:00:00Z"}';
    const kept = keep(text);
    expect(kept).toEqual({
      digest: expect.any(String) as string,
      length: Buffer.byteLength(text),
      updatedAt: Date.UTC(2026, 2, 5, 12),
    });
    expect(kept.digest).toHaveLength(16);
    moveOn();
    for (const before of ['', '[', ' {"id":8}, ']) {
      for (const after of ['', ',', '}]', ' , {"id":9}']) {
        const at = Buffer.byteLength(before);
        const { value, end } = read(before + text + after, at);
        expect(value).toBeInstanceOf(KnownRecord);
        expect(value).toMatchObject({ key: '7', asOf: 1, isSame: true, text: kept });
        expect(end).toBe(at + Buffer.byteLength(text));
        expect(jsonOf(value)).toEqual(JSON.parse(text));
        expect(keyIn(value, () => 'not asked')).toBe('7');
        expect(updatedAtIn(value)).toBe(kept.updatedAt);
      }
    }
    expect(texts.textOf(jsonOf(read(text).value) as JsonObject)).toBeUndefined(); // kept already
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
    const { texts, read, keep } = recognising('id');
    keep(kept);
    const { value, end } = read(`${sent},{"id":7,"a":1}`);
    expect([value, end]).toEqual([JSON.parse(sent), Buffer.byteLength(sent)]);
    expect(texts.textOf(value as JsonObject)).toMatchObject({ length: Buffer.byteLength(sent) });
  });

  it('encodes what it does not know, and tells its text', () => {
    const values: ImageCodec = { encode: () => Buffer.from('image'), decode: () => ({}) };
    const encode = encodeParsed((record) =>
      record.more === undefined ? { image: values.encode(record), values } : undefined,
    );
    const { read, keep, kept } = recognisingBy({ keyFields: ['id'], encode });
    const text = '{"id":7,"updated_at":"2026-03-05T12:00:00Z"}';
    const { value } = read(text);
    expect(value).toBeInstanceOf(FreshRecord);
    const fresh = value as FreshRecord;
    expect(fresh).toMatchObject({ key: '7', image: Buffer.from('image'), values });
    expect(fresh.text).toEqual(recognising('id').keep(text));
    kept.set('7', fresh.text!);
    expect(read(text).value).toBeInstanceOf(KnownRecord);

    const lacking = '{"id":8,"more":1}';
    expect(read(lacking).value).toEqual(JSON.parse(lacking));
    keep(lacking);
    expect(read(lacking).value).toBeInstanceOf(KnownRecord);
    expect(read('{"id":null}').value).toEqual({ id: null });
  });

  it('parses a record whose bytes are those of another key', () => {
    const { kept, read, keep } = recognising('id');
    const text = '{"id":7,"a":1}';
    kept.set('8', keep(text));
    kept.delete('7');
    expect(read(text).value).toEqual({ id: 7, a: 1 });
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
    expect(jsonOf(again.value)).toEqual(value);
    expect(keyIn(again.value, keyOfFields(['id']))).toBe(keyIn(value, keyOfFields(['id'])));
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
    expect(read(text).value).toMatchObject({ key, isSame: true });
  });

  it('knows a record by several fields, in whatever order they come, and by none of them alone', () => {
    const { kept, read, keep } = recognising('club', 'member|id');
    const text = '{"member|id":"a|b","x":{"y":[1]},"club":3}';
    keep(text);
    expect([...kept.keys()]).toEqual(['3|a\\|b']);
    expect(read(text).value).toMatchObject({ key: '3|a\\|b', isSame: true });
    // The second field of the next record is no field of this one.
    expect(read('{"club":3},{"member|id":"a|b"}').value).toEqual({ club: 3 });
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
    const { texts, read, keep } = recognising('id');
    keep('{"id":7}');
    if (text === '') return expect(() => read('{"id":7},', 9)).toThrow(SyntaxError);
    const { value, end } = read(`${text},{"id":7}`);
    expect([value, end]).toEqual([JSON.parse(text), text.length]);
    expect(keyIn(value, keyOfFields(['id']))).toBeUndefined();
    expect(updatedAtIn(value)).toBeNull();
    if (isJsonObject(value as JsonValue)) expect(texts.textOf(value as JsonObject)).toBeDefined();
  });

  it('refuses what is not JSON, though it begins like what is known', () => {
    const { read, keep } = recognising('id');
    keep('{"id":7}');
    for (const text of ['{"id":7', '{"id":007}', '{"id":7,}', '{"id":7]', '{"id":"7\n"}', '{"id":'])
      expect(() => read(text)).toThrow(SyntaxError);
  });

  it('looks no further than the page, whatever stands behind it in memory', () => {
    const { texts, kept, keep } = recognising('id');
    const text = '{"id":7,"a":"long"}';
    const known = keep(text);
    const memory = Buffer.from(text);
    for (let end = 0; end < text.length; end++) {
      expect(() => texts.read(memory.subarray(0, end), 0)).toThrow(SyntaxError);
    }
    kept.set('7', { ...known, length: 2 ** 32 - 1 });
    expect(texts.read(memory, 0)).toEqual({ value: { id: 7, a: 'long' }, end: text.length });
  });

  it('looks once through the rest of a page in which no key is left', () => {
    const { texts, keep } = recognising('id');
    keep('{"id":7}');
    const page = Buffer.from(`{"id":7},${'{"no":1},'.repeat(50)}`);
    const indexOf = vi.spyOn(page, 'indexOf');
    let at = 0;
    for (let k = 0; k <= 50; k++) {
      const { value, end } = texts.read(page, at);
      expect(isKnown(value)).toBe(k === 0);
      at = end + 1;
    }
    expect([at, indexOf.mock.calls.length]).toEqual([page.length, 2]);
    expect(texts.read(Buffer.from('{"id":7}'), 0).value).toBeInstanceOf(KnownRecord);
  });

  it('parses a known record when somebody asks, once', () => {
    const { read, keep } = recognising('id');
    const text = '{"id":7,"a":[1,12345678901234567890]}';
    keep(text);
    const parse = vi.spyOn(JSON, 'parse');
    const { value } = read(text);
    expect([isKnown(value), keyIn(value, () => undefined), updatedAtIn(value)]).toEqual([
      true,
      '7',
      null,
    ]);
    expect(parse).not.toHaveBeenCalled();
    const { record } = value as KnownRecord;
    expect(record.a).toEqual([1, new JsonNumber('12345678901234567890')]);
    const { length: calls } = parse.mock.calls;
    expect(jsonOf(value)).toBe(record);
    expect(parse).toHaveBeenCalledTimes(calls);
    parse.mockRestore();
  });

  it('knows the text of what it has parsed itself, and of nothing else', () => {
    const { texts, read } = recognising('id');
    const { value } = read('{"id":7,"updated_at":"tomorrow"}');
    expect(texts.textOf(value as JsonObject)).toMatchObject({ length: 32, updatedAt: null });
    expect(texts.textOf({ ...(value as JsonObject) })).toBeUndefined();
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
        const { texts, keep } = recognising('id');
        const before = records.map((record) => JSON.stringify(record));
        before.forEach(keep);
        const now = records.map((record) => ({ ...record }));
        for (const [place, b] of changed) if (now[place]) now[place].b = b;
        const after = (turn ? now.reverse() : now).map((record) => JSON.stringify(record));
        const page = Buffer.from(after.join(','));
        let at = 0;
        for (const text of after) {
          const { value, end } = texts.read(page, at);
          expect([isKnown(value), end]).toEqual([
            before.includes(text),
            at + Buffer.byteLength(text),
          ]);
          expect(jsonOf(value)).toEqual(JSON.parse(text));
          known += Number(isKnown(value));
          at = end + 1;
        }
      }),
      { seed: 1, numRuns: 200 },
    );
    expect(known).toBeGreaterThan(200);
  });
});
