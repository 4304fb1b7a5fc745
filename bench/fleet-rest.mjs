// @ts-check
// What an instance of a fleet costs while nothing changes, and what one account more adds to it: the processor, memory,
// and connections to each broker. For each number of accounts an instance is started with nothing there, and looked at
// once all lists are read and what reading has opened is closed again. The APIs are sandboxes.
//
//     node bench/fleet-rest.mjs                          # 50 and 100 accounts: a quarter of an hour
//     ACCOUNTS=10,20 node bench/fleet-rest.mjs --rest 60
//     ACCOUNTS=100 node bench/fleet-rest.mjs --profile profiles   # where it goes, of V8's: profile and heap, in that folder
//
// `npm run build` comes first. KAFKA_BROKERS and SCHEMA_REGISTRY_URL name servers to use instead of its own.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { anAccountMore, fleetAtRest } from './support/fleet-at-rest.mjs';
import { machineFacts } from './support/machine.mjs';
import { profiledOnSignal } from './support/profile-on-signal.mjs';
import { Scope } from './support/scope.mjs';
import { startServices } from './support/services.mjs';

/** For the largest number of accounts; an account more is in bytes. */
const TARGETS = { core: 0.3, memory: 600e6, connections: 20, anAccount: 5e6 };

const { values } = parseArgs({
  options: {
    /** Of each list. */
    records: { type: 'string', default: '1000' },
    'poll-interval-ms': { type: 'string', default: '10000' },
    /** Seconds that the instance is looked at. */
    rest: { type: 'string', default: '120' },
    /** Seconds before: a connection that nobody uses stays open for a minute. */
    settle: { type: 'string', default: '90' },
    cli: { type: 'string', default: fileURLToPath(new URL('../dist/cli.js', import.meta.url)) },
    profile: { type: 'string' },
    json: { type: 'string' },
  },
});
const sizes = (process.env.ACCOUNTS ?? '50,100').split(',').map(Number);
const options = {
  records: Number(values.records),
  pollIntervalMs: Number(values['poll-interval-ms']),
  settleMs: 1_000 * Number(values.settle),
  restMs: 1_000 * Number(values.rest),
};
/** What goes on, with the seconds since the start. @param {string} line */
const tell = (line) =>
  console.error(`${(performance.now() / 1_000).toFixed(0).padStart(5)} s  ${line}`);

const scope = new Scope();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => void scope.close().finally(() => process.exit(1)));
}

try {
  const services = await startServices(scope, tell);
  const prefix = () => `rest-${randomBytes(4).toString('hex')}`;
  const context = { cli: values.cli, services, tell, scope, prefix };
  const results = [];
  for (const accounts of sizes) {
    const profile =
      values.profile === undefined ? undefined : profiledOnSignal(values.profile, `${accounts}`);
    const fleet = await fleetAtRest(context, { ...options, accounts, ...(profile && { profile }) });
    results.push({ ...fleet, load: loadavg()[0] });
  }

  const [least, most] = [results[0], results.at(-1)];
  if (!least || !most) throw new Error('ACCOUNTS names no number of accounts');
  const anAccount = anAccountMore(least, most);
  const { rest } = most;
  const rows = [
    ['part of a core, %', 100 * rest.core, 100 * TARGETS.core],
    ['RssAnon, MB', rest.mostMemory / 1e6, TARGETS.memory / 1e6],
    ['connections to a broker', rest.mostConnections, TARGETS.connections],
    ...(most === least
      ? []
      : [['an account more, MB', anAccount.memory / 1e6, TARGETS.anAccount / 1e6]]),
  ];
  for (const [what, figure, target] of rows) {
    const verdict = Number(figure) <= Number(target) ? 'held' : 'MISSED';
    console.log(`${what}: ${Number(figure).toFixed(1)} (at most ${target}) ${verdict}`);
  }
  if (values.json !== undefined) {
    const all = { machine: machineFacts({ services }), options: values, results, anAccount };
    writeFileSync(values.json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
} finally {
  await scope.close();
}
