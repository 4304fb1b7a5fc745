// @ts-check
// A part of a process's life in V8's own terms, once its beginning is over: a profile of the processor and, at the end of
// that, a snapshot of the heap.
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL, fileURLToPath } from 'node:url';

const PRELOADED = fileURLToPath(new URL('./write-profile.mjs', import.meta.url));
const LOOK_EVERY_MS = 200;

/**
 * @param {string} folder
 * @param {string} name Of both files, in front of their endings.
 */
export function profiledOnSignal(folder, name) {
  mkdirSync(folder, { recursive: true });
  const path = resolve(join(folder, name));
  const preloaded = pathToFileURL(PRELOADED);
  preloaded.searchParams.set('path', path);
  const signal = (/** @type {number} */ pid) => process.kill(pid, 'SIGUSR2');
  return {
    /** Of the process. */
    nodeFlags: [`--import=${preloaded.href}`],
    begin: (/** @type {number} */ pid) => signal(pid),
    /** Resolves when both files are written. */
    end: async (/** @type {number} */ pid) => {
      signal(pid);
      while (!existsSync(`${path}.done`)) await delay(LOOK_EVERY_MS);
    },
  };
}
