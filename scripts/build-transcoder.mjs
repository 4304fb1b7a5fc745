// AssemblyScript to WebAssembly: transcoder.wasm, where the tests and the build look for it. One that is newer than its sources stays.
import { execFileSync } from 'node:child_process';
import { readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { execPath, pid } from 'node:process';

const ROOT = join(import.meta.dirname, '..');
const COMPILER = join(ROOT, 'node_modules/assemblyscript/bin/asc.js');
const FOLDER = join(ROOT, 'src/schemas/avro/transcoder');
const TARGET = join(FOLDER, 'transcoder.wasm');

/** @param {string} name */
const isSource = (name) => name.endsWith('.ts');
/** When a file was changed; 0 where there is none. @param {string} file */
const changedAt = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const sources = [import.meta.filename, join(ROOT, 'node_modules/assemblyscript/package.json')];
for (const folder of [FOLDER, join(FOLDER, 'wasm')]) {
  sources.push(
    ...readdirSync(folder)
      .filter(isSource)
      .map((name) => join(folder, name)),
  );
}
if (changedAt(TARGET) <= Math.max(...sources.map(changedAt))) {
  const made = `transcoder.wasm.${pid}`; // others may be loading the old one just now
  const options = [
    ...['wasm/transcode.ts', '--outFile', made],
    ...['-O3', '--noAssert', '--runtime', 'stub', '--enable', 'simd'],
    ...['--disableWarning', '201'], // addresses have 32 bits, whatever they are called
  ];
  execFileSync(execPath, [COMPILER, ...options], { cwd: FOLDER, stdio: 'inherit' });
  renameSync(join(FOLDER, made), TARGET);
}
