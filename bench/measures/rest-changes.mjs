// @ts-check
import { withServiceAtRest } from '../support/at-rest.mjs';

const CHANGES_PER_SECOND = 1;

/** @type {import('../support/measure.mjs').Measure} */
export const restChanges = {
  name: 'rest-changes',
  what: 'the same six lists with one change a second: CPU a minute',
  limit: '',
  form: 'full',
  figures: [
    { name: 'cpu', what: 'CPU a minute', unit: 's', digits: 2, target: { atMost: 3 } },
    { name: 'requests', what: 'requests a minute', unit: '' },
  ],
  run: (context) =>
    withServiceAtRest(context, { changesPerSecond: CHANGES_PER_SECOND }, ({ cpu, perMinute }) => ({
      cpu,
      requests: perMinute,
    })),
};
