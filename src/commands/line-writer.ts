import type { Writable } from 'node:stream';

/** Size of the buffer, in characters, at which it is written at once. A smaller buffer is written in the next turn of the event loop. */
const CHUNK = 64 * 1_024;

/** Writes lines to a stream in chunks: a separate write for each line would take most of the time. */
export class LineWriter {
  readonly #stream: Writable;
  #text = '';
  #isDue = false;
  #written: Promise<void> = Promise.resolve();

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  /**
   * Adds a line to the current chunk. If the chunk is now large enough, writes it and returns a promise that resolves once it is written:
   * callers await the promise to keep the buffered text small. Otherwise returns undefined.
   */
  write(line: string): Promise<void> | undefined {
    this.#text += `${line}\n`;
    if (this.#text.length >= CHUNK) return this.flush();
    if (this.#isDue) return undefined;
    this.#isDue = true;
    // Rare lines appear at once; lines written in the same turn go out in one chunk.
    setImmediate(() => {
      this.#isDue = false;
      void this.flush();
    });
    return undefined;
  }

  /** Writes the current chunk. Resolves once all lines passed to `write` are written, or the stream is closed. */
  flush(): Promise<void> {
    const chunk = this.#text;
    this.#text = '';
    if (chunk !== '' && !this.#stream.destroyed) {
      // The stream writes in order, so the last write ends last. Its callback is also called after an error, which the stream's error
      // listener handles.
      this.#written = new Promise((done) => this.#stream.write(chunk, () => done()));
    }
    return this.#written;
  }
}
