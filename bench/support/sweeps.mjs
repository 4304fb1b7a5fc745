// @ts-check
// What it costs to read a list again that has not changed.
import { WITHOUT_QUOTA } from './first-read.mjs';
import { NO_QUOTA, startSandbox } from './sandbox.mjs';
import { startService, stateFolder } from './service.mjs';
import { deleteTopics } from './topics.mjs';

/** Until the code is compiled. */
const WARM_UP = 2;

/**
 * CPU of the service from the end of one complete reading to that of another, a record in µs.
 *
 * @param {import('./measure.mjs').Context} context
 * @param {'orders' | 'wine-club-members'} resource
 */
export async function sweepCost(context, resource) {
  const scope = context.scope.inner();
  const prefix = context.prefix();
  const records = context.isShort ? 10_000 : 30_000;
  const sweeps = context.isShort ? 2 : 8;
  try {
    context.tell(`${resource}, ${records} of them, read whole ${WARM_UP + sweeps} times`);
    const sandbox = await startSandbox(scope, {
      records: { [resource]: records },
      quotaPerMinute: NO_QUOTA,
      loginQuotaPerMinute: NO_QUOTA,
    });
    const service = await startService(context, scope, {
      sandbox,
      prefix,
      state: stateFolder(scope),
      settings: {
        ...WITHOUT_QUOTA,
        RESOURCES: resource,
        // Lists without polls are swept as often as they would be polled.
        ...(resource === 'orders' ? { POLL_INTERVAL_MS: '600000' } : { POLL_INTERVAL_MS: '100' }),
        SWEEP_INTERVAL_MS: '100',
        LOG_LEVEL: 'debug', // tells the end of each
      },
    });
    const isSwept = (/** @type {import('./service.mjs').Line} */ { event }) => event === 'swept';
    /** CPU at the end of so many sweeps. @param {number} count */
    const swept = async (count) => {
      await service.logged(() => service.lines().filter(isSwept).length >= count);
      return service.cpu();
    };
    const begin = await swept(WARM_UP);
    const end = await swept(WARM_UP + sweeps);
    return ((end - begin) * 1e6) / (sweeps * records);
  } finally {
    await scope.close();
    await deleteTopics(context, prefix);
  }
}
