/**
 * Body of a response, in memory that may come from a pool. It cannot be read after {@link Body.giveBack}, because another response may use
 * the memory by then.
 */
export class Body {
  #bytes: Buffer | undefined;
  readonly #onGivenBack: (() => void) | undefined;

  constructor(bytes: Buffer, onGivenBack?: () => void) {
    this.#bytes = bytes;
    this.#onGivenBack = onGivenBack;
  }

  /** The bytes of the body. @throws Error after {@link Body.giveBack}. */
  get bytes(): Buffer {
    if (this.#bytes) return this.#bytes;
    throw new Error(
      'a response body was read after giveBack() had released its memory: read it before that call',
    );
  }

  /** Returns the memory of the body to the pool it came from; the body can't be read afterwards. Further calls do nothing. */
  giveBack(): void {
    if (!this.#bytes) return;
    this.#bytes = undefined;
    this.#onGivenBack?.();
  }
}

/**
 * Pool of buffers for response bodies. Without it every page of 3 MB gets a new buffer outside the V8 heap, and the garbage collections
 * that these buffers cause take a fifth of all CPU time.
 */
export class BodyPool {
  readonly #free: Buffer[] = [];
  #freeBytes = 0;

  /** Returns a buffer of at least `size` bytes, not zeroed. */
  take(size: number): Buffer {
    if (size < MIN_POOLED_BYTES) return Buffer.allocUnsafe(size);
    const step = 2 ** Math.floor(Math.log2(size) - 2);
    const length = Math.ceil(size / step) * step; // rounded up, as the pages of a list differ little in size
    // The upper bound leaves the buffer of a full page for the next full page.
    const fits = (memory: Buffer) => memory.length >= size && memory.length <= 1.5 * length;
    const index = this.#free.findLastIndex(fits);
    const [memory] = index < 0 ? [] : this.#free.splice(index, 1);
    if (!memory) return Buffer.allocUnsafeSlow(length);
    this.#freeBytes -= memory.length;
    return memory;
  }

  /** Returns a buffer to the pool. The caller must not use the buffer afterwards. */
  giveBack(memory: Buffer): void {
    const { length } = memory;
    if (length < MIN_POOLED_BYTES || this.#freeBytes + length > MAX_FREE_BYTES) return;
    this.#free.push(memory);
    this.#freeBytes += length;
  }
}

/** Minimum size of a pooled buffer, in bytes. Smaller buffers are allocated by Node and never enter the pool. */
const MIN_POOLED_BYTES = 2 ** 14;
/**
 * Maximum total size of the free buffers in the pool, in bytes: about six large pages. A returned buffer that would exceed it is left to
 * the garbage collector.
 */
const MAX_FREE_BYTES = 20 * 2 ** 20;
