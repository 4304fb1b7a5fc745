// Checks the package as its users get it: packs it, installs the archive in an empty project, looks at what is in
// it, imports both of its entries, compiles a program against its types, and runs its command.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { env, execPath, stdout } from 'node:process';

const root = resolve(import.meta.dirname, '..');
const work = mkdtempSync(join(tmpdir(), 'cellarstream-package-'));
const project = join(work, 'project');
const installed = join(project, 'node_modules', 'cellarstream');

/** What may be in the archive: compiled code and what it reads, the texts, what starts the services. */
const MAY_HOLD =
  /^(package\.json|LICENSE|[A-Z]+\.md|docs\/(api\/)?[\w.-]+\.md|\.env\.example|pom\.xml|docker-compose\.yml|deploy\/[\w/-]+\.(json|yml|yaml|service)|dist\/[\w/-]+\.(js|js\.map|d\.ts|avsc)|dist\/ops\/page\.html)$/;

/** @typedef {{ version: string, devDependencies: Record<string, string> }} Manifest */
const manifest = /** @type {Manifest} */ (readJson(join(root, 'package.json')));

try {
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  run(root, 'npm', ['pack', '--pack-destination', work]);
  const archive = filesOf(work).find((file) => file.endsWith('.tgz'));
  assert(archive, 'npm pack left no archive');
  const { typescript, '@types/node': types } = manifest.devDependencies;
  const compiler = [`typescript@${typescript}`, `@types/node@${types}`];
  run(project, 'npm', ['install', '--no-audit', join(work, archive), ...compiler]);

  checkFiles();
  checkImports();
  checkTypes();
  checkCommand();
} finally {
  rmSync(work, { recursive: true, force: true });
}

function checkFiles() {
  const files = filesOf(installed);
  const schemas = filesOf(join(root, 'src')).filter((file) => file.endsWith('.avsc'));
  for (const file of [
    ...['LICENSE', 'README.md', 'pom.xml', 'dist/cli.js', 'dist/index.d.ts'],
    ...['dist/sandbox/index.d.ts', ...schemas.map((file) => `dist/${file}`)],
  ]) {
    assert(files.includes(file), `the package lacks ${file}`);
  }
  const foreign = files.filter((file) => !MAY_HOLD.test(file) || /(^|\/)(test|bench)\//.test(file));
  assert.deepEqual(foreign, [], 'the package holds what is not for its users');

  const places = [root, `${homedir()}/`, `${tmpdir()}/`];
  const telling = files.filter((file) => {
    const text = readFileSync(join(installed, file), 'utf8');
    return places.some((place) => text.includes(place)) || /\/(home|Users)\/\w+\//.test(text);
  });
  assert.deepEqual(telling, [], 'these files name folders of the machine they were made on');
  say(`${files.length} files, none missing, none too many`);
}

function checkImports() {
  const program = `
    import * as library from 'cellarstream';
    import { startSandbox } from 'cellarstream/sandbox';
    if (typeof library.tokenBucket !== 'function') throw new Error('cellarstream lacks tokenBucket');
    const sandbox = await startSandbox({ records: { orders: 10 } });
    await sandbox.close();`;
  run(project, execPath, ['--input-type=module', '--eval', program]);
  say('cellarstream and cellarstream/sandbox import');
}

function checkTypes() {
  const options = { module: 'nodenext', target: 'es2022', strict: true, noEmit: true };
  const config = { compilerOptions: { ...options, types: ['node'] }, files: ['program.ts'] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
  writeFileSync(
    join(project, 'program.ts'),
    `import { tokenBucket } from 'cellarstream';
    import { startSandbox } from 'cellarstream/sandbox';
    import type { Sandbox } from 'cellarstream/sandbox';
    export const limit = tokenBucket({ capacity: 100, windowMs: 60_000 });
    export const sandbox: Sandbox = await startSandbox({ records: { orders: 10 } });
    // @ts-expect-error The types are there, and not any.
    tokenBucket({ capacity: 'many' });
    // @ts-expect-error
    await startSandbox({ records: 'many' });\n`,
  );
  run(project, 'npx', ['tsc']);
  say('types resolve and hold under nodenext');
}

function checkCommand() {
  const help = run(project, 'npx', ['cellarstream', '--help']);
  assert.match(help, /^Usage: cellarstream/);
  assert.equal(run(project, 'npx', ['cellarstream', '--version']).trim(), manifest.version);
  // Without settings it ends with 2, after it has loaded all its parts and what is native among them.
  const { PATH, HOME } = env;
  const plain = { cwd: project, encoding: /** @type {const} */ ('utf8'), env: { PATH, HOME } };
  const { status, stderr } = spawnSync('npx', ['cellarstream', 'run'], plain);
  assert.equal(status, 2, stderr);
  assert.match(stderr, /API_BASE_URL/);
  say('npx cellarstream runs');
}

/**
 * Gives what it wrote to stdout; throws with all that it wrote when it fails.
 *
 * @param {string} cwd
 * @param {string} command
 * @param {string[]} args
 */
function run(cwd, command, args) {
  const result = spawnSync(command, args, { cwd, encoding: 'utf8' });
  const what = [command, ...args.filter((arg) => !arg.includes('\n'))].join(' ');
  assert.equal(result.status, 0, `${what}\n${result.stdout}${result.stderr}`);
  return result.stdout;
}

/**
 * Paths below a folder, with `/`, without what is in node_modules.
 *
 * @param {string} folder
 */
function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((path) => !path.includes('node_modules/'))
    .sort();
}

/**
 * @param {string} path
 * @returns {unknown}
 */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** @param {string} line */
function say(line) {
  stdout.write(`${line}\n`);
}
