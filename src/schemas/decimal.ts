/** Avro's `decimal`: a whole number of `10^-scale`, big-endian two's complement, no byte too many. */

/** Numbers to bytes and back, for one precision and scale. */
export interface DecimalFormat {
  /** The bytes that rebuild exactly this number, or undefined where none do. */
  encode(value: number): Buffer | undefined;
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

  const encode = (value: number): Buffer | undefined => {
    const unscaled = Math.round(value * unit);
    if (Math.abs(unscaled) > MAX_EXACT) return encodeDigits(value);
    if (unscaled / unit !== value || Object.is(value, -0)) return undefined;
    return Math.abs(unscaled) < limit ? bytesOf(unscaled) : undefined;
  };

  /** The slow way, for what is beyond arithmetic: by the digits of the shortest text. */
  const encodeDigits = (value: number): Buffer | undefined => {
    const [whole = '', fraction = ''] = String(value).split('.');
    if (!/^-?\d+$/.test(whole) || fraction.length > scale) return undefined;
    const unscaled = BigInt(whole + fraction.padEnd(scale, '0'));
    if (whole.replace('-', '').length > precision - scale) return undefined;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigInt64BE(unscaled);
    let start = 0; // a leading byte goes that only repeats the sign of the next
    while (start < 7 && bytes.readInt8(start) === bytes.readInt8(start + 1) >> 7) start++;
    return bytes.subarray(start);
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

  return { encode, decode };
}

/** The fewest bytes of two's complement that hold an integer below 2^53. */
function bytesOf(integer: number): Buffer {
  const magnitude = integer < 0 ? -integer - 1 : integer;
  let length = 1;
  for (let limit = 0x80; magnitude >= limit; limit *= 0x100) length++;
  const bytes = Buffer.allocUnsafe(length);
  let rest = integer;
  for (let at = length - 1; at >= 0; at--) {
    bytes[at] = rest; // the low 8 bits
    rest = Math.floor(rest / 0x100);
  }
  return bytes;
}
