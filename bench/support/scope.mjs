// @ts-check
// What was started, ended again: at the end, on an error and on Ctrl-C alike.

/** Ends what it was given, the newest first. */
export class Scope {
  /** @type {Set<() => unknown>} */
  #ends = new Set();
  #isClosed = false;

  /**
   * @param {() => unknown} end May return a promise. Called once: at once, if the scope is closed.
   * @returns {() => Promise<void>} ends it now.
   * @throws Error when the scope is closed: whoever goes on starting things is to stop.
   */
  add(end) {
    if (this.#isClosed) {
      void Promise.resolve(end()).catch(() => undefined); // what is thrown here says more
      throw new Error('it is over');
    }
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
    this.#isClosed = true;
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
