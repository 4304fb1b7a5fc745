import { COLON } from './json-bytes.ts';

const WORD_BYTES = 4;

/**
 * The name of a member, as a page has it. A record of 3 KB is two thirds names, so those that are expected are compared four
 * bytes at once.
 */
export class JsonName {
  /** In its quotes. */
  readonly bytes: Buffer;
  /** With a colon right behind it: how long that is, its words, and the last one, which may overlap the one before. */
  readonly #length: number;
  readonly #words: Int32Array;
  readonly #last: number;

  constructor(name: string) {
    this.bytes = Buffer.from(JSON.stringify(name));
    const whole = Buffer.concat([this.bytes, Buffer.of(COLON)]);
    this.#length = whole.length;
    // Names of no letter or one are less than two words: they are told by who reads on.
    const words = Math.floor((whole.length - 1) / WORD_BYTES);
    this.#words = Int32Array.from({ length: words }, (_, nth) =>
      whole.readInt32LE(nth * WORD_BYTES),
    );
    this.#last = words > 0 ? whole.readInt32LE(whole.length - WORD_BYTES) : 0;
  }

  /**
   * The place behind the name and its colon, where both stand side by side; -1 elsewhere.
   *
   * @param size Of the page, which takes longer to ask it for.
   */
  endAt(page: DataView, at: number, size: number): number {
    const words = this.#words;
    const { length } = words;
    const end = at + this.#length;
    if (length === 0 || end > size) return -1;
    for (let nth = 0; nth < length; nth++) {
      if (page.getInt32(at + nth * WORD_BYTES, true) !== words[nth]) return -1;
    }
    return page.getInt32(end - WORD_BYTES, true) === this.#last ? end : -1;
  }
}
