// @ts-check
// The service as it is run: the built command in a process of its own, seen from outside.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { now } from './clock.mjs';
import { metric, readMetrics } from './metrics.mjs';
import { anonymousBytes, cpuSeconds } from './process-usage.mjs';

/** Of its log, in an error. */
const SAID_CHARS = 1_000;

/** @typedef {Readonly<Record<string, unknown>> & { readonly at: number }} Line A line of its log; `at`: when it was read. */

/**
 * @typedef {object} Service
 * @property {number} pid
 * @property {number} startedAt
 * @property {string} url Of its status port.
 * @property {(accept: (line: Line) => boolean) => Promise<Line>} logged The first line, past or to come, that is accepted.
 * @property {() => readonly Line[]} lines So far.
 * @property {() => Promise<import('./metrics.mjs').Metrics>} metrics
 * @property {() => Promise<number>} cpu Seconds so far.
 * @property {() => number | undefined} memory Bytes that no file stands behind, where the system tells.
 * @property {(signal?: NodeJS.Signals) => Promise<void>} end Default SIGTERM.
 */

/**
 * @typedef {object} ServiceOptions
 * @property {Pick<import('./sandbox.mjs').Sandbox, 'url' | 'apiKey'>} sandbox
 * @property {string} prefix Of its topics.
 * @property {string} state Its folder.
 * @property {Readonly<Record<string, string>>} settings As in its environment.
 * @property {readonly string[]} [nodeFlags] Default none.
 */

/**
 * @param {Pick<import('./measure.mjs').Context, 'cli' | 'services'>} context
 * @param {import('./scope.mjs').Scope} scope Ends it.
 * @param {ServiceOptions} options
 * @returns {Promise<Service>} when its status port is open.
 */
export async function startService(context, scope, options) {
  const { sandbox, prefix, state, settings, nodeFlags = [] } = options;
  const startedAt = now();
  const child = spawn(process.execPath, [...nodeFlags, context.cli, 'run'], {
    cwd: state, // where no `.env` is
    env: {
      PATH: process.env.PATH,
      API_BASE_URL: sandbox.url,
      API_KEY: sandbox.apiKey,
      KAFKA_BROKERS: context.services.brokers.join(','),
      SCHEMA_REGISTRY_URL: context.services.registryUrl,
      TOPIC_PREFIX: prefix,
      STATE_DIR: state,
      HTTP_PORT: '0',
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const pid = /** @type {number} */ (child.pid);
  /** @type {Line[]} */
  const lines = [];
  /** @type {Set<() => void>} */
  const waiting = new Set();
  let rest = '';
  let said = '';
  child.stderr.on('data', (/** @type {Buffer} */ chunk) => {
    said = (said + chunk.toString()).slice(-SAID_CHARS);
    const parts = (rest + chunk.toString()).split('\n');
    rest = parts.pop() ?? '';
    const at = now();
    for (const part of parts) {
      if (part.startsWith('{')) lines.push({ .../** @type {object} */ (JSON.parse(part)), at });
    }
    for (const check of [...waiting]) check();
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const end = async (/** @type {NodeJS.Signals} */ signal = 'SIGTERM') => {
    child.kill(signal);
    await ended;
  };
  scope.add(() => end('SIGKILL')); // nothing of it is needed any more

  /** @type {Service['logged']} */
  const logged = (accept) =>
    new Promise((resolve, reject) => {
      const check = () => {
        const line = lines.find(accept);
        if (!line) return;
        waiting.delete(check);
        resolve(line);
      };
      waiting.add(check);
      void ended.then(() => {
        reject(new Error(`the service has ended: ${said}`));
      });
      check();
    });
  const url = String((await logged(({ event }) => event === 'listening')).url);
  const metrics = () =>
    readMetrics(url).catch((cause) => {
      throw new Error(`the service does not answer; its log ends with ${said}`, { cause });
    });
  return {
    pid,
    startedAt,
    url,
    logged,
    lines: () => lines,
    metrics,
    cpu: async () => cpuSeconds(pid) ?? metric(await metrics(), 'process_cpu_seconds_total'),
    memory: () => anonymousBytes(pid),
    end,
  };
}

/** The line with which a list's initial snapshot is done. @param {string} resource @returns {(line: Line) => boolean} */
export const firstReadDone = (resource) => (line) =>
  line.event === 'first-read' && line.resource === resource && line.done === true;

/** A folder for a service, which goes with the scope. @param {import('./scope.mjs').Scope} scope */
export function stateFolder(scope) {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-bench-'));
  scope.add(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
