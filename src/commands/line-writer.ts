import type { Writable } from 'node:stream';

/** Writes lines to a stream in chunks: a separate write for each line would take most of the time. */
export interface LineWriter {
  /**
   * Adds a line to the current chunk. If that makes the chunk large enough, writes the chunk and returns a promise that resolves once it is
   * written; a caller that awaits it does not outrun a slow reader.
   */
  write(line: string): Promise<void> | undefined;
  /** Resolves once all lines passed to `write` are written, or the stream is closed. */
  flush(): Promise<void>;
}

/** Number of characters after which the buffered lines are written to the stream. */
const CHUNK = 64 * 1_024;

export function lineWriter(stream: Writable): LineWriter {
  let text = '';
  let isDue = false;
  let written: Promise<void> = Promise.resolve();

  const flush = (): Promise<void> => {
    const chunk = text;
    text = '';
    if (chunk !== '' && !stream.destroyed) {
      // The stream writes in order, so the last write ends last. Its callback is also called after an error, which the stream's error
      // listener handles.
      written = new Promise((done) => stream.write(chunk, () => done()));
    }
    return written;
  };
  return {
    flush,
    write: (line) => {
      text += `${line}\n`;
      if (text.length >= CHUNK) return flush();
      if (!isDue) {
        isDue = true;
        // Rare lines appear at once; lines written in the same turn go out in one chunk.
        setImmediate(() => {
          isDue = false;
          void flush();
        });
      }
      return undefined;
    },
  };
}
