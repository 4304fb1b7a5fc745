import { stripVTControlCharacters } from 'node:util';
import { vi } from 'vitest';
import { CellarstreamError, describeError } from '../../../src/core/errors.ts';
import type { Env } from './service.ts';

/** Result of a command, as {@link runCli} would give it. */
export interface Ended {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Runs a command's function in the test's process, with these settings alone: starting Node and loading the built modules takes most
 * of the time of a short command. For tests of what a command finds and prints; argument parsing, signals and exit codes of the
 * process need {@link runCli}. Only for tests that run one at a time: `process.env` and the output streams are replaced meanwhile.
 *
 * @param command Resolves to whether all is right; undefined counts as right.
 */
export async function commandHere(
  command: () => Promise<boolean | void>,
  env: Env,
): Promise<Ended> {
  const [before, cwd] = [process.env, vi.spyOn(process, 'cwd').mockReturnValue('/')];
  const listeners = SIGNALS.map((signal) => process.listeners(signal));
  const [out, err] = [capture(process.stdout), capture(process.stderr)];
  process.env = { ...env };
  let exit: number;
  try {
    exit = (await command()) === false ? 1 : 0;
  } catch (error) {
    const isUsage = error instanceof CellarstreamError && error.code === 'SETTINGS';
    exit = isUsage ? 2 : 1;
    process.stderr.write(`cellarstream: ${isUsage ? error.message : describeError(error)}\n`);
  } finally {
    process.env = before;
    for (const spy of [out.spy, err.spy, cwd]) spy.mockRestore();
    // Left behind, they would keep the worker from ending at a signal.
    SIGNALS.forEach((signal, nth) => {
      for (const listener of process.listeners(signal)) {
        if (!listeners[nth]!.includes(listener)) process.removeListener(signal, listener);
      }
    });
  }
  // Whether there are colors was decided by the environment in which the tests began, such as `CI`.
  const [stdout, stderr] = [out.text(), err.text()].map(stripVTControlCharacters) as [
    string,
    string,
  ];
  return { exit, stdout, stderr };
}

function capture(stream: NodeJS.WriteStream) {
  let text = '';
  const spy = vi
    .spyOn(stream, 'write')
    .mockImplementation((chunk: string | Uint8Array, ...rest: unknown[]) => {
      text += String(chunk);
      const done = rest.at(-1);
      if (typeof done === 'function') (done as () => void)();
      return true;
    });
  return { spy, text: () => text };
}
