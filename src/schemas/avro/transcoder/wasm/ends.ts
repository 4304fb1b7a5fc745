// Where values end that nobody has looked at; the same places as those of `json-bytes.ts`. 0 for one that doesn't end in the window.

import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT } from './characters.ts';
import { endsWord, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './characters.ts';

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
