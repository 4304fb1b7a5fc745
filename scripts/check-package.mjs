// Checks the package as its users get it: packs it, installs the archive in an empty project, looks at what is in
// it, imports each of its entries, compiles a program against their types, and runs its command.
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
  /^(package\.json|LICENSE|[A-Z]+\.md|docs\/(api\/)?[\w.-]+\.md|\.env\.example|pom\.xml|docker-compose\.yml|deploy\/[\w/@-]+\.(json|yml|yaml|service|env|properties|sql)|dist\/[\w/-]+\.(js|js\.map|d\.ts|avsc|wasm)|dist\/description\/(description\.schema\.json|[\w/-]+\.yaml)|dist\/ops\/(page|account|fleet)\.html)$/;

/**
 * What is done with each entry: a line that its types let pass, and one that they don't. The names are those of
 * functions that it exports.
 */
const ENTRIES = new Map([
  [
    'cellarstream',
    {
      names: ['run', 'loadConfig'],
      right: "const { kafka } = loadConfig({ env, cwd: '.', needs: ['kafka'] }); kafka.brokers;",
      wrong: "loadConfig({ env, cwd: '.', needs: ['coffee'] });",
    },
  ],
  [
    'cellarstream/consume',
    {
      names: ['replay', 'topicsUnder'],
      right: "const name: string = topicsUnder('shop').orderStatusChanges.name;",
      wrong: 'topicsUnder().giftCards;',
    },
  ],
  [
    'cellarstream/streams',
    {
      names: ['pages', 'tokenBucket'],
      right: 'tokenBucket({ capacity: 100, windowMs: 60_000 }).used().toFixed();',
      wrong: "tokenBucket({ capacity: 'many', windowMs: 60_000 });",
    },
  ],
  [
    'cellarstream/schemas',
    {
      names: ['createRegistry', 'frame', 'unframe'],
      right: 'const id: number = unframe(frame(1, Buffer.of(0))).schemaId;',
      wrong: 'createRegistry({ address: 1 });',
    },
  ],
  [
    'cellarstream/describe',
    {
      names: ['readDescription', 'listNamed', 'wine'],
      right: "const path: string = listNamed(wine, 'orders').path;",
      wrong: 'readDescription(1);',
    },
  ],
  [
    'cellarstream/sandbox',
    {
      names: ['startSandbox'],
      right: 'const url: string = (await startSandbox({ records: { orders: 10 } })).url;',
      wrong: "await startSandbox({ records: 'many' });",
    },
  ],
]);

/** @typedef {{ version: string, devDependencies: Record<string, string>, exports: Record<string, unknown> }} Manifest */
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
    ...['LICENSE', 'README.md', 'pom.xml', 'dist/cli.js'],
    ...schemas.map((file) => `dist/${file}`),
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
  const exported = Object.keys(manifest.exports).filter((path) => path !== './package.json');
  const entries = exported.map((path) => path.replace('.', 'cellarstream'));
  assert.deepEqual(
    entries,
    [...ENTRIES.keys()],
    'what is checked are not the entries of package.json',
  );
  for (const [entry, { names }] of ENTRIES) {
    const program = `
      import * as entry from '${entry}';
      for (const name of ${JSON.stringify(names)}) {
        if (entry[name] === undefined) throw new Error('${entry} lacks ' + name);
      }`;
    run(project, execPath, ['--input-type=module', '--eval', program]);
  }
  const start = `
    import { startSandbox } from 'cellarstream/sandbox';
    const sandbox = await startSandbox({ records: { orders: 10 } });
    await sandbox.close();`;
  run(project, execPath, ['--input-type=module', '--eval', start]);
  say(`${entries.join(', ')} import`);
}

function checkTypes() {
  const files = [...ENTRIES].map(([entry, { names, right, wrong }]) => {
    const file = `${entry.replace('/', '-')}.ts`;
    const program = `
      import { env } from 'node:process';
      import { ${names.join(', ')} } from '${entry}';
      ${right}
      // @ts-expect-error The types are there, and not any.
      ${wrong}
      export { env, ${names.join(', ')} };`;
    writeFileSync(join(project, file), program);
    return file;
  });
  const compilerOptions = {
    ...{ module: 'nodenext', moduleResolution: 'nodenext', target: 'es2022' },
    ...{ strict: true, noEmit: true, types: ['node'] },
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  run(project, 'npx', ['tsc']);
  say('types of each resolve and hold under nodenext');
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
