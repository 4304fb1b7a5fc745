import type { Writable } from 'node:stream';

/** Lines on their way out, in chunks: a write for each would take longer than all the rest. */
export interface LineWriter {
  /** A promise when the reader has to be waited for. */
  write(line: string): Promise<void> | undefined;
  /** Resolves when all is written, or nobody reads any more. */
  flush(): Promise<void>;
}

const CHUNK = 64 * 1_024;

export function lineWriter(stream: Writable): LineWriter {
  let text = '';
  let isDue = false;

  const flush = async (): Promise<void> => {
    const chunk = text;
    text = '';
    // The callback comes with an error, too: whoever listens for errors decides what to do then.
    if (chunk !== '' && !stream.destroyed) {
      await new Promise<void>((done) => stream.write(chunk, () => done()));
    }
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
