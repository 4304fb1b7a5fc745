// A sorted sequence of ids with fast insertion, for millions of records.

/** A block is split when it is full; small enough that moving half of one costs nothing. */
const BLOCK = 1024;

interface Block {
  readonly ids: Uint32Array;
  length: number;
}

/**
 * Ids in a given order, where place and id lead to each other quickly: adding, removing and
 * finding the n-th take microseconds among a million, at 4 bytes or so an id.
 *
 * What the order depends on may change only while the id is out of the list.
 */
export class SortedIds {
  readonly #before: (a: number, b: number) => boolean;
  #blocks: Block[] = [];
  #size = 0;

  /**
   * @param before whether `a` stands before `b`: a strict total order.
   * @param sorted ids to start with, in that order.
   */
  constructor(before: (a: number, b: number) => boolean, sorted: Uint32Array) {
    this.#before = before;
    this.#size = sorted.length;
    const fill = (BLOCK * 3) / 4; // room to add before the first split
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
    const place = placeIn(block, isBefore);
    block.ids.copyWithin(place + 1, place, block.length);
    block.ids[place] = id;
    block.length++;
    this.#size++;
    if (block.length === BLOCK) this.#split(at);
  }

  /** @throws Error when the id is not there, or not where the order says. */
  remove(id: number): void {
    const isBefore = (other: number) => this.#before(other, id);
    const at = this.#blockOf(isBefore);
    const block = this.#blocks[at];
    const place = block ? placeIn(block, isBefore) : 0;
    if (block?.ids[place] !== id || place >= block.length) throw new Error(`no id ${id} in order`);
    block.ids.copyWithin(place, place + 1, block.length);
    block.length--;
    this.#size--;
    if (block.length === 0) this.#blocks.splice(at, 1);
  }

  /** How many ids at the front `isBefore` holds for; it must hold for none behind those. */
  rank(isBefore: (id: number) => boolean): number {
    const at = this.#blockOf(isBefore);
    let rank = 0;
    for (let k = 0; k < at; k++) rank += this.#blocks[k]!.length;
    const block = this.#blocks[at];
    return block ? rank + placeIn(block, isBefore) : rank;
  }

  /** The ids from place `start` up to, not including, place `end`. */
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

  /** All ids in order, in stretches. The list may not change while these are read. */
  *stretches(): IterableIterator<Uint32Array> {
    for (const { ids, length } of this.#blocks) yield ids.subarray(0, length);
  }

  /** The first block with an id for which `isBefore` does not hold. */
  #blockOf(isBefore: (id: number) => boolean): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const block = this.#blocks[middle]!;
      if (block.length > 0 && isBefore(block.ids[block.length - 1]!)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #split(at: number): void {
    const block = this.#blocks[at]!;
    const ids = new Uint32Array(BLOCK);
    ids.set(block.ids.subarray(BLOCK / 2));
    this.#blocks.splice(at + 1, 0, { ids, length: BLOCK / 2 });
    block.length = BLOCK / 2;
  }
}

function placeIn(block: Block, isBefore: (id: number) => boolean): number {
  let low = 0;
  let high = block.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(block.ids[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}
