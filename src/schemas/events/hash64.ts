import { hash } from 'node:crypto';

/** 64 bits in two halves, each from 0 to 2^32 - 1: much quicker than BigInt. */
export interface Hash64 {
  readonly high: number;
  readonly low: number;
}

/** The first 8 bytes of SHA-256 over a text in UTF-8, big-endian. */
export function hash64(text: string): Hash64 {
  const bytes = hash('sha256', text, 'binary'); // a character a byte: three times as quick as a Buffer of them
  return { high: halfAt(bytes, 0), low: halfAt(bytes, 4) };
}

function halfAt(bytes: string, at: number): number {
  const byte = (n: number) => bytes.charCodeAt(at + n);
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
}

/** What a live key adds to the digest of a list. */
export function eventHash(key: string, sequence: number): Hash64 {
  return hash64(`${key}\n${sequence}`);
}
