// @ts-check
// What a fleet of many accounts takes of one instance: the time until all are read, the processor, memory and
// connections. The instance is started three times: with nothing there (topics and schemas are made, all records are
// read), without its state folder (cold) and with it (warm). The APIs are sandboxes.
//
//     node bench/fleet-start.mjs                       # 50 accounts
//     node bench/fleet-start.mjs --accounts 500 --records 10
//     node bench/fleet-start.mjs --accounts 100 --records 1000 --rest 120
//     node bench/fleet-start.mjs --cpu-prof profiles   # of each start, a profile of V8's in that folder
//
// `npm run build` comes first. KAFKA_BROKERS and SCHEMA_REGISTRY_URL name servers to use instead of its own.
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  accountsFolder,
  atRest,
  restText,
  sizeOf,
  snapshotsDone,
  startFleet,
  startText,
} from './support/fleet.mjs';
import { machineFacts } from './support/machine.mjs';
import { startSandbox } from './support/sandbox.mjs';
import { Scope } from './support/scope.mjs';
import { stateFolder } from './support/service.mjs';
import { startServices } from './support/services.mjs';

/** What is there, by name, with its default. */
const { values } = parseArgs({
  options: {
    accounts: { type: 'string', default: '50' },
    /** Of each list. */
    records: { type: 'string', default: '10' },
    partitions: { type: 'string', default: '1' },
    'poll-interval-ms': { type: 'string', default: '10000' },
    /** Seconds that the instance is looked at while nothing changes, after each start. */
    rest: { type: 'string', default: '60' },
    /** Seconds in between. */
    settle: { type: 'string', default: '30' },
    cli: { type: 'string', default: fileURLToPath(new URL('../dist/cli.js', import.meta.url)) },
    'cpu-prof': { type: 'string' },
    json: { type: 'string' },
  },
});
const [accounts, records] = [Number(values.accounts), Number(values.records)];
const times = { settleMs: 1_000 * Number(values.settle), restMs: 1_000 * Number(values.rest) };
/** What goes on, with the seconds since the start. @param {string} line */
const tell = (line) =>
  console.error(`${(performance.now() / 1_000).toFixed(0).padStart(5)} s  ${line}`);

const scope = new Scope();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => void scope.close().finally(() => process.exit(1)));
}

try {
  const services = await startServices(scope, tell);
  const context = { cli: values.cli, services, tell };
  const sandbox = await startSandbox(scope, {
    accounts,
    records: {
      ...{ orders: records, customers: records, inventory: records },
      ...{ 'wine-clubs': records, 'wine-club-members': records, products: records },
    },
    requestLogLimit: 200,
  });
  const prefix = `fleet-${randomBytes(4).toString('hex')}`;
  const root = stateFolder(scope);
  const state = join(root, 'state');
  const settings = {
    ...{ API_BASE_URL: '', API_KEY: '' }, // they are in the accounts' files
    ACCOUNTS_DIR: accountsFolder(scope, sandbox),
    INSTANCE_NAME: 'bench',
    STATE_DIR: state,
    TOPIC_PARTITIONS: values.partitions,
    POLL_INTERVAL_MS: values['poll-interval-ms'],
  };
  const profile = values['cpu-prof'];
  const nodeFlags =
    profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`];

  /** @type {Record<string, object>} */
  const results = {};
  for (const form of ['first', 'cold', 'warm']) {
    if (form === 'cold') rmSync(state, { recursive: true, force: true });
    const began = loadavg()[0];
    const fleet = { sandbox, prefix, state: root, settings, nodeFlags };
    const { service, start } = await startFleet(context, scope, fleet);
    if (form === 'first') await snapshotsDone(service, accounts);
    const rest = await atRest(context, service, times);
    const stopping = performance.now();
    await service.end();
    const stopSeconds = (performance.now() - stopping) / 1_000;
    console.log(`${form} start of ${accounts} accounts: ${startText(start)}`);
    console.log(`  at rest: ${restText(rest)}; stopped in ${stopSeconds.toFixed(1)} s`);
    results[form] = { start, rest, stopSeconds, load: [began, loadavg()[0]] };
  }
  const size = await sizeOf(context, prefix);
  console.log(`${size.topics} topics with ${size.partitions} partitions`);
  if (values.json !== undefined) {
    const all = { machine: machineFacts(context), options: values, size, results };
    writeFileSync(values.json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
} finally {
  await scope.close();
}
