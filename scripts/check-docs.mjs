// `node scripts/check-docs.mjs`: whether docs/api is what TypeDoc makes of the doc comments now, and whether it
// has anything against them: exports without one, links that lead nowhere. `npm run docs` writes it anew.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process, { execPath, stdout } from 'node:process';

const root = resolve(import.meta.dirname, '..');
const written = join(root, 'docs', 'api');
const work = mkdtempSync(join(tmpdir(), 'cellarstream-docs-'));

try {
  process.exitCode = check() ? 0 : 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function check() {
  const typedoc = join(root, 'node_modules', 'typedoc', 'bin', 'typedoc');
  const made = join(work, 'api');
  const { status } = spawnSync(execPath, [typedoc, '--out', made], { cwd: root, stdio: 'inherit' });
  if (status !== 0) return false;

  const files = new Set([...filesOf(made), ...filesOf(written)]);
  const stale = [...files].filter((file) => textOf(made, file) !== textOf(written, file));
  for (const file of stale) stdout.write(`docs/api/${file} is out of date: npm run docs\n`);
  return stale.length === 0;
}

/** @param {string} folder */
function filesOf(folder) {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/**
 * @param {string} folder
 * @param {string} file
 */
function textOf(folder, file) {
  const path = join(folder, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}
