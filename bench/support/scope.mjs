// @ts-check
// What was started, ended again: at the end, on an error and on Ctrl-C alike.

/** Ends what it was given, the newest first. */
export class Scope {
  /** @type {Set<() => unknown>} */
  #ends = new Set();

  /**
   * @param {() => unknown} end May return a promise. Called once.
   * @returns {() => Promise<void>} ends it now.
   */
  add(end) {
    this.#ends.add(end);
    return async () => {
      if (this.#ends.delete(end)) await end();
    };
  }

  /** A scope within this one. */
  inner() {
    const inner = new Scope();
    this.add(() => inner.close());
    return inner;
  }

  /** Ends all, even if some of it fails; the first failure is thrown. */
  async close() {
    const failures = [];
    for (const end of [...this.#ends].reverse()) {
      this.#ends.delete(end);
      try {
        await end();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
