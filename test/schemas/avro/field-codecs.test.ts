import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AvroOutput } from '../../../src/schemas/avro/avro-output.ts';
import { decimalFormat } from '../../../src/schemas/avro/field-codecs.ts';

const money = decimalFormat(18, 4);

/** What is written, without its length; undefined where nothing is. */
function encode(format: ReturnType<typeof decimalFormat>, number: number): Buffer | undefined {
  const out = new AvroOutput();
  if (!format.write(number, out)) {
    expect(out).toHaveLength(0);
    return undefined;
  }
  const written = out.take();
  expect(written[0]).toBe((written.length - 1) * 2);
  return written.subarray(1);
}

describe('decimalFormat(18, 4)', () => {
  it.each([
    [0, '00'],
    [0.0001, '01'],
    [-0.0001, 'ff'],
    [0.0127, '7f'],
    [0.0128, '0080'],
    [-0.0128, '80'],
    [-0.0129, 'ff7f'],
    [19.99, '030cdc'],
    [1.005, '2742'],
    [900_719_925_474.0991, '1fffffffffffff'],
    [99_999_999_999_999, '0de0b6b3a763d8f0'],
    [-99_999_999_999_999, 'f21f494c589c2710'],
  ])('writes %d as Java does', (number, hex) => {
    expect(encode(money, number)?.toString('hex')).toBe(hex);
    expect(money.decode(Buffer.from(hex, 'hex'))).toBe(number);
  });

  it.each([0.00001, 1.23456, -0, 100_000_000_000_000, 1e21, 1e300, 5e-324, NaN, Infinity])(
    'does not hold %d',
    (number) => {
      expect(encode(money, number)).toBeUndefined();
    },
  );

  it('holds every amount of up to 4 decimals that a double tells apart', () => {
    const amounts = fc.bigInt({ min: -(10n ** 18n) + 1n, max: 10n ** 18n - 1n });
    const sizes = fc.bigInt({ min: 0n, max: 59n });
    fc.assert(
      fc.property(amounts, sizes, (amount, size) => {
        const number = Number(text(amount >> size));
        const bytes = encode(money, number);
        if (bytes === undefined) {
          // Only where the shortest text of the double has more digits than the format, or is -0.
          expect(`${number}`).toMatch(/^100000000000000$|^-100000000000000$|^-?0$/);
          return;
        }
        const unscaled = BigInt.asIntN(64, signed(bytes));
        expect(Number(text(unscaled))).toBe(number); // an independent reading of the bytes
        expect(money.decode(bytes)).toBe(number);
        expect(bytes).toHaveLength(fewestBytes(unscaled));
      }),
      { numRuns: 2_000 },
    );
  });

  it('never rebuilds another number', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: -1e15, max: 1e15 }), (number) => {
        const bytes = encode(money, number);
        if (bytes) expect(money.decode(bytes)).toBe(number);
      }),
      { numRuns: 2_000 },
    );
  });
});

it('refuses formats that 8 bytes do not hold', () => {
  expect(() => decimalFormat(19, 4)).toThrow(TypeError);
  expect(() => decimalFormat(4, 5)).toThrow(TypeError);
  expect(() => decimalFormat(0, 0)).toThrow(TypeError);
  expect(encode(decimalFormat(2, 0), 99)).toEqual(Buffer.of(99));
  expect(encode(decimalFormat(2, 0), 100)).toBeUndefined();
});

/** A whole number of ten-thousandths as decimal text. */
function text(unscaled: bigint): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(5, '0');
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -4)}.${digits.slice(-4)}`;
}

function signed(bytes: Buffer): bigint {
  const first = bytes.readInt8(0) < 0 ? -1n : 0n;
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), first);
}

function fewestBytes(value: bigint): number {
  let length = 1;
  while (BigInt.asIntN(length * 8, value) !== value) length++;
  return length;
}
