// @ts-check
import { setTimeout as delay } from 'node:timers/promises';
import { now } from '../support/clock.mjs';
import { latenessOf } from '../support/lateness.mjs';
import { firstReadDone } from '../support/service.mjs';
import { percentile } from '../support/statistics.mjs';
import { readStatusChanges } from '../support/status-reader.mjs';
import { withService } from '../support/with-service.mjs';

const ORDERS = 10_000;
const CHANGES_PER_SECOND = 50;
const LATENCY_MS = 50;
/** What the initial snapshots have used of the quota is free again. */
const A_MINUTE_MS = 61_000;
const MEASURED_MS = 120_000;
/** After the last change: what has not come by then is lost. */
const DRAIN_MS = 15_000;

/** @type {import('../support/measure.mjs').Measure} */
export const freshnessBusy = {
  name: 'freshness-busy',
  what: 'the same with 50 changes a second, all six resources',
  limit: '',
  form: 'full',
  figures: [
    { name: 'p50', what: 'p50', unit: 'ms' },
    { name: 'p99', what: 'p99', unit: 'ms', target: { atMost: 3_000 } },
    { name: 'changes', what: 'status changes', unit: '' },
    { name: 'unseen', what: 'of them without an event of theirs or a later one', unit: '' },
  ],
  run: async (context) => {
    const options = { sandbox: { records: { orders: ORDERS }, latencyMs: LATENCY_MS } };
    return withService(context, options, async ({ scope, sandbox, service, prefix }) => {
      await service.logged(firstReadDone('orders'));
      /** @type {import('../support/lateness.mjs').Change[]} */
      const seen = [];
      await readStatusChanges(
        context,
        scope,
        prefix,
        ({ key, subject, subject_id, field, to, at }) =>
          seen.push({ field: JSON.stringify([key, subject, subject_id, field]), to, at }),
      );
      await delay(A_MINUTE_MS);
      context.tell(`${CHANGES_PER_SECOND} changes a second, for ${MEASURED_MS / 1_000} s`);
      const began = now();
      await sandbox.call('setRate', CHANGES_PER_SECOND);
      await delay(MEASURED_MS);
      await sandbox.call('setRate', 0);
      await delay(DRAIN_MS);
      const changes = await sandbox.call('statusChanges', began);
      const made = changes.map(({ key, subject, subject_id, field, to, at }) => ({
        field: JSON.stringify([String(key), subject, subject_id, field]),
        to,
        at,
      }));
      const { delays, unseen } = latenessOf(made, seen);
      if (unseen > made.length / 100)
        throw new Error(`${unseen} of ${made.length} status changes have no event`);
      return {
        p50: percentile(delays, 50),
        p99: percentile(delays, 99),
        changes: made.length,
        unseen,
      };
    });
  },
};
