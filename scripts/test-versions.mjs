// `node scripts/test-versions.mjs [PART...]`: the integration tests that read and write Kafka (project `versions-all`
// of vitest.config.ts) against other versions than those of pom.xml: each Kafka with the usual registry, and the usual
// Kafka with each other registry. One run after the other, or only those whose name has a PART (`4.0.2`). Ends with a
// table; exits with 1 when a test failed or a run came to nothing. Maven fetches what is not in the cache.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { argv, env, execPath, exit, stderr, stdout } from 'node:process';
import { findJava } from '../dist/devstack/jar-cache.js';

const root = resolve(import.meta.dirname, '..');
const pom = readFileSync(join(root, 'pom.xml'), 'utf8');
const USUAL = { kafka: usual('kafka'), registry: usual('apicurio') };

/**
 * Newest of 3.9, 4.0 and 4.x; the last registry of 2.x and the newest.
 *
 * @type {readonly { kafka?: string, registry?: string, java?: number }[]}
 */
const RUNS = [
  { kafka: '3.9.2' },
  { kafka: '4.0.2' },
  { kafka: '4.4.0' },
  { registry: '2.6.13.Final' },
  { registry: '3.3.3', java: 21 },
];

const NOT_RUN = { passed: 'not run', failed: '', skipped: '' };

/** A JDK for servers that do not run on the usual Java. */
const NEWER_JAVA = 'NEWER_JAVA_HOME';

if (env.KAFKA_BROKERS || env.SCHEMA_REGISTRY_URL) {
  stderr.write('KAFKA_BROKERS and SCHEMA_REGISTRY_URL name servers of one version: unset both\n');
  exit(2);
}

const work = mkdtempSync(join(tmpdir(), 'cellarstream-versions-'));
/** @type {Record<string, string | number>[]} */
const table = [];
let hasFailed = false;
try {
  const parts = argv.slice(2);
  const named = RUNS.map(({ java, ...versions }) => ({ ...USUAL, ...versions, java }));
  const isChosen = (/** @type {{ kafka: string, registry: string }} */ { kafka, registry }) =>
    parts.length === 0 ||
    parts.some((part) => `Kafka ${kafka} registry ${registry}`.includes(part));
  for (const { kafka, registry, java } of named.filter(isChosen)) {
    stdout.write(`\n== Kafka ${kafka}, registry ${registry}\n`);
    const began = performance.now();
    const javaEnv = await javaFor(java);
    const counted = javaEnv && (await run(kafka, registry, javaEnv));
    const seconds = Math.round((performance.now() - began) / 1_000);
    if (!javaEnv) stdout.write(`NOT RUN: it needs Java ${java}, by ${NEWER_JAVA} or JAVA_HOME\n`);
    table.push({ kafka, registry, ...(counted ?? NOT_RUN), seconds });
    hasFailed ||= counted !== undefined && (counted.failed > 0 || counted.passed === 0);
  }
  hasFailed ||= table.every(({ passed }) => passed === NOT_RUN.passed);
} finally {
  rmSync(work, { recursive: true, force: true });
}
console.table(table);
exit(hasFailed ? 1 : 0);

/**
 * What to run with, where that is Java `least` or newer; undefined where there is none.
 *
 * @param {number | undefined} least
 * @returns {Promise<NodeJS.ProcessEnv | undefined>}
 */
async function javaFor(least) {
  const tried = [env, ...(env[NEWER_JAVA] ? [{ ...env, JAVA_HOME: env[NEWER_JAVA] }] : [])];
  for (const each of tried) {
    const java = await findJava(each, least);
    if (!java.found) continue;
    // Some of the tests take `java` from the PATH.
    return each.JAVA_HOME
      ? { ...each, PATH: join(each.JAVA_HOME, 'bin') + delimiter + (each.PATH ?? '') }
      : each;
  }
  return undefined;
}

/**
 * @param {string} kafka
 * @param {string} registry
 * @param {NodeJS.ProcessEnv} javaEnv
 */
async function run(kafka, registry, javaEnv) {
  const report = join(work, `${kafka}-${registry}.json`);
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const child = spawn(execPath, [vitest, 'run', '--project', 'versions-all'], {
    cwd: root,
    env: {
      ...javaEnv,
      TEST_KAFKA_VERSION: kafka,
      TEST_REGISTRY_VERSION: registry,
      TEST_REPORT: report,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  /** @type {unknown} */
  const code = await new Promise((settle) => {
    child.once('error', settle);
    child.once('close', settle);
  });
  const counted = counts(report);
  // A run that ends badly though no test failed: something went wrong around them.
  return code === 0 ? counted : { ...counted, failed: Math.max(1, counted.failed) };
}

/**
 * @param {string} report
 * @returns {{ passed: number, failed: number, skipped: number }}
 */
function counts(report) {
  /** @type {string} */
  let text;
  try {
    text = readFileSync(report, 'utf8');
  } catch {
    return { passed: 0, failed: 1, skipped: 0 }; // the servers did not start, and it was said why
  }
  const { numPassedTests, numFailedTests, numTotalTests } =
    /** @type {{ numPassedTests: number, numFailedTests: number, numTotalTests: number }} */ (
      parsed(text)
    );
  return {
    passed: numPassedTests,
    failed: numFailedTests,
    skipped: numTotalTests - numPassedTests - numFailedTests,
  };
}

/**
 * @param {string} text
 * @returns {unknown}
 */
function parsed(text) {
  return JSON.parse(text);
}

/** @param {string} name of a property */
function usual(name) {
  return new RegExp(`<${name}\\.version>(.+?)<`).exec(pom)?.[1] ?? '';
}
