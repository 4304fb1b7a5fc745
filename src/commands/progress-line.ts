import type { WriteStream } from 'node:tty';

/** What goes on, in one line that is written over on a terminal, and now and then in a pipe. */
export interface ProgressLine {
  /** Shows a text until the next one. */
  show(text: string): void;
  /** Shows how far something is, its rate and the time left. */
  progress(what: string, done: number, total: number): void;
  /** Takes the line away, so that others can write. */
  clear(): void;
  /** Writes a line that stays. */
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
