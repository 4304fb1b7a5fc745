import type { WriteStream } from 'node:tty';

/** A status line: on a terminal it is overwritten in place, in a pipe it is printed every few seconds. */
export interface ProgressLine {
  /** Shows a text until the next one is shown. */
  show(text: string): void;
  /** Shows the progress of a task, its rate and the estimated time left. */
  progress(what: string, done: number, total: number): void;
  /** Erases the line, so that other output can be written. */
  clear(): void;
  /** Erases the status line and writes a permanent line. */
  end(text: string): void;
}

const IN_A_PIPE_EVERY_MS = 5_000;
const CLEAR = '\r\u001b[K';

export function progressLine(stream: WriteStream): ProgressLine {
  const live = stream.isTTY;
  let shown = false;
  let writtenAt = -Infinity;
  let began: { readonly what: string; readonly at: number; readonly done: number } | undefined;

  const clear = () => {
    if (shown) stream.write(CLEAR);
    shown = false;
  };
  const show = (text: string) => {
    const now = performance.now();
    if (live) {
      stream.write(CLEAR + text.slice(0, stream.columns - 1));
      shown = true;
    } else if (now - writtenAt >= IN_A_PIPE_EVERY_MS) {
      stream.write(`${text}\n`);
      writtenAt = now;
    }
  };
  return {
    show,
    clear,
    progress: (what, done, total) => {
      const now = performance.now();
      if (began?.what !== what) began = { what, at: now, done };
      const rate = ((done - began.done) / (now - began.at)) * 1_000;
      const left =
        rate > 0 ? `, ${Math.round(rate)}/s, ${Math.ceil((total - done) / rate)} s left` : '';
      show(
        `${what}: ${done} of ${total} (${Math.floor((100 * done) / Math.max(1, total))} %)${left}`,
      );
    },
    end: (text) => {
      clear();
      stream.write(`${text}\n`);
    },
  };
}
