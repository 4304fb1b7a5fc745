import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/**
 * A text that no printing shows: `String()`, templates, JSON and `util.inspect` all give
 * `[redacted]`, and no property holds the text. Take it with {@link Secret.reveal} where it is
 * sent, and keep the result nowhere.
 */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    Object.freeze(this);
  }

  /** The text itself. */
  reveal(): string {
    return this.#text;
  }

  /** A placeholder. */
  toString(): string {
    return REDACTED;
  }

  /** A placeholder. */
  toJSON(): string {
    return REDACTED;
  }

  /** A placeholder. */
  [inspect.custom](): string {
    return REDACTED;
  }
}
