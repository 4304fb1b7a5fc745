import { DECIMAL, DOUBLE, INT, TYPE_KIND, TYPE_LIMIT, TYPE_MORE } from '../layout.ts';
import { endsWord, MINUS, POINT, ZERO } from './characters.ts';
import { Here } from './state.ts';

/** They and a power of ten are doubles themselves, so that dividing them rounds once, as reading does. */
const MAX_DIGITS = 15;
/** Beyond it a decimal is told by its digits. */
const MAX_EXACT: i64 = 1_000_000_000_000_000;

/** A number of at most 15 digits, without an exponent, if the type holds it. */
export function readNumber(type: i32): bool {
  const isNegative = load<u8>(Here.at) == MINUS;
  const start = isNegative ? Here.at + 1 : Here.at;
  let end = start;
  let number: i64 = 0;
  let digit = load<u8>(end) - ZERO;
  for (; digit <= 9 && end - start <= MAX_DIGITS; digit = load<u8>(++end) - ZERO) {
    number = number * 10 + digit;
  }
  let digits = end - start;
  if (digits == 0 || (digits > 1 && load<u8>(start) == ZERO)) return false;
  let decimals = 0;
  if (load<u8>(end) == POINT) {
    end += 1;
    digit = load<u8>(end) - ZERO;
    for (; digit <= 9 && digits <= MAX_DIGITS; digit = load<u8>(++end) - ZERO) {
      number = number * 10 + digit;
      digits += 1;
      decimals += 1;
    }
    if (decimals == 0) return false;
  }
  if (digits > MAX_DIGITS || !endsWord(load<u8>(end))) return false;
  if (isNegative && number == 0) return false; // -0
  if (!writeNumber(type, isNegative ? -number : number, decimals)) return false;
  Here.at = end;
  return true;
}

/** Writes `number / 10 ** decimals`, if the type holds it. */
function writeNumber(type: i32, number: i64, decimals: i32): bool {
  const kind = load<i32>(type, TYPE_KIND);
  if (kind == DOUBLE) {
    store<f64>(Here.out, <f64>number / <f64>powerOfTen(decimals));
    Here.out += 8;
    return true;
  }
  const scale = kind == DECIMAL ? load<i32>(type, TYPE_MORE) : 0;
  let whole = number;
  if (decimals > scale) {
    const divisor = powerOfTen(decimals - scale);
    if (whole % divisor != 0) return false;
    whole /= divisor;
  }
  if (kind == DECIMAL)
    return writeDecimal(whole, scale - min(decimals, scale), load<f64>(type, TYPE_LIMIT));
  if (kind == INT && whole != <i64>(<i32>whole)) return false;
  writeLong(whole);
  return true;
}

/** Writes `number * 10 ** more`, if it is less than a limit. */
function writeDecimal(number: i64, more: i32, limit: f64): bool {
  if (more > MAX_DIGITS || abs(number) > MAX_EXACT / powerOfTen(more)) return false;
  const unscaled = number * powerOfTen(more);
  if (abs(<f64>unscaled) >= limit) return false;
  // Big-endian, in the fewest bytes of two's complement that hold it.
  const magnitude = unscaled < 0 ? ~unscaled : unscaled;
  const bytes = ((64 - <i32>clz(magnitude)) >> 3) + 1;
  Here.write(<u8>(bytes << 1));
  for (let shift = (bytes - 1) << 3; shift >= 0; shift -= 8) Here.write(<u8>(unscaled >> shift));
  return true;
}

function powerOfTen(exponent: i32): i64 {
  let power: i64 = 1;
  for (let k = 0; k < exponent; k++) power *= 10;
  return power;
}

/** Avro's long: zigzag, seven bits a byte. */
export function writeLong(value: i64): void {
  let rest = <u64>((value << 1) ^ (value >> 63));
  for (; rest > 0x7f; rest >>= 7) Here.write(<u8>(rest | 0x80));
  Here.write(<u8>rest);
}
