// @ts-check
// The sandbox as a program of its own: its work is not to be counted as that of anybody else. Started
// by `sandbox.mjs` with its options as JSON; serves one call a message; ends with its parent.
import { RESOURCES, startSandbox } from 'cellarstream/sandbox';
import { now } from './clock.mjs';

/** @typedef {import('cellarstream/sandbox').Resource} Resource */

const options = /** @type {import('cellarstream/sandbox').SandboxOptions} */ (
  JSON.parse(process.argv[2] ?? '{}')
);
const sandbox = await startSandbox({ ...options, now });

const CALLS = {
  /** @returns when it was done, by the clock of the bench. @param {number} order @param {string} field @param {string} value */
  setStatus: (order, field, value) => {
    sandbox.setStatus(order, field, value);
    return now();
  },
  /** @param {number} changesPerSecond */
  setRate: (changesPerSecond) => sandbox.setRate(changesPerSecond),
  /** @param {number} count */
  changeSome: (count) => sandbox.changeSome(count),
  /**
   * Changes one order of each so many, in the order of their list.
   *
   * @param {number} every
   * @param {number} place Of the order among them.
   * @param {string} notes What it has from then on.
   */
  noteOneOf: (every, place, notes) => {
    let nth = 0;
    for (const key of sandbox.truth.keys('orders')) {
      if (nth++ % every === place) sandbox.change('orders', key, { notes });
    }
  },
  /** @param {Resource} resource @param {number} since */
  requests: (resource, since) => sandbox.truth.requests(resource).filter(({ at }) => at >= since),
  /** What changed in status fields of orders that were there, with the time of each. @param {number} since */
  statusChanges: (since) =>
    sandbox.truth.changes.flatMap(({ at, key, kind, status = [] }) =>
      at < since || kind !== 'update' ? [] : status.map((change) => ({ at, key, ...change })),
    ),
  /** @param {Resource} resource */
  count: (resource) => sandbox.truth.count(resource),
  /** By account: when the last of its lists was first answered since then; those of which one was not are left out. @param {number} since */
  answeredAt: (since) =>
    sandbox.accounts.flatMap(({ name, truth }) => {
      const firsts = RESOURCES.map(
        (resource) =>
          truth.requests(resource).find(({ at, status }) => at >= since && status === 200)?.at,
      );
      return firsts.includes(undefined)
        ? []
        : [{ name, at: Math.max(...firsts.map((at) => at ?? NaN)) }];
    }),
};

/** @typedef {typeof CALLS} Calls */

process.on('message', (/** @type {{ id: number, name: keyof Calls, args: never[] }} */ message) => {
  const { id, name, args } = message;
  try {
    const call = /** @type {(...args: unknown[]) => unknown} */ (CALLS[name]);
    process.send?.({ id, result: call(...args) });
  } catch (error) {
    process.send?.({ id, failure: String(error) });
  }
});
process.on('disconnect', () => process.exit());
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined); // its parent ends it
const { url, apiKey, accounts } = sandbox;
const keys = accounts.map((account) => ({ name: account.name, apiKey: account.apiKey }));
process.send?.({ id: 0, result: { url, apiKey, accounts: keys } });
