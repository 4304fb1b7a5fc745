import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The oldest Java that both servers run on. */
const OLDEST_JAVA = 17;

/** A program to start, or why there is none, as part of a sentence. */
export type Tool =
  | { readonly found: true; readonly command: string; readonly reason?: undefined }
  | { readonly found: false; readonly reason: string };

/** The `java` of `JAVA_HOME` if that is set, else the one on the `PATH`; `oldest` or newer, default 17. */
export async function findJava(env: NodeJS.ProcessEnv, oldest = OLDEST_JAVA): Promise<Tool> {
  const home = env.JAVA_HOME;
  const command = home ? join(home, 'bin', 'java') : 'java';
  const where = home ? 'in JAVA_HOME' : 'on the PATH';
  const text = await versionText(command, '-version', env);
  if (text === undefined) return { found: false, reason: `no working java ${where}` };
  const version = /version "(?:1\.)?(\d+)/.exec(text)?.[1] ?? 'of an unknown version';
  return Number(version) >= oldest
    ? { found: true, command }
    : { found: false, reason: `the java ${where} is ${version}` };
}

/** The `mvn` on the `PATH`. */
export async function findMaven(env: NodeJS.ProcessEnv): Promise<Tool> {
  const text = await versionText('mvn', '--version', env);
  return text === undefined
    ? { found: false, reason: 'no working mvn on the PATH' }
    : { found: true, command: 'mvn' };
}

/** What the program says of itself, on either stream; undefined when it can't be run. */
export async function versionText(
  command: string,
  flag: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await run(command, [flag], { env, timeout: 30_000 });
    return stderr + stdout;
  } catch {
    // Absent, not executable, or broken: to the caller all the same, it is of no use.
    return undefined;
  }
}
