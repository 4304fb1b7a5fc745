import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A line of an instance's log, as far as it is looked at. */
export interface InstanceLine {
  readonly level?: string;
  readonly event?: string;
  readonly msg?: string;
  readonly account?: string;
  readonly step?: string;
  readonly url?: string;
  readonly instances?: readonly string[];
  readonly err?: { readonly message?: string };
}

/** How an instance has ended. */
export interface InstanceEnd {
  /** Null where a signal ended it. */
  readonly code: number | null;
  /** `SIGKILL`, `exit code 1`. */
  readonly how: string;
  /** What it has written last that is no line of the log: its error, where it has one. */
  readonly lastWords: string;
}

export interface InstanceProcess {
  /** Undefined where it could not be started at all. */
  readonly pid: number | undefined;
  readonly ended: Promise<InstanceEnd>;
  /** Resolves when it has ended; one that takes too long is killed. */
  readonly stop: () => Promise<void>;
}

export interface InstanceProcessOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly onLine: (line: InstanceLine) => void;
}

/** The compiled files, from src and dist alike: Node 20 runs no TypeScript. */
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const END_WITH_PARENT = new URL('../../dist/commands/end-with-parent.js', import.meta.url).href;

/** An instance hands its accounts over before it ends. */
const STOP_WITHIN_MS = 25_000;

/**
 * `cellarstream run` in a process of its own, which ends with this one, in whatever way that ends. It is in no group with it:
 * Ctrl-C reaches the demo alone, and a second signal would end an instance at once.
 */
export function instanceProcess({ env, cwd, onLine }: InstanceProcessOptions): InstanceProcess {
  const child = spawn(process.execPath, ['--import', END_WITH_PARENT, CLI, 'run'], {
    ...{ env, cwd, detached: true },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let lastWords = '';
  createInterface({ input: child.stderr! }).on('line', (text) => {
    const line = lineOf(text);
    if (line) onLine(line);
    else lastWords = text;
  });
  const ended = new Promise<InstanceEnd>((resolve) => {
    child.once('error', ({ message }) => {
      if (child.pid === undefined) resolve({ code: 1, how: 'not started', lastWords: message });
    });
    child.once('close', (code, signal) => {
      resolve({ code, how: signal ?? `exit code ${code}`, lastWords });
    });
  });
  return { pid: child.pid, ended, stop: () => stop(child, ended) };
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.kill('SIGTERM');
  child.kill('SIGCONT'); // one that somebody paused would not hear of it
  const over = new AbortController();
  const late = pause(STOP_WITHIN_MS, undefined, { signal: over.signal }).then(
    () => child.kill('SIGKILL'),
    () => undefined,
  );
  await Promise.race([ended, late]);
  over.abort();
  await ended;
}

/** Undefined for what is no line of the log. */
function lineOf(text: string): InstanceLine | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as InstanceLine;
  } catch {
    return undefined; // cut off, as by a kill
  }
}
