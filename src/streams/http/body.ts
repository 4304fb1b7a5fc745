/** The bytes of an answer, until they are given back: who looks at them later meets an error, and not another answer. */
export class Body {
  #bytes: Buffer | undefined;
  readonly #onGivenBack: (() => void) | undefined;

  constructor(bytes: Buffer, onGivenBack?: () => void) {
    this.#bytes = bytes;
    this.#onGivenBack = onGivenBack;
  }

  /** @throws Error when they were given back. */
  get bytes(): Buffer {
    if (!this.#bytes) throw new Error('an answer was looked at after it had been dealt with');
    return this.#bytes;
  }

  /** Nobody looks at them any more. More than once is as good as once. */
  giveBack(): void {
    if (!this.#bytes) return;
    this.#bytes = undefined;
    this.#onGivenBack?.();
  }
}

/**
 * Memory for the bodies of answers, which is used again. V8 counts memory that it does not manage, and collects garbage
 * the sooner for it: with new memory for each page of 3 MB that was a fifth of all CPU.
 */
export class BodyPool {
  readonly #free: Buffer[] = [];
  #freeBytes = 0;

  /** At least so many bytes, with whatever is left in them. */
  take(size: number): Buffer {
    if (size < LEAST) return Buffer.allocUnsafe(size);
    const step = 2 ** Math.floor(Math.log2(size) - 2);
    const length = Math.ceil(size / step) * step; // pages of a list differ by little
    // A last page does not take the memory of a full one.
    const fits = (memory: Buffer) => memory.length >= size && memory.length <= 1.5 * length;
    const place = this.#free.findLastIndex(fits);
    const [memory] = place < 0 ? [] : this.#free.splice(place, 1);
    if (!memory) return Buffer.allocUnsafeSlow(length);
    this.#freeBytes -= memory.length;
    return memory;
  }

  /** What {@link take} gave, once nobody looks at it any more. */
  giveBack(memory: Buffer): void {
    const { length } = memory;
    if (length < LEAST || this.#freeBytes + length > MOST_FREE) return;
    this.#free.push(memory);
    this.#freeBytes += length;
  }
}

/** Less is not worth keeping: Node has slabs for it. */
const LEAST = 2 ** 14;
/** Kept for bodies to come: six of the largest that are usual. */
const MOST_FREE = 20 * 2 ** 20;
