// Finds its way through JSON as it was sent, in UTF-8, without parsing it: to the elements of a page above all.

import { isUtf8 } from 'node:buffer';
import { parseJson } from './json.ts';
import type { JsonValue } from './json.ts';

export const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
export const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
export const SPACE = 0x20;
export const LAST_ASCII = 0x7f;
const [LF, CR, TAB] = [0x0a, 0x0d, 0x09];

/** The place behind the JSON value that begins at `start`; of what is no JSON any place from there on: parse what lies between. */
export function endOfValue(page: Uint8Array, start: number): number {
  const { length } = page;
  let depth = 0;
  let at = start;
  do {
    const byte = page[at]!;
    if (byte === QUOTE) at = endOfString(page, at);
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
      at += 1;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1;
      if (depth < 0) return at; // of what the value stands in
      at += 1;
    } else if (depth > 0) {
      at += 1;
    } else {
      while (at < length && !isEnd(page[at]!)) at += 1; // a number or a word
    }
  } while (depth > 0 && at < length);
  return at;
}

/** The place behind the string whose quote is at `start`. */
function endOfString(page: Uint8Array, start: number): number {
  const { length } = page;
  for (let at = start + 1; at < length; at += 1) {
    const byte = page[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at += 1;
  }
  return length;
}

/** Whether a byte ends a number or a word. */
export const isEnd = (byte: number): boolean =>
  isSpace(byte) || byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;

/** Whether a byte stands behind an element of an array. */
export const isDelimiter = (byte: number | undefined): boolean =>
  byte === COMMA || byte === CLOSE_ARRAY;

/** Where the value of a name that ends at `end` begins; -1 where no colon follows it. */
export function valueBehind(page: Uint8Array, end: number): number {
  const at = skipSpace(page, end);
  return page[at] === COLON ? skipSpace(page, at + 1) : -1;
}

export function skipSpace(page: Uint8Array, start: number): number {
  let at = start;
  while (at < page.length && isSpace(page[at]!)) at += 1;
  return at;
}

/** JSON's four: what else stands between values is not parsed by anybody, and would pass. */
const isSpace = (byte: number): boolean =>
  byte <= SPACE && (byte === SPACE || byte === LF || byte === CR || byte === TAB);

/**
 * JSON text in its bytes.
 *
 * @throws SyntaxError when they are not UTF-8: decoding them would put U+FFFD in their place without a word.
 */
export function jsonText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
  return bytes.toString('utf8');
}

/** Bytes that are no JSON as text that loses none of them: those that are not UTF-8 as a character each, as in ISO-8859-1. */
export function textOfAnyBytes(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}

/** An element of an array in a page: what it is, and the place behind it. */
interface Element<T> {
  readonly value: T;
  readonly end: number;
}

/** Elements of an array that stand side by side: what they are, and the place behind the last of them. */
export interface Elements<T> {
  readonly values: readonly T[];
  readonly end: number;
}

/** A page, taken apart. */
interface PageElements<T> {
  /** What was made of each element of `data`. */
  readonly elements: readonly T[];
  /** The page as JSON text, with `data` empty. */
  readonly rest: string;
}

/** Bytes of a page between two stops: parsed in some milliseconds. */
const STEP_BYTES = 2 ** 19;

/**
 * Finds the elements of `data` in a page without parsing it, so that those that are known need not be
 * parsed at all, and the others one by one. It stops now and then, for who drives it to do something else.
 *
 * `read` is given the place where an element begins. It says what that element is, or also some behind it, and where the
 * last of them ends; of what is JSON, {@link endOfValue} says where that is. If each element that `read` makes out is JSON
 * by itself, and the rest is, then the page is JSON, and says just that.
 *
 * @returns undefined for a page that is laid out in another way, or is no JSON: parse it whole.
 */
export function* pageElements<T>(
  page: Buffer,
  read: (at: number) => Elements<T>,
): Generator<void, PageElements<T> | undefined> {
  let data: { elements: T[]; from: number; end: number } | undefined;
  let at = skipSpace(page, 0);
  if (page[at] !== OPEN_OBJECT) return undefined;
  do {
    at = skipSpace(page, at + 1);
    if (page[at] !== QUOTE) return undefined; // `{}` too: it has no data
    const end = endOfString(page, at);
    const name = page.subarray(at, end);
    if (name.includes(BACKSLASH)) return undefined; // an escape might spell `data` as well
    at = valueBehind(page, end);
    if (at < 0) return undefined;
    if (name.equals(DATA)) {
      if (data || page[at] !== OPEN_ARRAY) return undefined;
      data = yield* arrayElements(page, at + 1, read);
      if (!data) return undefined;
      at = data.end + 1;
    } else {
      at = endOfValue(page, at);
    }
    at = skipSpace(page, at);
  } while (page[at] === COMMA);
  if (!data || page[at] !== CLOSE_OBJECT || skipSpace(page, at + 1) < page.length) return undefined;
  const rest = page.toString('utf8', 0, data.from) + page.toString('utf8', data.end);
  return { elements: data.elements, rest };
}

/** The elements from behind the opening bracket on; `end` is where the closing one is. */
function* arrayElements<T>(page: Buffer, from: number, read: (at: number) => Elements<T>) {
  const elements: T[] = [];
  let at = skipSpace(page, from);
  let stop = at + STEP_BYTES;
  if (page[at] === CLOSE_ARRAY) return { elements, from, end: at };
  for (;;) {
    const { values, end } = read(at);
    for (const value of values) elements.push(value);
    at = skipSpace(page, end);
    if (page[at] === CLOSE_ARRAY) return { elements, from, end: at };
    if (page[at] !== COMMA) return undefined;
    at = skipSpace(page, at + 1);
    if (at < stop) continue;
    stop = at + STEP_BYTES;
    yield;
  }
}

/**
 * An element that is parsed.
 *
 * @throws SyntaxError when it isn't JSON in UTF-8.
 */
export function parsedElement(page: Buffer, at: number): Element<JsonValue> {
  const end = endOfValue(page, at);
  return { value: parseJson(jsonText(page.subarray(at, end))), end };
}

const DATA = Buffer.from('"data"');
