import { BACKSLASH, QUOTE, SPACE } from './characters.ts';
import { writeLong } from './numbers.ts';
import { Here } from './state.ts';

/** Bytes that are looked at in one go. */
const LANES = 16;
/** The longest text whose length takes one byte. */
const MAX_ONE_BYTE = 63;

/** A text in UTF-8, without an escape. */
export function readText(): bool {
  if (load<u8>(Here.at) != QUOTE) return false;
  const start = Here.at + 1;
  let end = start;
  let to = Here.out + 1; // as if its length took one byte
  let odd = 0;
  do {
    if (Here.hasRoom(end - start)) v128.store(to, v128.load(end));
    odd = oddOnes(end);
    end += LANES;
    to += LANES;
  } while (odd == 0);
  const copied = end - start;
  end += ctz(odd) - LANES;
  if (load<u8>(end) >= 0x80) end = endOfUtf8(end);
  if (load<u8>(end) != QUOTE) return false;
  const size = end - start;
  if (!Here.hasRoom(size)) return false;
  if (size <= MAX_ONE_BYTE && size <= copied) {
    store<u8>(Here.out, <u8>(size << 1));
    Here.out += 1;
  } else {
    writeLong(size);
    memory.copy(Here.out, start, size);
  }
  Here.out += size;
  Here.at = end + 1;
  return true;
}

/** Where the text that begins here closes, if it has at most 31 characters, all of ASCII, and no escape; 0 for any other. */
export function endOfShortText(): i32 {
  if (load<u8>(Here.at) != QUOTE) return 0;
  let end = Here.at + 1;
  let odd = oddOnes(end);
  if (odd == 0) {
    end += LANES;
    odd = oddOnes(end);
    if (odd == 0) return 0;
  }
  end += ctz(odd);
  return load<u8>(end) == QUOTE ? end : 0;
}

/** Which of the next bytes end a text, or are no ASCII; a bit for each. */
function oddOnes(at: i32): i32 {
  const bytes = v128.load(at);
  const quotes = i8x16.eq(bytes, i8x16.splat(QUOTE));
  const backslashes = i8x16.eq(bytes, i8x16.splat(BACKSLASH));
  const others = i8x16.lt_s(bytes, i8x16.splat(SPACE)); // control characters; and of others the sign
  return i8x16.bitmask(v128.or(v128.or(quotes, backslashes), others));
}

/** The first byte from here on that is not within a text in UTF-8: its quote, mostly. */
function endOfUtf8(from: i32): i32 {
  let at = from;
  for (let byte = load<u8>(at); byte != QUOTE; byte = load<u8>(at)) {
    if (byte < SPACE || byte == BACKSLASH) return at;
    const size = sizeOfCharacter(at);
    if (size == 0) return at;
    at += size;
  }
  return at;
}

/** Bytes of the character that begins here; 0 where none does. Unicode 15, table 3-7. */
function sizeOfCharacter(at: i32): i32 {
  const first = load<u8>(at);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const second = load<u8>(at + 1);
  if (first < 0xe0) return second >> 6 == 2 ? 2 : 0;
  const least: u8 = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const most: u8 = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most || load<u8>(at + 2) >> 6 != 2) return 0;
  if (first < 0xf0) return 3;
  return load<u8>(at + 3) >> 6 == 2 ? 4 : 0;
}
