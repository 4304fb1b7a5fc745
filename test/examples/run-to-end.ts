import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a file of `examples/` with no settings but these, from `dist`, until it ends. */
export function runToEnd(file: string, settings: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const path = fileURLToPath(new URL(`../../examples/${file}`, import.meta.url));
  const env = { PATH: process.env.PATH, ...settings };
  return new Promise((resolve) => {
    execFile(process.execPath, [path], { env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}
