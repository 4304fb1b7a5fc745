import pc from 'picocolors';

export type Colors = ReturnType<typeof pc.createColors>;

/** Returns functions that color texts for stdout. They return a text unchanged if stdout is not a terminal, or colors are unsupported. */
export function stdoutColors(): Colors {
  return pc.createColors(process.stdout.isTTY && pc.isColorSupported);
}

/** Writes a line for the user to stderr, since stdout is for data. */
export function printLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

/**
 * Formats rows of cells as lines with aligned columns.
 *
 * @param colored Index of the column that `paint` colors. It must not be the last column.
 * @param paint Colors the padded text of a cell.
 */
export function tableLines(
  rows: readonly (readonly string[])[],
  colored: number,
  paint: (text: string, row: number) => string,
): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row, nth) => {
    const cells = row.map((cell, column) => cell.padEnd(widths![column]!));
    cells[colored] = paint(cells[colored]!, nth);
    return cells.join('  ').trimEnd();
  });
}

/** Minimum time between two status lines that a {@link ProgressLine} writes if its output is not a terminal, in ms. */
const IN_A_PIPE_EVERY_MS = 5_000;
const CLEAR = '\r\u001b[K';

/** A status line: on a terminal it is overwritten in place, in a pipe it is printed at most every five seconds. */
export class ProgressLine {
  readonly #stream = process.stderr;
  #isShown = false;
  #writtenAt = -Infinity;
  /**
   * When progress was first displayed (`at`, monotonic, in ms), and the count then (`done`). Undefined before the first call of
   * `progress`.
   */
  #begun: { readonly at: number; readonly done: number } | undefined;

  /**
   * Shows a text: on a terminal until the next text is shown; in a pipe as a line, unless the previous line was written less than
   * {@link IN_A_PIPE_EVERY_MS} ago.
   */
  show(text: string): void {
    const now = performance.now();
    if (this.#stream.isTTY) {
      this.#stream.write(CLEAR + text.slice(0, this.#stream.columns - 1));
      this.#isShown = true;
    } else if (now - this.#writtenAt >= IN_A_PIPE_EVERY_MS) {
      this.#stream.write(`${text}\n`);
      this.#writtenAt = now;
    }
  }

  /** Shows the progress of an operation, labeled `what`, its rate per second, and the estimated time left. To be used for one operation. */
  progress(what: string, done: number, total: number): void {
    const now = performance.now();
    this.#begun ??= { at: now, done };
    const rate = ((done - this.#begun.done) / (now - this.#begun.at)) * 1_000;
    const left =
      rate > 0 ? `, ${Math.round(rate)}/s, ${Math.ceil((total - done) / rate)} s left` : '';
    const percent = Math.floor((100 * done) / Math.max(1, total));
    this.show(`${what}: ${done} of ${total} (${percent} %)${left}`);
  }

  /** Erases the status line, so that other output can be written. */
  clear(): void {
    if (this.#isShown) this.#stream.write(CLEAR);
    this.#isShown = false;
  }

  /** Erases the status line and writes a permanent line. */
  end(text: string): void {
    this.clear();
    this.#stream.write(`${text}\n`);
  }
}
