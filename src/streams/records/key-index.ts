/** Slots at first; twice as many each time that half of them are taken. */
const FIRST_SLOTS = 64;

/** Two numbers of 32 bits. */
interface Hash {
  readonly high: number;
  readonly low: number;
}

/**
 * Keys by 64 bits of a hash, and not by their texts: those of a run are told apart in the bytes that they were kept in.
 *
 * Two keys of one hash, which are not to be met by chance, count as one: `size` is too small then, never too large.
 */
export class KeyIndex {
  /** Keys that were added. */
  length = 0;
  /** Different ones among them. */
  size = 0;
  /** By place, which is the order of adding. */
  #highs: number[] = [];
  #lows: number[] = [];
  /** One more than the first place of a key; 0 where none is. */
  #slots = new Int32Array(FIRST_SLOTS);

  /** A key as text. */
  add(key: string): void {
    this.#add(hashOf(key));
  }

  /** A key that stands somewhere in UTF-8. */
  addBytes(bytes: Uint8Array, from: number, to: number): void {
    this.#add(hashOfBytes(bytes, from, to));
  }

  /** All keys of another index. */
  addAll(other: KeyIndex): void {
    for (let place = 0; place < other.length; place += 1) {
      this.#add({ high: other.#highs[place]!, low: other.#lows[place]! });
    }
  }

  /** None was added. */
  clear(): void {
    [this.length, this.size, this.#highs, this.#lows] = [0, 0, [], []];
    this.#slots = new Int32Array(FIRST_SLOTS);
  }

  /** Where a key, or one of its hash, was added first; undefined where none was. */
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

  /** The slot of a hash, or the free one where it would be. */
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

/** FNV-1a, twice, with other numbers the second time. */
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

/** Of a hash the lower bits alone say too little to choose a slot by. */
function spread(high: number, low: number): number {
  const mixed = Math.imul(high ^ (low >>> 16), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 15);
}
