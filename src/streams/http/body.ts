/** Body of a response in pooled memory. Access after {@link Body.giveBack} throws, because the memory may hold another response by then. */
export class Body {
  #bytes: Buffer | undefined;
  readonly #onGivenBack: (() => void) | undefined;

  constructor(bytes: Buffer, onGivenBack?: () => void) {
    this.#bytes = bytes;
    this.#onGivenBack = onGivenBack;
  }

  /** The bytes of the body. @throws Error after {@link Body.giveBack}. */
  get bytes(): Buffer {
    if (!this.#bytes)
      throw new Error('a response body was read after its memory had been released');
    return this.#bytes;
  }

  /** Releases the memory; further calls do nothing. */
  giveBack(): void {
    if (!this.#bytes) return;
    this.#bytes = undefined;
    this.#onGivenBack?.();
  }
}

/**
 * Pool of buffers for response bodies. V8 counts external memory and collects garbage so often that a new buffer for each page of 3 MB
 * costs a fifth of all CPU.
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

  /** Takes back a buffer, which the caller must not use afterwards. */
  giveBack(memory: Buffer): void {
    const { length } = memory;
    if (length < MIN_POOLED_BYTES || this.#freeBytes + length > MAX_FREE_BYTES) return;
    this.#free.push(memory);
    this.#freeBytes += length;
  }
}

/** In bytes; Node itself pools smaller allocations. */
const MIN_POOLED_BYTES = 2 ** 14;
/** Maximum total size of free buffers, in bytes: about six large pages. */
const MAX_FREE_BYTES = 20 * 2 ** 20;
