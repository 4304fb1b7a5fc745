import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PATIENCE_MS } from './running-test.ts';

/** A line of the service's log. */
export interface LogLine {
  readonly event?: string;
  readonly level?: string;
  readonly msg?: string;
  readonly done?: boolean;
  readonly [field: string]: unknown;
}

/** The built command, running. */
export interface Cli {
  readonly process: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The log lines so far. */
  readonly lines: () => readonly LogLine[];
  /** Resolves with the first log line, past or to come, that the test accepts; rejects with the last lines after {@link PATIENCE_MS}. */
  readonly logged: (accept: (line: LogLine) => boolean) => Promise<LogLine>;
  /** Resolves when it has ended, with its code or the name of the signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Resolves when it has ended with code 0; otherwise rejects with what it printed. */
  readonly succeeded: () => Promise<void>;
  /** Sends a signal and waits for the end. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals>;
}

/** Lines of stderr that are not log lines: messages for people. */
export const saidBy = (stderr: string): readonly string[] =>
  stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));

const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));
/** The `cli.js` of other builds, from `TEST_CLIS`, separated by commas: started in turn with this one, so that each continues the other. */
const CLIS = [...(process.env.TEST_CLIS?.split(',') ?? []), CLI];
let started = 0;

/**
 * Runs `cellarstream ...` as a user does, with these settings and none of the test's own.
 *
 * @param limits What a shell does first, such as `ulimit -f 1000`; default none is asked.
 */
export function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  limits?: string,
): Cli {
  if (!existsSync(CLI)) throw new Error('dist/cli.js is not there: run `npm run build` first');
  const { PATH = '', HOME = '' } = process.env;
  const command = [process.execPath, CLIS[started++ % CLIS.length]!, ...args] as const;
  const [program, ...rest] =
    limits === undefined ? command : ['bash', '-c', `${limits}; exec "$0" "$@"`, ...command];
  const child = spawn(program, rest, {
    env: { PATH, HOME, NO_COLOR: '1', HTTP_PORT: '0', ...env }, // many run at once
    cwd: existsSync(env.STATE_DIR ?? '') ? env.STATE_DIR : '/', // where no `.env` is
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const lines: LogLine[] = [];
  const waiting = new Set<() => void>();
  let partial = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    const parts = (partial + text).split('\n');
    partial = parts.pop() ?? '';
    for (const part of parts) if (part.startsWith('{')) lines.push(JSON.parse(part) as LogLine);
    for (const check of [...waiting]) check();
  });
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code ?? -1));
  });
  return {
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    lines: () => lines,
    ended,
    succeeded: async () => {
      const code = await ended;
      if (code !== 0) throw new Error(`ended with ${code}: ${(stdout + stderr).slice(-4_000)}`);
    },
    end: (signal) => {
      child.kill(signal);
      return ended;
    },
    logged: (accept) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const line = lines.find(accept);
          if (!line) return;
          waiting.delete(check);
          resolve(line);
        };
        waiting.add(check);
        const inVain = (what: string) => {
          waiting.delete(check);
          reject(new Error(`${what}: ${stderr.slice(-2_000)}`));
        };
        void ended.then((code) => inVain(`ended with ${code} first`));
        const patience = setTimeout(inVain, PATIENCE_MS, 'no such line for three minutes');
        patience.unref();
        check();
      }),
  };
}
