// @ts-check
// What 200 slow and hostile clients of the status port cost the pipeline: first reads without a quota,
// one with nobody at the port and one with all of them, in turn; the ratio of their times.
//
//     npm run bench:http              # ORDERS=20000 PAIRS=2 for a quick one
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startSandbox } from 'cellarstream/sandbox';
import { startServices } from '../dist/services/start-services.js';

const ORDERS = Number(process.env.ORDERS ?? 60_000);
const PAIRS = Number(process.env.PAIRS ?? 4);
const QUOTA = 100_000; // not what is measured
const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const CLIENTS = fileURLToPath(new URL('./hostile-clients.mjs', import.meta.url));

const services = await startServices({ onProgress: (line) => console.error(line) });
const sandbox = await startSandbox({ records: { orders: ORDERS }, quotaPerMinute: QUOTA, loginQuotaPerMinute: QUOTA }); // prettier-ignore

/** @typedef {{ seconds: number, cpu: number, slowest: number }} Result `slowest`: answer of `/healthz`, ms */

/**
 * One first read of all orders, in a process of its own.
 *
 * @param {string} prefix
 * @param {boolean} isLoaded
 * @returns {Promise<Result>} from the first page to the last commit.
 */
async function firstRead(prefix, isLoaded) {
  const state = mkdtempSync(join(tmpdir(), 'cellarstream-bench-'));
  const service = spawn(process.execPath, [CLI, 'run'], {
    env: {
      PATH: process.env.PATH,
      API_BASE_URL: sandbox.url,
      API_KEY: sandbox.apiKey,
      KAFKA_BROKERS: services.brokers.join(','),
      SCHEMA_REGISTRY_URL: services.registryUrl,
      TOPIC_PREFIX: prefix,
      STATE_DIR: state,
      RESOURCES: 'orders',
      QUOTA_PER_MINUTE: String(QUOTA),
      POLL_INTERVAL_MS: '60000',
      HTTP_PORT: '0',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let clients;
  let probing;
  /** @type {number[]} */
  const probes = [];
  try {
    let began = 0;
    let url = '';
    for await (const line of lines(service.stderr)) {
      if (line.event === 'listening') url = String(line.url);
      if (line.event === 'ready') {
        began = performance.now();
        // Nice: on a machine of few cores they are not to take the service's time by their mere work.
        probing = setInterval(() => void probe(url).then((ms) => probes.push(ms)), 100);
        if (isLoaded) clients = spawn('nice', ['-n', '19', process.execPath, CLIENTS, url], { stdio: 'ignore' }); // prettier-ignore
      }
      if (line.event !== 'first-read' || line.done !== true) continue;
      const seconds = (performance.now() - began) / 1_000;
      clients?.kill();
      const metrics = await (await fetch(`${url}/metrics`)).text();
      const slowest = Math.max(...probes);
      const cpu = Number(/^process_cpu_seconds_total\S* (\S+)/m.exec(metrics)?.[1]);
      return { seconds, cpu, slowest };
    }
    throw new Error('the service has ended');
  } finally {
    clearInterval(probing);
    clients?.kill();
    service.kill();
    rmSync(state, { recursive: true, force: true });
  }
}

/**
 * @param {AsyncIterable<Buffer>} stream
 * @returns {AsyncGenerator<Record<string, unknown>>}
 */
async function* lines(stream) {
  let rest = '';
  for await (const chunk of stream) {
    const all = (rest + chunk.toString()).split('\n');
    rest = all.pop() ?? '';
    for (const line of all) if (line.startsWith('{')) yield JSON.parse(line);
  }
}

/** How long `/healthz` takes, ms; for ever if it is not 200. @param {string} url */
async function probe(url) {
  const began = performance.now();
  const answer = await fetch(`${url}/healthz`).catch(() => undefined);
  return answer?.status === 200 ? performance.now() - began : Infinity;
}

/** @param {readonly number[]} values */
const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (/** @type {number} */ place) => sorted[place] ?? NaN;
  return (at(Math.floor((sorted.length - 1) / 2)) + at(Math.floor(sorted.length / 2))) / 2;
};

try {
  await firstRead('warm', false);
  const pairs = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    const quiet = await firstRead(`quiet-${pair}`, false);
    const loaded = await firstRead(`loaded-${pair}`, true);
    pairs.push({ quiet, loaded });
    const show = (/** @type {Result} */ { seconds, cpu, slowest }) =>
      `${seconds.toFixed(2)} s, ${Math.round(ORDERS / seconds)} records/s, CPU ${cpu.toFixed(2)} s, /healthz ${slowest.toFixed(0)} ms at most`;
    console.log(`pair ${pair + 1}: nobody ${show(quiet)}; 200 clients ${show(loaded)}`);
  }
  const time = median(pairs.map(({ quiet, loaded }) => loaded.seconds / quiet.seconds));
  const cpu = median(pairs.map(({ quiet, loaded }) => loaded.cpu / quiet.cpu));
  console.log(`200 clients: time x ${time.toFixed(3)}, CPU of the service x ${cpu.toFixed(3)} (medians of ${PAIRS} pairs)`); // prettier-ignore
} finally {
  await Promise.allSettled([sandbox.close(), services.stop()]);
}
