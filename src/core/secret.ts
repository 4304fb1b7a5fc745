import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/**
 * A string that is never printed: `String()`, template literals, JSON and `util.inspect` give `[redacted]`. Call {@link Secret.reveal} only
 * where the string is sent, and do not store the result.
 */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    Object.freeze(this);
  }

  /** Returns the secret string in plain text. */
  reveal(): string {
    return this.#text;
  }

  /** Returns `[redacted]`. */
  toString(): string {
    return REDACTED;
  }

  /** Returns `[redacted]`. */
  toJSON(): string {
    return REDACTED;
  }

  /** Returns `[redacted]`. */
  [inspect.custom](): string {
    return REDACTED;
  }
}
