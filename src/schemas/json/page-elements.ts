import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  endOfString,
  endOfValue,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  valueBehind,
} from './json-bytes.ts';
import { jsonText } from './json-text.ts';
import { parseJson } from './json.ts';
import type { JsonValue } from './json.ts';

/** An element of an array in a page: what it is, and the place behind it. */
export interface Element<T> {
  readonly value: T;
  readonly end: number;
}

/** Elements of an array that stand side by side: what they are, and the place behind the last of them. */
export interface Elements<T> {
  readonly values: readonly T[];
  readonly end: number;
}

/** A page, taken apart. */
export interface PageElements<T> {
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
