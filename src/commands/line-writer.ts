import type { Writable } from 'node:stream';

/** Lines on their way out, in chunks: a write for each would take longer than all the rest. */
export interface LineWriter {
  /** A promise when the reader has to be waited for. */
  write(line: string): Promise<void> | undefined;
  /** Resolves when all is written that was given to `write`, or nobody reads any more. */
  flush(): Promise<void>;
}

const CHUNK = 64 * 1_024;

export function lineWriter(stream: Writable): LineWriter {
  let text = '';
  let isDue = false;
  let written: Promise<void> = Promise.resolve();

  const flush = (): Promise<void> => {
    const chunk = text;
    text = '';
    if (chunk !== '' && !stream.destroyed) {
      // A stream writes in order: behind the last write there is none under way. The callback comes
      // with an error, too: whoever listens for errors decides what to do then.
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
        // What comes seldom is to be seen at once, what comes together goes together.
        setImmediate(() => {
          isDue = false;
          void flush();
        });
      }
      return undefined;
    },
  };
}
