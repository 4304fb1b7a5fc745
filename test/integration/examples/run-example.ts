import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { inject, onTestFinished, vi } from 'vitest';
import { folderForTest } from '../support/service.ts';

/** An example that runs. */
export interface Example {
  readonly stdin: ChildProcessWithoutNullStreams['stdin'];
  /** Its lines so far, of both outputs. */
  readonly lines: readonly string[];
  /** Resolves with what `look` finds in its lines as soon as that is neither undefined nor false. */
  until<T>(look: (lines: readonly string[]) => T | undefined | false): Promise<T>;
  /** Resolves when it has ended, with its code or the name of the signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
}

export interface RunOptions {
  /** Where it keeps what it keeps. Default a folder that nobody else has. */
  readonly folder?: string;
  /** Default node. */
  readonly program?: string;
}

/** Runs a file of `examples/` as a reader does; killed at the end of the test if it still runs then. */
export function runExample(file: string, prefix: string, options: RunOptions = {}): Example {
  const path = fileURLToPath(new URL(`../../../examples/${file}`, import.meta.url));
  return runProgram(path, prefix, options);
}

/** The same of any file. */
export function runProgram(path: string, prefix: string, options: RunOptions = {}): Example {
  const { folder = folderForTest(), program = process.execPath } = options;
  const child = spawn(program, [path], {
    env: {
      PATH: process.env.PATH,
      TMPDIR: folder,
      KAFKA_BROKERS: inject('brokers').join(','),
      SCHEMA_REGISTRY_URL: inject('registryUrl'),
      TOPIC_PREFIX: prefix,
    },
  });
  const lines: string[] = [];
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => lines.push(line));
  }
  let isOver = false;
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      isOver = true;
      resolve(signal ?? code ?? -1);
    });
  });
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return ended;
  };
  onTestFinished(async () => void (await end('SIGKILL')));
  return {
    stdin: child.stdin,
    lines,
    ended,
    end,
    until: <T>(look: (lines: readonly string[]) => T | undefined | false) =>
      vi.waitUntil(
        () => {
          const found = look(lines) ?? false;
          if (found === false && isOver) throw new Error(`it has ended: ${lines.join('\n')}`);
          return found;
        },
        { timeout: 60_000, interval: 50 },
      ) as Promise<T>,
  };
}
