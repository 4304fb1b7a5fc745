// @ts-check
// An instance of a fleet, started with nothing there and looked at once all lists are read, and what reading has opened
// is closed again.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RESOURCES } from 'cellarstream/sandbox';
import {
  accountsFolder,
  atRest,
  restText,
  snapshotsDone,
  startFleet,
  startText,
} from './fleet.mjs';
import { startSandbox } from './sandbox.mjs';
import { stateFolder } from './service.mjs';
import { deleteTopics } from './topics.mjs';

/** Of the process, as the units of systemd have it. */
const AS_SHIPPED = {
  NODE_OPTIONS: '--max-old-space-size=768',
  MALLOC_MMAP_THRESHOLD_: '131072',
};

/** @typedef {Pick<import('./measure.mjs').Context, 'cli' | 'services' | 'tell' | 'scope' | 'prefix'>} Common */

/**
 * @typedef {object} FleetAtRest
 * @property {number} accounts
 * @property {import('./fleet.mjs').Start} start
 * @property {import('./fleet.mjs').Rest} rest
 */

/**
 * @param {Common} context
 * @param {object} options
 * @param {number} options.accounts
 * @param {number} options.records Of each list.
 * @param {number} options.pollIntervalMs
 * @param {number} options.settleMs Before it is looked at: a connection that nobody uses stays open for a minute.
 * @param {number} options.restMs That it is looked at.
 * @param {ReturnType<typeof import('./profile-on-signal.mjs').profiledOnSignal>} [options.profile] Of the time at rest. Default none.
 * @returns {Promise<FleetAtRest>}
 */
export async function fleetAtRest(context, options) {
  const { accounts, records, pollIntervalMs, settleMs, restMs, profile } = options;
  const scope = context.scope.inner();
  const prefix = context.prefix();
  try {
    const sandbox = await startSandbox(scope, {
      accounts,
      records: Object.fromEntries(RESOURCES.map((each) => [each, records])),
      requestLogLimit: 200,
    });
    const state = stateFolder(scope);
    const { service, start } = await startFleet(context, scope, {
      ...{ sandbox, state, prefix, nodeFlags: profile?.nodeFlags ?? [] },
      settings: {
        ...AS_SHIPPED,
        ...{ API_BASE_URL: '', API_KEY: '' }, // they are in the accounts' files
        ACCOUNTS_DIR: accountsFolder(scope, sandbox),
        INSTANCE_NAME: 'bench',
        STATE_DIR: join(state, 'state'),
        TOPIC_PARTITIONS: '1',
        POLL_INTERVAL_MS: String(pollIntervalMs),
      },
    });
    context.tell(`${accounts} accounts are read for the first time: ${startText(start)}`);
    await snapshotsDone(service, accounts);
    await delay(settleMs);
    profile?.begin(service.pid);
    const rest = await atRest(context, service, { settleMs: 0, restMs });
    await profile?.end(service.pid);
    await service.end();
    context.tell(`${accounts} accounts at rest: ${restText(rest)}`);
    return { accounts, start, rest };
  } finally {
    await scope.close();
    await deleteTopics(context, prefix);
  }
}

/**
 * What one account more adds, by two fleets of different sizes: part of a core, and bytes at the end of the time at rest.
 *
 * @param {FleetAtRest} least
 * @param {FleetAtRest} most
 */
export function anAccountMore(least, most) {
  const of = (/** @type {'core' | 'memory'} */ what) =>
    (most.rest[what] - least.rest[what]) / (most.accounts - least.accounts);
  return { core: of('core'), memory: of('memory') };
}
