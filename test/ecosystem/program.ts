import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { atEnd } from '../integration/support/running-test.ts';

/**
 * Starts a program that ends with the test.
 *
 * @param options `log`: file for its output. `uid`: user that it runs as; default the user of the test.
 */
export function start(
  command: string,
  args: readonly string[],
  options: { readonly uid?: number; readonly log: string },
): ChildProcess {
  const out = openSync(options.log, 'a');
  const stdio: StdioOptions = ['ignore', out, out];
  const ids = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid };
  const child: ChildProcess = spawn(command, args, { stdio, ...ids, cwd: '/' });
  atEnd(async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  });
  return child;
}
