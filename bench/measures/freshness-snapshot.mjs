// @ts-check
import { setTimeout as delay } from 'node:timers/promises';
import { freshness } from '../support/freshness.mjs';
import { firstReadDone } from '../support/service.mjs';
import { metric } from '../support/metrics.mjs';
import { withService } from '../support/with-service.mjs';

const ORDERS = 1_000_000;
/** The first of the list, which is sorted by its keys: so many are read before they are changed. */
const KNOWN = 20_000;
const SAMPLES = 300;
const LATENCY_MS = 50;
/** The quota is full at the start, and soon it is not: what is measured is the pace that lasts. */
const SETTLED_MS = 65_000;

/** @type {import('../support/measure.mjs').Measure} */
export const freshnessFirstRead = {
  name: 'freshness-first-read',
  what: 'the same for orders already published, while an initial snapshot of a million orders runs',
  limit: '',
  form: 'full',
  figures: [
    { name: 'p50', what: 'p50', unit: 'ms', target: { atMost: 1_500 } },
    { name: 'p99', what: 'p99', unit: 'ms', target: { atMost: 3_000 } },
    {
      name: 'part',
      what: 'of the quota used by the initial snapshot',
      unit: '%',
      digits: 1,
      target: { atLeast: 70 },
    },
  ],
  run: async (context) => {
    const options = { sandbox: { records: { orders: ORDERS }, latencyMs: LATENCY_MS } };
    return withService(context, options, async ({ scope, sandbox, service, prefix }) => {
      await service.logged(({ event, resource }) => event === 'ready' && resource === 'orders');
      await delay(SETTLED_MS);
      const read = metric(await service.metrics(), 'cellarstream_first_read_records', {
        resource: 'orders',
      });
      if (read < KNOWN) throw new Error(`only ${read} orders are read`);
      context.tell(`${SAMPLES} changes, one a second`);
      const found = await freshness(context, {
        scope,
        sandbox,
        prefix,
        orders: KNOWN,
        samples: SAMPLES,
      });
      if (service.lines().some(firstReadDone('orders')))
        throw new Error('the initial snapshot is over');
      return { p50: found.p50, p99: found.p99, part: found.othersPerMinute };
    });
  },
};
