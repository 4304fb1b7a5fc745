// The JSON in the window: its characters, how far it is read, and where values end that nobody has looked at.

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

/** Whether a byte ends a number or a word. */
export function endsWord(byte: u8): bool {
  return byte == COMMA || byte == CLOSE_OBJECT || byte == CLOSE_ARRAY || isSpace(byte);
}

/** What anything but a text takes at most, with what is written behind it in one go. */
const ROOM: i32 = 64;

/** How far it is. */
export class Here {
  /** The place that is read next. */
  static at: i32 = 0;
  /** The place that is written next. */
  static out: i32 = 0;
  /** Where the next note goes. */
  static note: i32 = 0;
  /** Steps to what is being read. */
  static depth: i32 = 0;

  /** Whether so many bytes can be written, and something small behind them. */
  static hasRoom(bytes: i32): bool {
    return Here.out + bytes + ROOM <= WINDOW;
  }

  /** Bytes written. */
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

  /** Over white space, and over one byte if it stands there. */
  static takes(byte: u8): bool {
    if (load<u8>(Here.at) != byte) {
      Here.skipSpace();
      if (load<u8>(Here.at) != byte) return false;
    }
    Here.at += 1;
    return true;
  }
}

// Where values end that nobody has looked at; the same places as those of `json-bytes.ts`. 0 for one that doesn't end in the window.

/** The place behind the value that begins at a place. */
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
      if (open < 0) return at; // of what the value stands in
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

/** The place behind the text whose quote is at a place. */
export function endOfString(quote: i32): i32 {
  let at = quote + 1;
  for (let byte = load<u8>(at); byte != QUOTE; byte = load<u8>(++at)) {
    if (byte == BACKSLASH) byte = load<u8>(++at);
    if (byte == 0) return 0;
  }
  return at + 1;
}
