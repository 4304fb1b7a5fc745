// @ts-check
// A service whose small lists are all read, and which goes on asking for them as often as the quota lets it.
import { setTimeout as delay } from 'node:timers/promises';
import { RESOURCES } from 'cellarstream/sandbox';
import { now } from './clock.mjs';
import { isAnswered } from './requests.mjs';
import { NO_QUOTA } from './sandbox.mjs';
import { firstReadDone } from './service.mjs';
import { withService } from './with-service.mjs';

/** @typedef {import('./asked-again.mjs').Asked} Asked */

/**
 * @typedef {object} AtRest
 * @property {import('./sandbox.mjs').Sandbox} sandbox
 * @property {number} cpu Of the service, seconds a minute.
 * @property {readonly Asked[]} requests That it made meanwhile and were answered.
 * @property {number} perMinute Of them.
 */

const RECORDS = {
  orders: 10_000,
  customers: 500,
  'wine-club-members': 300,
  inventory: 200,
  products: 120,
  'wine-clubs': 8,
};
const MINUTE_MS = 60_000;
const MINUTES = 2;
/**
 * Behind the initial snapshots. What they have used of the quota at one go comes back at one go a minute later, and lists without
 * dates, of a page each, are swept for the first time at once; those with dates are swept a day later. And V8 goes on compiling
 * for as long as this: the second minute costs a third more than the sixth.
 */
const SETTLE_MS = 5 * MINUTE_MS;

/**
 * Two minutes of a service at rest, which is then ended.
 *
 * @template T
 * @param {import('./measure.mjs').Context} context
 * @param {{ readonly changesPerSecond: number }} options
 * @param {(rest: AtRest) => T | Promise<T>} work With the sandbox still there.
 */
export async function withServiceAtRest(context, { changesPerSecond }, work) {
  // The service keeps to its quota by itself; whoever asks the same again is not to meet it.
  const options = { sandbox: { records: RECORDS, quotaPerMinute: NO_QUOTA } };
  return withService(context, options, async ({ sandbox, service }) => {
    await Promise.all(RESOURCES.map((resource) => service.logged(firstReadDone(resource))));
    await sandbox.call('setRate', changesPerSecond);
    await delay(SETTLE_MS);

    const [from, before] = [now(), await service.cpu()];
    await delay(MINUTES * MINUTE_MS);
    const [to, after] = [now(), await service.cpu()];
    await sandbox.call('setRate', 0);
    await service.end();
    const lists = RESOURCES.map(async (resource) => {
      const all = await sandbox.call('requests', resource, from);
      return all
        .filter((request) => isAnswered(request) && request.at < to)
        .map(({ at, query }) => ({ at, query, resource }));
    });
    const requests = (await Promise.all(lists)).flat();
    const minutes = (to - from) / MINUTE_MS;
    return work({
      sandbox,
      cpu: (after - before) / minutes,
      requests,
      perMinute: requests.length / minutes,
    });
  });
}
