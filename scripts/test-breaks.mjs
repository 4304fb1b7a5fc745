// `npm run test:breaks [PART of a name]`: shows which tests notice a part of the product that is broken, one break of test/breaks after
// the other. First it shows that with nothing broken nothing fails. Exits with 1 when a break goes unnoticed.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { argv, env, execPath, exit, kill, platform, stdout } from 'node:process';

/**
 * A run of tests that a break has to make fail.
 *
 * @typedef {{ name: string, args: string[], env?: Record<string, string> }} Suite
 */

const root = resolve(import.meta.dirname, '..');
const folder = 'test/breaks';
/** Longer than any suite takes: what is broken may go on for ever. */
const MAX_MS = 15 * 60_000;
/** Of what a suite prints, so many characters are kept. */
const MAX_OUTPUT = 100_000;
const SIMULATION = ['run', '--project', 'sim'];
const UNIT = [
  '--project=unit',
  '--project=mocked',
  '--project=slow-unit-all',
  '--exclude=test/sim/**',
];

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    running.forEach(end);
    exit(1);
  });
}

// Beside the folders is what breaks have in common.
const breaks = readdirSync(resolve(root, folder), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => relative(resolve(root, folder), join(parentPath, name)))
  .map((file) => file.replaceAll('\\', '/').slice(0, -'.ts'.length))
  .filter((name) => name.includes('/') && name.includes(argv[2] ?? ''))
  .sort();
if (breaks.length === 0) throw new Error(`no break has ${argv[2]} in its name`);

// Without it a test that fails by itself would notice everything.
const failing = await noticed(suitesOf(...breaks), '');
if (failing) {
  stdout.write(`${failing.output}\nnothing is broken, and yet: ${failing.by}\n`);
  exit(1);
}
const unnoticed = [];
for (const name of breaks) {
  const began = performance.now();
  const found = await noticed(suitesOf(name), name);
  if (!found) unnoticed.push(name);
  const seconds = ((performance.now() - began) / 1_000).toFixed(0).padStart(4);
  stdout.write(`${found ? 'noticed  ' : 'UNNOTICED'} ${seconds} s  ${name}`);
  stdout.write(found ? `  (${found.by})\n` : '\n');
}
stdout.write(`${breaks.length - unnoticed.length} noticed, ${unnoticed.length} unnoticed\n`);
exit(unnoticed.length > 0 ? 1 : 0);

/**
 * The simulation first: a few seeds show what is badly broken; then the unit tests that a break can reach. Of breaks that name
 * integration tests, as only Kafka shows them, those.
 *
 * @param {string[]} names
 * @returns {Suite[]}
 */
function suitesOf(...names) {
  const onKafka = new Set(names.flatMap(integrationTests));
  const others = names.filter((name) => integrationTests(name).length === 0);
  const related = others.map((name) => `${folder}/${name}.ts`);
  return [
    ...(others.length > 0
      ? [
          { name: 'simulation', args: SIMULATION, env: { SIM_SEEDS: '24' } },
          { name: 'simulation', args: SIMULATION, env: { SIM_FIRST: '25', SIM_SEEDS: '96' } },
          { name: 'unit tests', args: ['related', ...related, '--run', ...UNIT] },
        ]
      : []),
    ...(onKafka.size > 0
      ? [{ name: 'integration', args: ['run', '--project', 'integration', ...onKafka] }]
      : []),
  ];
}

/** @param {string} name */
function integrationTests(name) {
  const text = readFileSync(resolve(root, folder, `${name}.ts`), 'utf8');
  return text.match(/test\/integration\/[\w-]+\.test\.ts/g) ?? [];
}

/**
 * Which of the suites fails first, with which file of tests, and what it says; undefined when all pass.
 *
 * @param {Suite[]} suites
 * @param {string} broken empty where nothing is.
 */
async function noticed(suites, broken) {
  for (const { name, args, env: more } of suites) {
    const { passed, output } = await run(args, { BREAK: broken, ...more });
    if (passed) continue;
    const test = /FAIL .*?(test\/\S+)/.exec(output)?.[1];
    return { by: `${name}: ${test ?? 'it did not end well'}`, output };
  }
  return undefined;
}

/**
 * @param {string[]} args
 * @param {Record<string, string>} more
 * @returns {Promise<{ passed: boolean, output: string }>} the last of what it printed.
 */
function run(args, more) {
  const vitest = resolve(root, 'node_modules/vitest/vitest.mjs');
  const config = ['--config', 'vitest.breaks.config.ts', '--bail', '1'];
  const child = spawn(execPath, [vitest, ...args, ...config], {
    cwd: root,
    env: { ...env, NO_COLOR: '1', ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // with its workers in a group of its own: one in a loop ends only by a signal
  });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (/** @type {Buffer} */ chunk) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT);
    });
  }
  const late = setTimeout(() => end(child), MAX_MS);
  return new Promise((settle, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(late);
      running.delete(child);
      settle({ passed: code === 0, output });
    });
  });
}

/** @param {import('node:child_process').ChildProcess} child */
function end({ pid }) {
  if (pid === undefined) return;
  try {
    kill(platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}
