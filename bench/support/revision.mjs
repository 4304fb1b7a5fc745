// @ts-check
// Another revision of the project, built beside this one.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { UsageError } from './options.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Of a program that is run: npm and tsc may have much to say. */
const MAX_OUTPUT_BYTES = 2 ** 26;
const LOCK = 'package-lock.json';
const execute = promisify(execFile);

/** @typedef {{ readonly name: string, readonly cli: string }} Revision `name`: short, as git has it. */

/**
 * Takes it from git into a temporary folder, with the packages of its own lock, and builds it.
 *
 * @param {import('./scope.mjs').Scope} scope Removes it.
 * @param {string} revision As git understands it.
 * @param {(line: string) => void} tell
 * @returns {Promise<Revision>}
 * @throws {UsageError} when there is no such revision.
 */
export async function buildRevision(scope, revision, tell) {
  const git = (/** @type {string[]} */ ...args) => execute('git', ['-C', ROOT, ...args]);
  const named = await git(
    'rev-parse',
    '--verify',
    '--quiet',
    '--short=12',
    `${revision}^{commit}`,
  ).catch(() => {
    throw new UsageError(`--against: git knows no revision ${revision}`);
  });
  const name = named.stdout.trim();
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-revision-'));
  scope.add(async () => {
    await git('worktree', 'remove', '--force', folder).catch(() => undefined); // it may not have come to that
    rmSync(folder, { recursive: true, force: true });
    await git('worktree', 'prune');
  });
  const ended = new AbortController();
  scope.add(() => ended.abort());
  const run = (/** @type {string} */ program, /** @type {string[]} */ args, cwd = ROOT) =>
    execute(program, args, { cwd, signal: ended.signal, maxBuffer: MAX_OUTPUT_BYTES });
  tell(`building ${name} in a folder of its own`);
  await git('worktree', 'add', '--detach', folder, name);
  const locks = await Promise.all([ROOT, folder].map((root) => readFile(join(root, LOCK), 'utf8')));
  const fetched = () => run('npm', ['ci', '--no-audit', '--no-fund'], folder);
  // The same packages need not be fetched again, nor be there twice: where files can have two names.
  const linked = () => run('cp', ['-al', join(ROOT, 'node_modules'), folder]);
  await (locks[0] === locks[1] ? linked().catch(fetched) : fetched());
  await run('npm', ['run', 'build'], folder);
  return { name, cli: join(folder, 'dist', 'cli.js') };
}
