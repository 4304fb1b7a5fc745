import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asBuffer, AvroOutput } from '../../../src/schemas/avro/avro-output.ts';

/** What avsc writes for a value of a type. */
const asAvsc = (type: avro.Schema, value: unknown): Buffer =>
  avro.Type.forSchema(type).toBuffer(value);

/** What an output has after some writing; in hex, for a failure that can be read. */
function written(write: (out: AvroOutput) => void): string {
  const out = new AvroOutput();
  write(out);
  return out.take().toString('hex');
}

/** Where the number of bytes changes, where shifts stop to do, and the ends of the range. */
const EDGES = [
  ...[0, 6, 7, 13, 14, 20, 21, 27, 28, 30, 31, 32, 34, 35, 41, 42, 48, 49, 51, 52].map(
    (n) => 2 ** n,
  ),
  2 ** 53 - 2,
];
const LONGS = EDGES.flatMap((edge) => [
  edge - 1,
  edge,
  edge + 1,
  -edge - 1,
  -edge,
  1 - edge,
]).filter((value) => value >= -(2 ** 52) && value <= 2 ** 53 - 2);

describe('AvroOutput', () => {
  it('writes longs as avsc does, over all of their range', () => {
    expect(LONGS).toContain(-(2 ** 52));
    expect(LONGS).toContain(2 ** 53 - 2);
    for (const value of LONGS) {
      expect([value, written((out) => out.long(value))]).toEqual([
        value,
        asAvsc('long', value).toString('hex'),
      ]);
    }
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 52), max: 2 ** 53 - 2 }), (value) => {
        expect(written((out) => out.long(value))).toBe(asAvsc('long', value).toString('hex'));
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it('writes doubles, booleans and bytes as avsc does', () => {
    for (const value of [0, 1.5, -0.1, 5e-324, Number.MAX_VALUE, -Infinity, 2 ** 53]) {
      expect(written((out) => out.double(value))).toBe(asAvsc('double', value).toString('hex'));
    }
    for (const value of [false, true]) {
      expect(written((out) => out.byte(Number(value)))).toBe(
        asAvsc('boolean', value).toString('hex'),
      );
    }
    for (const length of [0, 1, 63, 64, 20_000]) {
      const value = Buffer.alloc(length, 'bytes');
      expect(written((out) => out.bytes(value))).toBe(asAvsc('bytes', value).toString('hex'));
      expect(written((out) => out.raw(value))).toBe(value.toString('hex'));
    }
  });

  it.each(['a', 'é', '€', '𝄞', '\0'])(
    'writes strings as avsc does, short and long ones: %j',
    (unit) => {
      for (let length = 0; length <= 70; length++) {
        // The last ones alone are not ASCII: then a short text has been begun in vain.
        for (const text of [unit.repeat(length), 'x'.repeat(length) + unit]) {
          const hex = written((out) => expect(out.string(text)).toBe(true));
          expect(hex).toBe(asAvsc('string', text).toString('hex'));
        }
      }
    },
  );

  it.each([
    ['short', 'ab\ud800'],
    ['short, its other half', '\udc00b'],
    ['long', `${'x'.repeat(100)}\udc00\ud800`],
  ])('refuses half a surrogate pair, and writes nothing of it: %s', (_, text) => {
    const out = new AvroOutput();
    out.long(7);
    expect([out.string(text), out.length]).toEqual([false, 1]);
    out.long(8);
    expect(out.take()).toEqual(Buffer.of(14, 16));
  });

  it('grows with what is written, and keeps what was', () => {
    const big = 'é'.repeat(30_000);
    const parts = ['first', big, 'x'.repeat(16_384), big + big, 'last'];
    const hex = written((out) => parts.forEach((part) => out.string(part)));
    const whole = Buffer.concat(parts.map((part) => asAvsc('string', part)));
    expect(hex).toBe(whole.toString('hex'));
  });

  it('grows at whatever place it is full', () => {
    for (let left = 0; left <= 12; left++) {
      const start = Buffer.alloc(16_384 - left, 1);
      const hex = written((out) => {
        out.raw(start);
        out.long(2 ** 52);
        out.double(1.5);
        out.string('sherry');
        out.byte(1);
      });
      const type = {
        type: 'record',
        name: 'R',
        fields: ['long', 'double', 'string', 'boolean'].map((each, k) => ({
          name: `f${k}`,
          type: each,
        })),
      } as avro.Schema;
      const rest = asAvsc(type, { f0: 2 ** 52, f1: 1.5, f2: 'sherry', f3: true });
      expect(hex).toBe(Buffer.concat([start, rest]).toString('hex'));
    }
  });

  it('takes back what was written since a length', () => {
    const out = new AvroOutput();
    out.string('kept');
    const { length } = out;
    out.string('taken back'.repeat(5_000));
    out.length = length;
    out.long(1);
    expect(out.take()).toEqual(Buffer.concat([asAvsc('string', 'kept'), Buffer.of(2)]));
  });

  it('gives each value its own bytes', () => {
    const out = new AvroOutput();
    out.string('one');
    const first = out.take();
    out.string('two');
    expect([out.take(), first]).toEqual([asAvsc('string', 'two'), asAvsc('string', 'one')]);
    expect(out.take()).toHaveLength(0);
  });
});

it('asBuffer views the same bytes', () => {
  const bytes = new Uint8Array([0, 1, 2, 3]).subarray(1, 3);

  expect(asBuffer(bytes)).toEqual(Buffer.of(1, 2));
  expect(asBuffer(bytes).buffer).toBe(bytes.buffer);
});
