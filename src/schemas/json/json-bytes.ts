// Locates values in raw JSON bytes (UTF-8) without parsing them: the elements of a page's array of records above all.

import { isUtf8 } from 'node:buffer';
import { parseJson, type JsonValue } from './json.ts';

export const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
export const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
export const SPACE = 0x20;
export const LAST_ASCII = 0x7f;
const [LF, CR, TAB] = [0x0a, 0x0d, 0x09];

/**
 * Index of the first byte after the JSON value that begins at `start`. The value is not validated: for malformed JSON the result is any
 * index from `start` on.
 */
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
      if (depth < 0) return at; // closes the enclosing container
      at += 1;
    } else if (depth > 0) {
      at += 1;
    } else {
      while (at < length && !endsScalar(page[at]!)) at += 1; // number, true, false or null
    }
  } while (depth > 0 && at < length);
  return at;
}

/** Index of the first byte after the string that begins at `start`; the length of `page` for an unterminated string. */
function endOfString(page: Uint8Array, start: number): number {
  const { length } = page;
  for (let at = start + 1; at < length; at += 1) {
    const byte = page[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at += 1;
  }
  return length;
}

/** Whether a byte can follow a number or a literal (`true`, `false`, `null`): whitespace, a comma or a closing bracket. */
export const endsScalar = (byte: number): boolean =>
  isSpace(byte) || byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;

/** Whether a byte is one of the two that end an element of an array: a comma or a closing bracket. */
export const isDelimiter = (byte: number | undefined): boolean =>
  byte === COMMA || byte === CLOSE_ARRAY;

/** Index of the value of an object member whose name ends before index `end`; -1 if no colon follows the name. */
export function valueAfterName(page: Uint8Array, end: number): number {
  const at = skipSpace(page, end);
  return page[at] === COLON ? skipSpace(page, at + 1) : -1;
}

export function skipSpace(page: Uint8Array, start: number): number {
  let at = start;
  while (at < page.length && isSpace(page[at]!)) at += 1;
  return at;
}

/**
 * Whether a byte is one of JSON's four whitespace characters. No other byte may be skipped: skipped bytes are never parsed, so malformed
 * JSON would be accepted.
 */
const isSpace = (byte: number): boolean =>
  byte <= SPACE && (byte === SPACE || byte === LF || byte === CR || byte === TAB);

/**
 * Decodes UTF-8.
 *
 * @throws SyntaxError for invalid bytes, which `toString` would replace with U+FFFD.
 */
export function jsonText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
  return bytes.toString('utf8');
}

/** Decodes bytes of any encoding without loss: as UTF-8 if they are valid UTF-8, else one character per byte (ISO-8859-1). */
export function textOfAnyBytes(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}

/**
 * Adjacent elements of a JSON array: the value of each (`values`), and the index in the page of the first byte after them (`end`). Returned
 * by the function `read` of {@link pageElements}.
 */
export interface Elements<T> {
  readonly values: readonly T[];
  readonly end: number;
}

/**
 * Number of bytes of a page that {@link pageElements} processes between two yields: a few ms of work. If it is too large, the event loop is
 * blocked for longer.
 */
const STEP_BYTES = 2 ** 19;

/**
 * Splits a page into the elements of its array of records and the JSON around the array (`rest`), without parsing the page as a whole.
 * Yields at intervals, so that the caller can let other work run. The JSON is not validated: `read` has to validate the elements, and the
 * caller has to parse `rest`.
 *
 * @param path Names of the members from the root of the page to the array; empty if the page is the array.
 * @param read Called with the index of an element's first byte. Returns the value of this element, those of directly following elements
 * that it has read as well, and the index after the last of them.
 * @returns The values that `read` returned (`elements`), and the page as JSON text with an empty array of records (`rest`). Undefined if
 * the array is not found or the JSON is found to be malformed: then the caller has to parse the whole page.
 */
export function* pageElements<T>(
  page: Buffer,
  path: readonly string[],
  read: (at: number) => Elements<T>,
): Generator<void, { elements: readonly T[]; rest: string } | undefined> {
  const names = path.map((name) => Buffer.from(JSON.stringify(name)));
  const found = yield* elementsIn(page, skipSpace(page, 0), names, read);
  if (!found || skipSpace(page, found.after) < page.length) return undefined;
  const rest = page.toString('utf8', 0, found.from) + page.toString('utf8', found.end);
  return { elements: found.elements, rest };
}

interface FoundArray<T> {
  readonly elements: readonly T[];
  /** Index, in the page, of the first byte after the opening bracket of the array. */
  readonly from: number;
  readonly end: number;
  /**
   * Index, in the page, of the first byte after the JSON value that was searched: the array itself, or an object that contains the array.
   */
  readonly after: number;
}

/**
 * Finds an array in the JSON value at index `start` by its path of member names, and decodes the array's elements with `read`. Yields as
 * {@link pageElements} does. Returns undefined if there is no such array, if its path is ambiguous, or if the JSON is found to be
 * malformed.
 */
function* elementsIn<T>(
  page: Buffer,
  start: number,
  [next, ...path]: readonly Buffer[],
  read: (at: number) => Elements<T>,
): Generator<void, FoundArray<T> | undefined> {
  if (!next)
    return page[start] === OPEN_ARRAY ? yield* arrayElements(page, start + 1, read) : undefined;
  if (page[start] !== OPEN_OBJECT) return undefined;
  let found: FoundArray<T> | undefined;
  let at = start;
  do {
    at = skipSpace(page, at + 1);
    if (page[at] !== QUOTE) return undefined; // also for `{}`, which has no such member
    const end = endOfString(page, at);
    const name = page.subarray(at, end);
    if (name.includes(BACKSLASH)) return undefined; // an escaped name may be `next` too
    at = valueAfterName(page, end);
    if (at < 0) return undefined;
    if (name.equals(next)) {
      // two members with this name
      if (found) return undefined;
      found = yield* elementsIn(page, at, path, read);
      if (!found) return undefined;
      at = found.after;
    } else {
      at = endOfValue(page, at);
    }
    at = skipSpace(page, at);
  } while (page[at] === COMMA);
  return found && page[at] === CLOSE_OBJECT ? { ...found, after: at + 1 } : undefined;
}

/**
 * Decodes the elements of a JSON array. Yields as {@link pageElements} does.
 *
 * @param from Index of the first byte after the opening bracket.
 * @param read Decodes elements, as in {@link pageElements}.
 * @returns undefined if the JSON between the elements is malformed.
 */
function* arrayElements<T>(
  page: Buffer,
  from: number,
  read: (at: number) => Elements<T>,
): Generator<void, FoundArray<T> | undefined> {
  const elements: T[] = [];
  let at = skipSpace(page, from);
  let stop = at + STEP_BYTES;
  const found = (end: number) => ({ elements, from, end, after: end + 1 });
  if (page[at] === CLOSE_ARRAY) return found(at);
  for (;;) {
    const { values, end } = read(at);
    for (const value of values) elements.push(value);
    at = skipSpace(page, end);
    if (page[at] === CLOSE_ARRAY) return found(at);
    if (page[at] !== COMMA) return undefined;
    at = skipSpace(page, at + 1);
    if (at < stop) continue;
    stop = at + STEP_BYTES;
    yield;
  }
}

/** Parses the JSON value that begins at index `at`; `end` is the index after it. @throws SyntaxError when it isn't JSON in UTF-8. */
export function parsedElement(page: Buffer, at: number): { value: JsonValue; end: number } {
  const end = endOfValue(page, at);
  return { value: parseJson(jsonText(page.subarray(at, end))), end };
}
