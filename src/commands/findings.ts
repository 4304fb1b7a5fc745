import { describeError } from '../core/errors.ts';
import { stdoutColors, tableLines } from './terminal.ts';

export interface Finding {
  readonly what: string;
  readonly fine: boolean;
  /** Whether the finding is a warning: the checked thing works but is inadvisable. Default false. */
  readonly isUnwise?: boolean;
  readonly detail: string;
}

/** Runs one check and returns its finding: a success with the text that the check returns, or a failure with the error's text. */
export async function tryCheck(
  what: string,
  work: () => string | Promise<string>,
): Promise<Finding> {
  try {
    return { what, fine: true, detail: await work() };
  } catch (error) {
    return { what, fine: false, detail: describeError(error) };
  }
}

/** Returns the findings as lines of text, each with a mark: `ok`, `warn` or `FAIL`. */
export function findingsTable(findings: readonly Finding[]): string {
  const { green, yellow, red } = stdoutColors();
  const marks = { ok: green, warn: yellow, FAIL: red };
  const markOf = ({ fine, isUnwise }: Finding) => (!fine ? 'FAIL' : isUnwise ? 'warn' : 'ok');
  const rows = findings.map((finding) => [finding.what, markOf(finding).padEnd(4), finding.detail]);
  const lines = tableLines(rows, 1, (text, row) => marks[markOf(findings[row]!)](text));
  return lines.map((line) => `${line}\n`).join('');
}
