// The input window: character codes, the read and write positions, and skipping over values.

import { OUT, WINDOW } from '../layout.ts';

export const TAB: u8 = 0x09;
export const LF: u8 = 0x0a;
export const CR: u8 = 0x0d;
export const SPACE: u8 = 0x20;
export const QUOTE: u8 = 0x22;
export const PLUS: u8 = 0x2b;
export const COMMA: u8 = 0x2c;
export const MINUS: u8 = 0x2d;
export const POINT: u8 = 0x2e;
export const ZERO: u8 = 0x30;
export const COLON: u8 = 0x3a;
export const UPPER_T: u8 = 0x54;
export const UPPER_Z: u8 = 0x5a;
export const OPEN_ARRAY: u8 = 0x5b;
export const BACKSLASH: u8 = 0x5c;
export const CLOSE_ARRAY: u8 = 0x5d;
export const OPEN_OBJECT: u8 = 0x7b;
export const CLOSE_OBJECT: u8 = 0x7d;

export function isSpace(byte: u8): bool {
  return byte == SPACE || byte == LF || byte == CR || byte == TAB;
}

/** Whether a byte can follow a number or a literal (`true`, `false`, `null`): whitespace, a comma or a closing bracket. */
export function endsWord(byte: u8): bool {
  return byte == COMMA || byte == CLOSE_OBJECT || byte == CLOSE_ARRAY || isSpace(byte);
}

/**
 * Free space in bytes that {@link Here.hasRoom} requires in the output beyond the bytes that the caller asks for: enough for any value that
 * is not a string. If it is too small, the output overwrites the input window.
 */
const ROOM: i32 = 64;

/** Read and write positions in memory of the current call of `transcode`. */
export class Here {
  static at: i32 = 0;
  static out: i32 = 0;
  static note: i32 = 0;
  /** Number of steps of the path to the value that is being read. */
  static depth: i32 = 0;

  /** Whether the output has space for `bytes` more bytes, with at least {@link ROOM} free bytes after them. */
  static hasRoom(bytes: i32): bool {
    return Here.out + bytes + ROOM <= WINDOW;
  }

  static get size(): i32 {
    return Here.out - OUT;
  }

  static write(byte: u8): void {
    store<u8>(Here.out, byte);
    Here.out += 1;
  }

  static skipSpace(): void {
    while (load<u8>(Here.at) <= SPACE && isSpace(load<u8>(Here.at))) Here.at += 1;
  }

  /** Skips whitespace and, if it comes next, the byte `byte`. Returns whether that byte was skipped. */
  static takes(byte: u8): bool {
    if (load<u8>(Here.at) != byte) {
      Here.skipSpace();
      if (load<u8>(Here.at) != byte) return false;
    }
    Here.at += 1;
    return true;
  }
}

// Skipping over values without validating them, with the same results as in `json-bytes.ts`.

/** Returns the address after the JSON value that begins at `start`; 0 if it doesn't end within the part of the page that is in memory. */
export function endOfValue(start: i32): i32 {
  let open = 0;
  let at = start;
  do {
    const byte = load<u8>(at);
    if (byte == QUOTE) {
      at = endOfString(at);
      if (at == 0) return 0;
    } else if (byte == OPEN_OBJECT || byte == OPEN_ARRAY) {
      open += 1;
      at += 1;
    } else if (byte == CLOSE_OBJECT || byte == CLOSE_ARRAY) {
      open -= 1;
      if (open < 0) return at; // closes the enclosing container
      at += 1;
    } else if (byte == 0) {
      return 0;
    } else if (open > 0) {
      at += 1;
    } else {
      while (load<u8>(at) != 0 && !endsWord(load<u8>(at))) at += 1;
    }
  } while (open > 0);
  return load<u8>(at) == 0 ? 0 : at;
}

/** Returns the address after the JSON string that begins at `quote`; 0 if it doesn't end within the part of the page that is in memory. */
export function endOfString(quote: i32): i32 {
  let at = quote + 1;
  for (let byte = load<u8>(at); byte != QUOTE; byte = load<u8>(++at)) {
    if (byte == BACKSLASH) byte = load<u8>(++at);
    if (byte == 0) return 0;
  }
  return at + 1;
}
