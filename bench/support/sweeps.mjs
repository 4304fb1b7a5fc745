// @ts-check
// What it costs to read a list again that has not changed.
import { WITHOUT_QUOTA } from './reading-orders.mjs';
import { UNLIMITED } from './sandbox.mjs';
import { withService } from './with-service.mjs';

/** Until the code is compiled. */
const WARM_UP = 2;

/**
 * CPU of the service from the end of one complete reading to that of another, a record in µs.
 *
 * @param {import('./measure.mjs').Context} context
 * @param {'orders' | 'wine-club-members'} resource
 */
export async function sweepCost(context, resource) {
  const records = context.isShort ? 10_000 : 30_000;
  const sweeps = context.isShort ? 2 : 8;
  context.tell(`${resource}, ${records} of them, read whole ${WARM_UP + sweeps} times`);
  const options = {
    sandbox: { records: { [resource]: records }, ...UNLIMITED },
    settings: {
      ...WITHOUT_QUOTA,
      RESOURCES: resource,
      // Lists without polls are swept as often as they would be polled.
      POLL_INTERVAL_MS: resource === 'orders' ? '600000' : '100',
      SWEEP_INTERVAL_MS: '100',
      LOG_LEVEL: 'debug', // tells the end of each
    },
  };
  return withService(context, options, async ({ service }) => {
    const isSwept = (/** @type {import('./service.mjs').Line} */ { event }) => event === 'swept';
    /** CPU at the end of so many sweeps. @param {number} count */
    const swept = async (count) => {
      await service.logged(() => service.lines().filter(isSwept).length >= count);
      return service.cpu();
    };
    const begin = await swept(WARM_UP);
    const end = await swept(WARM_UP + sweeps);
    return ((end - begin) * 1e6) / (sweeps * records);
  });
}
