// @ts-check
import { setTimeout as delay } from 'node:timers/promises';
import { freshness as measured } from '../support/freshness.mjs';
import { firstReadDone } from '../support/service.mjs';
import { withService } from '../support/with-service.mjs';

const ORDERS = 5_000;
const SAMPLES = 300;
const LATENCY_MS = 50;
/** What the initial snapshot has used of the quota is free again. */
const A_MINUTE_MS = 61_000;

/** @type {import('../support/measure.mjs').Measure} */
export const freshness = {
  name: 'freshness',
  what: 'a status change in the API to its event readable in Kafka: true quota, quiet account',
  limit: '',
  form: 'full',
  figures: [
    { name: 'p50', what: 'p50', unit: 'ms', target: { atMost: 800 } },
    { name: 'p99', what: 'p99', unit: 'ms', target: { atMost: 1_500 } },
    {
      name: 'left',
      what: 'of the quota left to sweeps',
      unit: '%',
      digits: 1,
      target: { atLeast: 5 },
    },
  ],
  run: async (context) => {
    const options = { sandbox: { records: { orders: ORDERS }, latencyMs: LATENCY_MS } };
    return withService(context, options, async ({ scope, sandbox, service, prefix }) => {
      await service.logged(firstReadDone('orders'));
      await delay(A_MINUTE_MS);
      context.tell(`${SAMPLES} changes, one a second`);
      const found = await measured(context, {
        scope,
        sandbox,
        prefix,
        orders: ORDERS,
        samples: SAMPLES,
      });
      return { p50: found.p50, p99: found.p99, left: 100 - found.pollsPerMinute };
    });
  },
};
