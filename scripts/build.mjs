// `npm run build`: dist, with the WebAssembly, the Avro schemas and the status pages. Does nothing if no source has changed since the last build.
// Types are not checked here but by `npm run typecheck`: that takes longer than all else.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { execPath, exit } from 'node:process';

const ROOT = join(import.meta.dirname, '..');
/** Files and folders that the build reads. Folders count too: their times tell of files that were removed. */
const SOURCES = ['src', 'scripts', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];
/** The file that the build writes last. */
const LAST = 'dist/ops/fleet.html';
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
/** Commands of each step run at once; a step begins when the one before has ended. */
const STEPS = [
  [['scripts/build-transcoder.mjs'], [TSC, '-p', 'tsconfig.build.json', '--noCheck']],
  [['scripts/copy-assets.mjs']],
  [['scripts/build-page.mjs']],
];

/** Exit code of a command of Node, which prints its own errors. @param {string[]} args */
const run = async (args) => {
  const child = spawn(execPath, args, { cwd: ROOT, stdio: 'inherit' });
  await once(child, 'exit');
  return child.exitCode ?? 1;
};

/** Time of the last change in ms; 0 for a file that does not exist. @param {string} path */
const changedAt = (path) => statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const isGenerated = (/** @type {string} */ path) => path.includes('.wasm');
const paths = SOURCES.flatMap((source) => {
  const isFolder = statSync(join(ROOT, source)).isDirectory();
  const below = isFolder
    ? readdirSync(join(ROOT, source), { recursive: true, encoding: 'utf8' })
    : [];
  return [source, ...below.map((path) => join(source, path))];
}).filter((path) => !isGenerated(path));

if (Math.max(...paths.map(changedAt)) >= changedAt(LAST)) {
  for (const step of STEPS) {
    const failed = (await Promise.all(step.map(run))).find((code) => code !== 0);
    if (failed !== undefined) exit(failed);
  }
}
