import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { objectIn } from '../core/http-text.ts';

/** A line of an instance's log, limited to the fields that the demo uses. */
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

export interface InstanceEnd {
  /** Exit code; null if a signal ended the process. */
  readonly code: number | null;
  /** Reason for the end, such as `SIGKILL` or `exit code 1`. */
  readonly cause: string;
  /** Last line of stderr that is not a log line, such as the text of a fatal error. Empty if there was none. */
  readonly lastOutput: string;
}

/** Path of the compiled command, also when this file runs from src: Node 20 can't run TypeScript. */
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const END_WITH_PARENT = new URL('../../dist/commands/end-with-parent.js', import.meta.url).href;

/** How long an instance may take to hand over its accounts and end before it is killed, in ms. */
const STOP_TIMEOUT_MS = 25_000;

/** A child process that runs `cellarstream run`. It ends when this process ends, even by SIGKILL. */
export class InstanceProcess {
  readonly ended: Promise<InstanceEnd>;
  readonly #child: ChildProcess;

  constructor(
    env: Readonly<Record<string, string | undefined>>,
    cwd: string,
    onLine: (line: InstanceLine) => void,
  ) {
    const child = spawn(process.execPath, ['--import', END_WITH_PARENT, CLI, 'run'], {
      // Detached, so that Ctrl-C reaches only the demo, which then stops the instances. A second signal would end an instance without a
      // clean stop.
      ...{ env, cwd, detached: true },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child = child;
    let lastOutput = '';
    createInterface({ input: child.stderr! }).on('line', (text) => {
      const line = objectIn(text); // undefined also for a line that a kill has truncated
      if (line) onLine(line);
      else lastOutput = text;
    });
    this.ended = new Promise((resolve) => {
      child.once('error', ({ message }) => {
        if (child.pid === undefined)
          resolve({ code: 1, cause: 'not started', lastOutput: message });
      });
      child.once('close', (code, signal) => {
        resolve({ code, cause: signal ?? `exit code ${code}`, lastOutput });
      });
    });
  }

  /** Process id; undefined if the process could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Stops the process and resolves when it has ended; a process that takes too long is killed. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    this.#child.kill('SIGCONT'); // wakes a paused process, so that it receives the SIGTERM
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.ended;
    clearTimeout(late);
  }
}
