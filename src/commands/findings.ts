import pc from 'picocolors';
import { describeError } from '../core/errors.ts';

/** What was found of one thing that the service needs. */
export interface Finding {
  readonly what: string;
  readonly fine: boolean;
  /** Whether it works, but is unwise. Default false. */
  readonly isUnwise?: boolean;
  readonly detail: string;
}

/** Tries something: what it gives is fine, and what it throws is why not. */
export async function attempt(what: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return { what, fine: true, detail: await work() };
  } catch (error) {
    return { what, fine: false, detail: describeError(error) };
  }
}

/** A line for each. */
export function findingsTable(findings: readonly Finding[]): string {
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const width = Math.max(...findings.map(({ what }) => what.length));
  return findings
    .map(({ what, fine, isUnwise = false, detail }) => {
      const good = isUnwise ? colors.yellow('warn') : colors.green('ok  ');
      const mark = fine ? good : colors.red('FAIL');
      return `${what.padEnd(width)}  ${mark}  ${detail}\n`;
    })
    .join('');
}
