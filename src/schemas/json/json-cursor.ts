import { isUtf8 } from 'node:buffer';
import {
  BACKSLASH,
  endsScalar,
  LAST_ASCII,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  SPACE,
  parsedElement,
} from './json-bytes.ts';
import type { JsonValue } from './json.ts';

/**
 * A read position in the raw bytes of a page. It advances with each value that is read. The bytes after the position have not been
 * validated.
 */
export class JsonCursor {
  readonly page: Buffer;
  at: number;

  constructor(page: Buffer, at: number) {
    this.page = page;
    this.at = at;
  }

  skipSpace(): void {
    // Fast path: most JSON has no whitespace here.
    if (!(this.page[this.at]! > SPACE)) this.at = skipSpace(this.page, this.at);
  }

  /** Skips whitespace, then `byte` if it comes next; returns whether `byte` was skipped. */
  consume(byte: number): boolean {
    if (this.page[this.at] !== byte) {
      this.skipSpace();
      if (this.page[this.at] !== byte) return false;
    }
    this.at += 1;
    return true;
  }

  /**
   * Index of the closing quote if there is a quote at the cursor and another quote after `bytes` more bytes; else -1. The bytes between the
   * quotes are not validated.
   */
  endOfText(bytes: number): number {
    const { page, at } = this;
    const end = at + 1 + bytes;
    return page[at] === QUOTE && page[end] === QUOTE ? end : -1;
  }

  /** Reads the JSON value at the cursor, and moves the cursor to its end. @throws SyntaxError when there is no valid JSON value. */
  value(): JsonValue {
    const quick = this.#quickValue();
    if (quick !== undefined) return quick;
    const { value, end } = parsedElement(this.page, this.at);
    this.at = end;
    return value;
  }

  /**
   * Reads strings without escapes, short numbers, `true`, `false`, `null`, `{}` and `[]` without `JSON.parse`. Returns undefined for any
   * other value, without moving the cursor.
   */
  #quickValue(): JsonValue | undefined {
    switch (this.page[this.at]) {
      case QUOTE:
        return this.#plainText();
      case LOWER_N:
        return this.#takesWord(NULL) ? null : undefined;
      case LOWER_T:
        return this.#takesWord(TRUE) || undefined;
      case LOWER_F:
        return this.#takesWord(FALSE) ? false : undefined;
      case OPEN_OBJECT:
        return this.#takesWord(NO_MEMBERS) ? {} : undefined;
      case OPEN_ARRAY:
        return this.#takesWord(NO_ITEMS) ? [] : undefined;
      default:
        return this.#shortNumber();
    }
  }

  /** Reads the string at the cursor if it is valid UTF-8 without escapes. Else returns undefined, without moving the cursor. */
  #plainText(): string | undefined {
    const { page } = this;
    const start = this.at + 1;
    let at = start;
    let all = 0;
    let byte = page[at]!;
    while (byte !== QUOTE) {
      // JSON strings hold no raw control characters; past the end of the page `byte` is undefined.
      if (!(byte >= SPACE) || byte === BACKSLASH) return undefined;
      all |= byte;
      byte = page[++at]!;
    }
    if (all > LAST_ASCII && !isUtf8(page.subarray(start, at))) return undefined;
    this.at = at + 1;
    return page.toString('utf8', start, at);
  }

  /**
   * Reads the number at the cursor if it has at most 15 digits and no exponent. Returns undefined for any other value, without moving the
   * cursor.
   */
  #shortNumber(): number | undefined {
    const { page } = this;
    const isNegative = page[this.at] === MINUS;
    const start = isNegative ? this.at + 1 : this.at;
    let at = start;
    let number = 0;
    for (; isDigit(page[at]!); at++) number = number * 10 + page[at]! - ZERO;
    let digits = at - start;
    let decimals = 0;
    if (digits === 0 || (digits > 1 && page[start] === ZERO)) return undefined;
    if (page[at] === POINT) {
      const point = at;
      for (at++; isDigit(page[at]!); at++) number = number * 10 + page[at]! - ZERO;
      decimals = at - point - 1;
      digits += decimals;
      if (decimals === 0) return undefined;
    }
    if (digits > MAX_DIGITS || !endsScalar(page[at]!)) return undefined; // has an exponent, or isn't a number
    this.at = at;
    // Both are exact doubles, so one division rounds as `JSON.parse` does.
    if (decimals > 0) number /= POWERS_OF_TEN[decimals]!;
    return isNegative ? -number : number;
  }

  #takesWord(word: Uint8Array): boolean {
    const { page, at } = this;
    const { length } = word;
    for (let k = 0; k < length; k++) if (page[at + k] !== word[k]) return false;
    this.at = at + length;
    return true;
  }
}

const isDigit = (byte: number): boolean => byte >= ZERO && byte <= 0x39;

const [NULL, TRUE, FALSE] = [Buffer.from('null'), Buffer.from('true'), Buffer.from('false')];
const [NO_MEMBERS, NO_ITEMS] = [Buffer.from('{}'), Buffer.from('[]')];
const [MINUS, POINT, ZERO] = [0x2d, 0x2e, 0x30];
const [LOWER_F, LOWER_N, LOWER_T] = [0x66, 0x6e, 0x74];
const MAX_DIGITS = 15;
const POWERS_OF_TEN = Array.from({ length: MAX_DIGITS + 1 }, (_, nth) => 10 ** nth);
