/** Keeps the newest `limit` entries. */
export class BoundedLog<T> {
  readonly #limit: number;
  #entries: T[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(entry: T): void {
    this.#entries.push(entry);
    // Cut seldom and much: an entry is then moved about once, however long the log.
    if (this.#entries.length > this.#limit * 1.5 + 16) {
      this.#entries = this.#entries.slice(this.#entries.length - this.#limit);
    }
  }

  /** Oldest first. */
  entries(): T[] {
    return this.#limit > 0 ? this.#entries.slice(-this.#limit) : [];
  }
}
