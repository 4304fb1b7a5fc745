import type { AvroOutput } from './avro-output.ts';

/** Avro's `decimal`: a whole number of `10^-scale`, big-endian two's complement, no byte too many. */

/** Numbers to bytes and back, for one precision and scale. */
export interface DecimalFormat {
  /** Writes the bytes that rebuild exactly this number; false where none do, and nothing was written. */
  write(value: number, out: AvroOutput): boolean;
  /** The number nearest to the decimal. */
  decode(bytes: Uint8Array): number;
}

/** Most digits that 8 bytes hold for sure. */
const MAX_PRECISION = 18;

/** Up to 15 digits every decimal is a double of its own, so that arithmetic on doubles will do. */
const MAX_EXACT = 1e15;

/** @throws TypeError for a precision above 18, or a scale that isn't 0 to the precision. */
export function decimalFormat(precision: number, scale: number): DecimalFormat {
  if (!(precision >= 1 && precision <= MAX_PRECISION && scale >= 0 && scale <= precision)) {
    throw new TypeError(`decimal(${precision},${scale}): precision 1 to 18, scale 0 to precision`);
  }
  const unit = 10 ** scale;
  const limit = 10 ** precision;

  const write = (value: number, out: AvroOutput): boolean => {
    const unscaled = Math.round(value * unit);
    if (Math.abs(unscaled) > MAX_EXACT) return writeDigits(value, out);
    if (unscaled / unit !== value || Object.is(value, -0)) return false;
    if (Math.abs(unscaled) >= limit) return false;
    writeInteger(unscaled, out);
    return true;
  };

  /** The slow way, for what is beyond arithmetic: by the digits of the shortest text. */
  const writeDigits = (value: number, out: AvroOutput): boolean => {
    const [whole = '', fraction = ''] = String(value).split('.');
    if (!/^-?\d+$/.test(whole) || fraction.length > scale) return false;
    const unscaled = BigInt(whole + fraction.padEnd(scale, '0'));
    if (whole.replace('-', '').length > precision - scale) return false;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigInt64BE(unscaled);
    let start = 0; // a leading byte goes that only repeats the sign of the next
    while (start < 7 && bytes.readInt8(start) === bytes.readInt8(start + 1) >> 7) start++;
    out.bytes(bytes.subarray(start));
    return true;
  };

  const decode = (bytes: Uint8Array): number => {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length <= 6) return bytes.length === 0 ? 0 : buffer.readIntBE(0, bytes.length) / unit;
    const unscaled = BigInt.asIntN(bytes.length * 8, BigInt(`0x${buffer.toString('hex')}`));
    const digits = String(unscaled)
      .replace('-', '')
      .padStart(scale + 1, '0');
    const split = digits.length - scale;
    return Number(`${unscaled < 0n ? '-' : ''}${digits.slice(0, split)}.${digits.slice(split)}`);
  };

  return { write, decode };
}

/** Writes the fewest bytes of two's complement that hold an integer below 2^53. */
function writeInteger(integer: number, out: AvroOutput): void {
  const magnitude = integer < 0 ? -integer - 1 : integer;
  let length = 1;
  let limit = 0x80;
  for (; magnitude >= limit; limit *= 0x100) length++;
  out.long(length);
  for (let unit = limit / 0x80; unit >= 1; unit /= 0x100) out.byte(Math.floor(integer / unit));
}
