/** Finds its way through JSON as it was sent, in UTF-8, without parsing it. */

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
export function endOfString(page: Uint8Array, start: number): number {
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
