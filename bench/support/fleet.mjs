// @ts-check
// One instance that serves a whole fleet, started and measured until all of its accounts are read.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RESOURCES } from 'cellarstream/sandbox';
import { withAdmin } from './with-admin.mjs';
import { now } from './clock.mjs';
import { startService, stateFolder } from './service.mjs';
import { connectionsTo } from './sockets.mjs';
import { connectKafka } from './topics.mjs';

/** @typedef {import('./measure.mjs').Context} Context */
/** @typedef {import('./sandbox.mjs').Sandbox} Sandbox */
/** @typedef {import('./service.mjs').Service} Service */

/**
 * What a start came to.
 *
 * @typedef {object} Start
 * @property {number} seconds From the start of the process until each list of each account was answered by its API.
 * @property {number} cpu Seconds of the processor until then.
 * @property {number} memory RssAnon then, bytes; NaN where the system does not tell.
 */

/**
 * What an instance costs while nothing changes.
 *
 * @typedef {object} Rest
 * @property {number} core Part of a core.
 * @property {number} memory RssAnon at the end, bytes.
 * @property {number} mostMemory The most of it meanwhile.
 * @property {number} connections At the end, to the broker that has most of them.
 * @property {number} mostConnections The most of them meanwhile.
 */

const LOOK_EVERY_MS = 500;
const MOMENT_MS = 5_000;
/** At rest it is looked at rarely, so that looking costs nothing beside it. */
const SAMPLE_EVERY_MS = 2_000;
const MIB = 2 ** 20;

/** A folder with a file for each account. @param {import('./scope.mjs').Scope} scope @param {Sandbox} sandbox */
export function accountsFolder(scope, { url, accounts }) {
  const folder = join(stateFolder(scope), 'accounts');
  mkdirSync(folder);
  for (const { name, apiKey } of accounts) {
    writeFileSync(join(folder, `${name}.env`), `API_BASE_URL=${url}\nAPI_KEY=${apiKey}\n`);
  }
  return folder;
}

/**
 * @param {Pick<Context, 'cli' | 'services' | 'tell'>} context
 * @param {import('./scope.mjs').Scope} scope Ends it.
 * @param {Parameters<typeof startService>[2] & { readonly sandbox: Sandbox }} options
 * @returns {Promise<{ service: Service, start: Start }>} once all accounts are read.
 */
export async function startFleet(context, scope, options) {
  const { sandbox } = options;
  const service = await startService(context, scope, options);
  const wanted = sandbox.accounts.length;
  for (let told = 0; ;) {
    const answered = await sandbox.call('answeredAt', service.startedAt);
    if (answered.length === wanted) {
      const last = Math.max(...answered.map(({ at }) => at));
      const start = {
        seconds: (last - service.startedAt) / 1_000,
        cpu: await service.cpu(),
        memory: service.memory() ?? NaN,
      };
      return { service, start };
    }
    if (now() > service.startedAt + told * MOMENT_MS) {
      told += 1;
      const seconds = ((now() - service.startedAt) / 1_000).toFixed(0);
      context.tell(
        `${answered.length} of ${wanted} accounts are read after ${seconds} s, ${(await service.cpu()).toFixed(0)} s of the processor`,
      );
    }
    await delay(LOOK_EVERY_MS);
  }
}

/** Resolves when the initial snapshot of each list is done. @param {Service} service @param {number} accounts */
export async function snapshotsDone(service, accounts) {
  const isDone = (/** @type {import('./service.mjs').Line} */ { event, done }) =>
    event === 'first-read' && done === true;
  while (service.lines().filter(isDone).length < accounts * RESOURCES.length) {
    await delay(LOOK_EVERY_MS);
  }
}

/**
 * @param {Pick<Context, 'services'>} context
 * @param {Service} service
 * @param {{ readonly settleMs: number, readonly restMs: number }} times
 * @returns {Promise<Rest>}
 */
export async function atRest({ services }, service, { settleMs, restMs }) {
  const ports = services.brokers.map((broker) => Number(broker.slice(broker.lastIndexOf(':') + 1)));
  const sample = () => ({
    memory: service.memory() ?? NaN,
    connections: Math.max(...ports.map((port) => connectionsTo(service.pid, port) ?? NaN)),
  });
  await delay(settleMs);
  const [cpu, began] = [await service.cpu(), performance.now()];
  const end = began + restMs;
  const samples = [sample()];
  while (performance.now() < end) {
    await delay(Math.min(SAMPLE_EVERY_MS, Math.max(0, end - performance.now())));
    samples.push(sample());
  }
  const last = /** @type {ReturnType<typeof sample>} */ (samples.at(-1));
  return {
    core: (1_000 * ((await service.cpu()) - cpu)) / (performance.now() - began),
    memory: last.memory,
    mostMemory: Math.max(...samples.map(({ memory }) => memory)),
    connections: last.connections,
    mostConnections: Math.max(...samples.map(({ connections }) => connections)),
  };
}

/**
 * How many topics and partitions a fleet has.
 *
 * @param {Pick<Context, 'services'>} context
 * @param {string} prefix
 */
export const sizeOf = (context, prefix) =>
  withAdmin(connectKafka(context), async (admin) => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(`${prefix}.`));
    const { topics: all } = await admin.fetchTopicMetadata({ topics });
    return {
      topics: topics.length,
      partitions: all.reduce((sum, { partitions }) => sum + partitions.length, 0),
    };
  });

/** @param {Start} start */
export const startText = ({ seconds, cpu, memory }) =>
  `${seconds.toFixed(1)} s, ${cpu.toFixed(1)} s of the processor, RssAnon ${(memory / MIB).toFixed(0)} MB`;

/** @param {Rest} rest */
export const restText = ({ core, memory, mostMemory, connections, mostConnections }) =>
  `${(100 * core).toFixed(1)} % of a core, RssAnon ${(memory / MIB).toFixed(0)} MB (at most ${(mostMemory / MIB).toFixed(0)}), ${connections} connections to the broker (at most ${mostConnections})`;
