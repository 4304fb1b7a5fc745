// @ts-check
import { anAccountMore, fleetAtRest } from '../support/fleet-at-rest.mjs';

const FEWER = 10;
const MORE = 20;
const AT_REST = { records: 1_000, pollIntervalMs: 10_000, settleMs: 90_000, restMs: 120_000 };

/** @type {import('../support/measure.mjs').Measure} */
export const fleetRest = {
  name: 'fleet-rest',
  what: `an account more in a fleet at rest, with a poll every 10 s: what ${MORE} accounts have more than ${FEWER}`,
  limit: '',
  form: 'full',
  figures: [
    { name: 'core', what: 'of a core', unit: '%', digits: 2, target: { atMost: 0.5 } },
    { name: 'memory', what: 'RssAnon at the end', unit: 'MB', digits: 1, target: { atMost: 5 } },
    { name: 'cores', what: `of a core, ${MORE} accounts together`, unit: '%', digits: 1 },
  ],
  run: async (context) => {
    const least = await fleetAtRest(context, { ...AT_REST, accounts: FEWER });
    const most = await fleetAtRest(context, { ...AT_REST, accounts: MORE });
    const { core, memory } = anAccountMore(least, most);
    if (Number.isNaN(memory)) throw new Error('this system does not tell RssAnon');
    context.keep('fleet at rest', [least, most]);
    return { core: 100 * core, memory: memory / 1e6, cores: 100 * most.rest.core };
  },
};
