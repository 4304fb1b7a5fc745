import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'cellarstream');

/** A folder of the cache, filled once by a command that writes into the folder that it is given. */
export function cached(name: string, fill: (folder: string) => readonly string[]): string {
  const folder = join(CACHE, name);
  if (existsSync(folder)) return folder;
  const fresh = `${folder}.partial-${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    const [command, ...args] = fill(fresh) as [string, ...string[]];
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return folder;
}

/** The jars of a POM of this folder with all that they depend on, in a folder of the cache. */
export function cachedJars(name: string, pom: string): string {
  const file = fileURLToPath(new URL(pom, import.meta.url));
  return cached(name, (to) => [
    ...['mvn', '-q', '-B', '-f', file, 'dependency:copy-dependencies', '-DincludeScope=runtime'],
    `-DoutputDirectory=${to}`,
  ]);
}
