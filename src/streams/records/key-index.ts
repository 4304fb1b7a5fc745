/** Minimum number of slots of the hash table, a power of two. The number is doubled whenever more than half of the slots are taken. */
const MIN_SLOTS = 64;

/** A 64-bit hash as two 32-bit integers. */
interface Hash {
  readonly high: number;
  readonly low: number;
}

/**
 * Index of record keys, in the order in which they were added. It stores only 64-bit hashes of the keys.
 *
 * Two different keys with equal hashes, which is extremely unlikely, count as one: `size` is then too small, never too large.
 */
export class KeyIndex {
  /** Number of added keys, including repetitions. */
  length = 0;
  /** Number of distinct keys that were added. */
  size = 0;
  /** High halves of the keys' hashes, in the order in which the keys were added; the low halves are in `#lows`. */
  #highs: number[] = [];
  #lows: number[] = [];
  /** Hash table with linear probing. Each slot has 1 plus the index at which a key was first added, or 0 if it is free. */
  #slots: Int32Array;

  /** @param expected Number of keys that will be added. If more are added, growing the table costs time. Default 0. */
  constructor(expected = 0) {
    this.#slots = new Int32Array(slotsFor(expected));
  }

  /** Adds a key. If it was added before, `length` grows, but not `size`. */
  add(key: string): void {
    this.#add(hashOf(key));
  }

  /** Adds the key whose UTF-8 text is in `bytes` from index `from` up to, not including, `to`. */
  addBytes(bytes: Uint8Array, from: number, to: number): void {
    this.#add(hashOfBytes(bytes, from, to));
  }

  /** Adds each key of another index as often as it was added there. */
  addAll(other: KeyIndex): void {
    for (let place = 0; place < other.length; place += 1) {
      this.#add({ high: other.#highs[place]!, low: other.#lows[place]! });
    }
  }

  /** Removes all keys. */
  clear(): void {
    [this.length, this.size, this.#highs, this.#lows] = [0, 0, [], []];
    this.#slots = new Int32Array(MIN_SLOTS);
  }

  /** Returns the index at which a key was first added; undefined if the key was never added. */
  placeOf(key: string): number | undefined {
    const place = this.#slots[this.#slotOf(hashOf(key))]! - 1;
    return place < 0 ? undefined : place;
  }

  #add(hash: Hash): void {
    this.#highs.push(hash.high);
    this.#lows.push(hash.low);
    this.length += 1;
    const slot = this.#slotOf(hash);
    if (this.#slots[slot] !== 0) return;
    this.#slots[slot] = this.length;
    this.size += 1;
    if (this.size * 2 > this.#slots.length) this.#grow();
  }

  /** Returns the slot that contains a hash, or else the free slot in which it must be stored. */
  #slotOf({ high, low }: Hash): number {
    const last = this.#slots.length - 1;
    for (let slot = spread(high, low) & last; ; slot = (slot + 1) & last) {
      const place = this.#slots[slot]! - 1;
      if (place < 0 || (this.#highs[place] === high && this.#lows[place] === low)) return slot;
    }
  }

  #grow(): void {
    const taken = this.#slots.filter((place) => place !== 0);
    this.#slots = new Int32Array(this.#slots.length * 2);
    for (const place of taken) {
      const hash = { high: this.#highs[place - 1]!, low: this.#lows[place - 1]! };
      this.#slots[this.#slotOf(hash)] = place;
    }
  }
}

/** Number of slots for a number of keys: the smallest power of two that is at least twice that number, and at least `MIN_SLOTS`. */
function slotsFor(keys: number): number {
  return Math.max(MIN_SLOTS, 2 ** Math.ceil(Math.log2(2 * keys)));
}

/**
 * Seed and factor of FNV-1a, which computes the high half of a key's hash. The low half is computed in the same way from other constants.
 */
const [HIGH_SEED, HIGH_FACTOR] = [0x811c9dc5 | 0, 0x01000193];
const [LOW_SEED, LOW_FACTOR] = [0x2f0b4c47, 0x5bd1e995];
const LAST_ASCII = 0x7f;

function hashOf(key: string): Hash {
  let [high, low] = [HIGH_SEED, LOW_SEED];
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at);
    if (code > LAST_ASCII) {
      const bytes = Buffer.from(key);
      return hashOfBytes(bytes, 0, bytes.length);
    }
    high = Math.imul(high ^ code, HIGH_FACTOR);
    low = Math.imul(low ^ code, LOW_FACTOR);
  }
  return { high, low };
}

function hashOfBytes(bytes: Uint8Array, from: number, to: number): Hash {
  let [high, low] = [HIGH_SEED, LOW_SEED];
  for (let at = from; at < to; at += 1) {
    high = Math.imul(high ^ bytes[at]!, HIGH_FACTOR);
    low = Math.imul(low ^ bytes[at]!, LOW_FACTOR);
  }
  return { high, low };
}

/** Mixes a hash into a number whose lower bits select a slot. The lower bits of the hash itself are not distributed evenly enough. */
function spread(high: number, low: number): number {
  const mixed = Math.imul(high ^ (low >>> 16), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 15);
}
