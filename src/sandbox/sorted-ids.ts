/**
 * Maximum number of ids in one block of the sequence. With larger blocks insertions are slower; with smaller blocks the list of blocks is
 * longer.
 */
const BLOCK = 1024;

interface Block {
  readonly ids: Uint32Array;
  length: number;
}

/**
 * Sequence of ids, sorted by a given order. Adding, removing and finding the n-th of a million ids take microseconds. The values that
 * determine an id's position may change only while the id is not in the sequence.
 */
export class SortedIds {
  readonly #before: (a: number, b: number) => boolean;
  #blocks: Block[] = [];
  #size = 0;

  /**
   * Creates a sequence of the ids in `sorted`.
   *
   * @param before Returns whether `a` comes before `b`; must be a strict total order.
   * @param sorted Initial ids, sorted by `before`.
   */
  constructor(before: (a: number, b: number) => boolean, sorted: Uint32Array) {
    this.#before = before;
    this.#size = sorted.length;
    const fill = (BLOCK * 3) / 4; // leaves space for insertions before the first split
    for (let from = 0; from < sorted.length; from += fill) {
      const ids = new Uint32Array(BLOCK);
      const part = sorted.subarray(from, from + fill);
      ids.set(part);
      this.#blocks.push({ ids, length: part.length });
    }
  }

  get size(): number {
    return this.#size;
  }

  add(id: number): void {
    if (this.#blocks.length === 0) this.#blocks.push({ ids: new Uint32Array(BLOCK), length: 0 });
    const isBefore = (other: number) => this.#before(other, id);
    const at = Math.min(this.#blockOf(isBefore), this.#blocks.length - 1);
    const block = this.#blocks[at]!;
    const index = placeIn(block, isBefore);
    block.ids.copyWithin(index + 1, index, block.length);
    block.ids[index] = id;
    block.length++;
    this.#size++;
    if (block.length === BLOCK) this.#split(at);
  }

  /**
   * Removes an id.
   *
   * @throws Error if the id is not at the position that the order determines: it was never added, or values on which the order depends have
   * changed.
   */
  remove(id: number): void {
    const isBefore = (other: number) => this.#before(other, id);
    const at = this.#blockOf(isBefore);
    const block = this.#blocks[at];
    const index = block ? placeIn(block, isBefore) : 0;
    if (block?.ids[index] !== id || index >= block.length) throw new Error(`no id ${id} in order`);
    block.ids.copyWithin(index, index + 1, block.length);
    block.length--;
    this.#size--;
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  /** Returns the number of ids for which `isBefore` is true. They must precede all ids for which it is false. */
  rank(isBefore: (id: number) => boolean): number {
    const at = this.#blockOf(isBefore);
    let rank = 0;
    for (let k = 0; k < at; k++) rank += this.#blocks[k]!.length;
    const block = this.#blocks[at];
    return block ? rank + placeIn(block, isBefore) : rank;
  }

  /** Returns the ids at the indexes from `start` (included) to `end` (excluded) of the sequence. */
  slice(start: number, end: number): number[] {
    const found: number[] = [];
    let skip = start;
    for (const { ids, length } of this.#blocks) {
      if (found.length >= end - start) break;
      const until = Math.min(length, skip + end - start - found.length);
      for (let k = skip; k < until; k++) found.push(ids[k]!);
      skip = Math.max(0, skip - length);
    }
    return found;
  }

  /** Yields all ids in order, in chunks. The sequence must not change during the iteration. */
  *chunks(): IterableIterator<Uint32Array> {
    for (const { ids, length } of this.#blocks) yield ids.subarray(0, length);
  }

  /** Returns the index of the first block that contains an id for which `isBefore` is false; the number of blocks if there is none. */
  #blockOf(isBefore: (id: number) => boolean): number {
    return countWhile(this.#blocks.length, (at) => {
      const { ids, length } = this.#blocks[at]!;
      return length > 0 && isBefore(ids[length - 1]!);
    });
  }

  #split(at: number): void {
    const block = this.#blocks[at]!;
    const ids = new Uint32Array(BLOCK);
    ids.set(block.ids.subarray(BLOCK / 2));
    this.#blocks.splice(at + 1, 0, { ids, length: BLOCK / 2 });
    block.length = BLOCK / 2;
  }
}

function placeIn({ ids, length }: Block, isBefore: (id: number) => boolean): number {
  return countWhile(length, (index) => isBefore(ids[index]!));
}

/** Returns how many indexes below `length` fulfil a condition, by binary search. They must precede all that do not fulfil it. */
export function countWhile(length: number, fulfils: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fulfils(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
