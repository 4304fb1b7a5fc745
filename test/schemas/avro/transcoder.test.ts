import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { orderSchema } from '../../../src/description/wine/order.ts';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { WINDOW_BYTES } from '../../../src/schemas/avro/transcoder/layout.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { stringifyJson } from '../../../src/schemas/json/json.ts';
import { parsedElement } from '../../../src/schemas/json/json-bytes.ts';
import { everyKind, imageSchema, nullable } from './every-type.ts';
import { oddRecords } from './odd-records.ts';
import { scaled } from '../../support/scale.ts';

const NONE = { values: [], instants: [] };

/** Records side by side, as a page has them. */
function pageOf(records: readonly JsonObject[]) {
  const page = Buffer.from(`[${records.map((record) => stringifyJson(record)).join(',')}]`);
  const places: number[] = [];
  for (let at = 1; at < page.length; at = parsedElement(page, at).end + 1) places.push(at);
  return { page, places };
}

/** An image from bytes, and the one of the record once it is parsed. */
function both(codec: RecordCodec, page: Buffer, at: number) {
  const { value, end } = parsedElement(page, at);
  const read = codec.transcode(page, at, NONE)!;
  return {
    read: { end: read.end, image: read.image.toString('hex') },
    parsed: { end, image: codec.encode(value as JsonObject).toString('hex') },
  };
}

/** Of what was parsed, how many texts begin with a brace: whole records, and parts of them. */
function objectsParsed(work: () => void): number {
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  work();
  return parse.mock.calls.filter(([text]) => text.startsWith('{')).length;
}

const wide = (count: number): RecordSchema =>
  imageSchema(Object.fromEntries(Array.from({ length: count }, (_, nth) => [`f${nth}`, 'long'])));

describe('what the transcoder holds at once', () => {
  const orders = new RecordCodec(orderSchema);
  const kinds = new RecordCodec(everyKind);

  it('goes on where the window ends, in two pages by turns, as if it had no end', () => {
    const [seed, numRuns] = [1, scaled(1, 10)];
    const pages = fc.tuple(
      fc.array(oddRecords(orderSchema), { minLength: 150, maxLength: 150 }),
      fc.array(oddRecords(everyKind), { minLength: 400, maxLength: 400 }),
    );
    let bytes = 0;
    fc.assert(
      fc.property(pages, ([some, others]) => {
        const one = pageOf(some);
        const other = pageOf(others);
        bytes += one.page.length;
        for (const [nth, place] of other.places.entries()) {
          const first = one.places[nth];
          if (first !== undefined) {
            const { read, parsed } = both(orders, one.page, first);
            expect(read).toEqual(parsed);
          }
          const { read, parsed } = both(kinds, other.page, place);
          expect(read).toEqual(parsed);
        }
      }),
      { seed, numRuns },
    );
    expect(bytes).toBeGreaterThan(numRuns * WINDOW_BYTES);
  });

  it.each([
    ['about as long as the window', WINDOW_BYTES],
    ['longer than it', 3 * WINDOW_BYTES],
    ['a third of it', Math.round(WINDOW_BYTES / 3)],
  ])('reads records that are %s', (_, length) => {
    const sizes = [-70, -1, 0, 1, 70].map((more) => length + more);
    const records = sizes.map((size, nth) => ({ count: nth, label: 'x'.repeat(size), flag: true }));
    const { page, places } = pageOf(records);
    for (const at of places) {
      const { read, parsed } = both(kinds, page, at);
      expect(read).toEqual(parsed);
    }
  });

  it('parses none that is in the window whole, once it begins there', () => {
    const records = Array.from({ length: 30 }, () => ({ label: 'x'.repeat(WINDOW_BYTES / 5) }));
    const { page, places } = pageOf(records);
    const parsed = objectsParsed(() => {
      for (const at of places) kinds.transcode(page, at, NONE);
    });
    expect(parsed).toBe(0);
  });

  it('reads what stands at the end of memory that others use', () => {
    const text = Buffer.from('{"count":1,"label":"a"}');
    const behind = Buffer.from('{"count":2,"label":"what another page has left there"}');
    kinds.transcode(behind, 0, NONE);
    for (let end = 1; end < text.length; end++) {
      const cut = Buffer.concat([text.subarray(0, end), behind.subarray(end)]).subarray(0, end);
      expect(() => kinds.transcode(cut, 0, NONE)).toThrow(SyntaxError);
    }
    expect(kinds.transcode(text, 0, NONE)!.image).toEqual(kinds.encode({ count: 1, label: 'a' }));
  });

  it.each([
    ['more nulls than notes have room for', { parts: Array.from({ length: 5_000 }, () => null) }],
    ['an image that has no room', { parts: Array.from({ length: 70_000 }, () => ({})) }],
    [
      'an image that has none once it is put in order',
      { label: 'x'.repeat(70_000), flag: true, small: 1 },
    ],
  ])('leaves %s to the parser', (_, record) => {
    const { page, places } = pageOf([record, { count: 7 }]);
    for (const at of places) {
      const { read, parsed } = both(kinds, page, at);
      expect(read).toEqual(parsed);
    }
  });

  it('reads records of so many fields as there is room for; of more they are parsed', () => {
    for (const [count, most] of [
      [1_000, 0],
      [5_000, 1],
    ] as const) {
      const codec = new RecordCodec(wide(count));
      const record = Object.fromEntries([
        ['f7', 1],
        [`f${count - 1}`, 2],
        ['f3', 3],
      ]);
      const page = Buffer.from(JSON.stringify(record));
      const parsed = objectsParsed(() => {
        const { image, fields } = codec.transcode(page, 0, { values: ['f3'], instants: [] })!;
        expect(image).toEqual(codec.encode(record));
        expect(fields).toMatchObject({ f3: 3 });
      });
      expect(parsed).toBe(most);
    }
  });
});

describe('what the transcoder leaves out', () => {
  it('fills in what is odd in fields and items that change their order', () => {
    const codec = new RecordCodec(
      imageSchema({
        a: 'string',
        b: {
          type: 'array',
          items: {
            type: 'record',
            name: 'Items',
            fields: [nullable('c', 'long'), nullable('d', 'string'), nullable('e', 'double')],
          },
        },
        f: ['json', 'string'],
      }),
    );
    const items = Array.from({ length: 70 }, (_, nth) => `{"e":1e${nth},"d":"\\n${nth}","c":-0}`);
    const page = Buffer.from(`{"f":{"x":[1]},"b":[${items.join(',')},null,7],"a":"\\u0062"}`);
    const { read, parsed } = both(codec, page, 0);
    expect(read).toEqual(parsed);
  });
});
