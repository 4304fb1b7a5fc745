// @ts-check
// What 200 slow and hostile clients of the status port cost the pipeline: initial snapshots without a quota,
// one with nobody at the port and one with all of them, in turn; the ratio of their times.
//
//     npm run bench:http              # ORDERS=20000 PAIRS=2 for a quick one
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startSandbox } from 'cellarstream/sandbox';
import { startServices } from '../dist/devstack/start-services.js';
import { metric } from './support/metrics.mjs';
import { NO_QUOTA, UNLIMITED } from './support/sandbox.mjs';
import { Scope } from './support/scope.mjs';
import { firstReadDone, startService, stateFolder } from './support/service.mjs';
import { median } from './support/statistics.mjs';

const ORDERS = Number(process.env.ORDERS ?? 60_000);
const PAIRS = Number(process.env.PAIRS ?? 4);
const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const CLIENTS = fileURLToPath(new URL('./hostile-clients.mjs', import.meta.url));

const services = await startServices({ onProgress: (line) => console.error(line) });
const sandbox = await startSandbox({ records: { orders: ORDERS }, ...UNLIMITED });

/** @typedef {{ seconds: number, cpu: number, slowest: number }} Result `slowest`: answer of `/healthz`, ms */

/**
 * One initial snapshot of all orders, in a process of its own.
 *
 * @param {string} prefix
 * @param {boolean} isLoaded
 * @returns {Promise<Result>} from the first page to the last commit.
 */
async function firstRead(prefix, isLoaded) {
  const scope = new Scope();
  /** @type {number[]} */
  const probes = [];
  try {
    const service = await startService({ cli: CLI, services }, scope, {
      sandbox,
      prefix,
      state: stateFolder(scope),
      settings: {
        RESOURCES: 'orders',
        QUOTA_PER_MINUTE: String(NO_QUOTA),
        POLL_INTERVAL_MS: '60000',
      },
    });
    const { url } = service;
    const ready = await service.logged(({ event }) => event === 'ready');
    // Nice: on a machine of few cores they are not to take the service's time by their mere work.
    const probing = setInterval(() => void probe(url).then((ms) => probes.push(ms)), 100);
    scope.add(() => clearInterval(probing));
    const clients = isLoaded
      ? spawn('nice', ['-n', '19', process.execPath, CLIENTS, url], { stdio: 'ignore' })
      : undefined;
    const endClients = scope.add(() => clients?.kill());
    const done = await service.logged(firstReadDone('orders'));
    await endClients();
    const slowest = Math.max(...probes);
    const cpu = metric(await service.metrics(), 'process_cpu_seconds_total');
    return { seconds: (done.at - ready.at) / 1_000, cpu, slowest };
  } finally {
    await scope.close();
  }
}

/** How long `/healthz` takes, ms; for ever if it is not 200. @param {string} url */
async function probe(url) {
  const began = performance.now();
  const answer = await fetch(`${url}/healthz`).catch(() => undefined);
  return answer?.status === 200 ? performance.now() - began : Infinity;
}

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
  console.log(
    `200 clients: time x ${time.toFixed(3)}, CPU of the service x ${cpu.toFixed(3)} (medians of ${PAIRS} pairs)`,
  );
} finally {
  await Promise.allSettled([sandbox.close(), services.stop()]);
}
