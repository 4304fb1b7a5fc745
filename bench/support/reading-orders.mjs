// @ts-check
// An initial snapshot of all orders without a quota, begun.
import { NO_QUOTA, startSandbox, UNLIMITED } from './sandbox.mjs';
import { startService, stateFolder } from './service.mjs';
import { deleteTopics } from './topics.mjs';

/** What a list's quota is set to where it is to be none. */
export const WITHOUT_QUOTA = {
  QUOTA_PER_MINUTE: String(NO_QUOTA),
  LOGIN_QUOTA_PER_MINUTE: '1000',
};

/**
 * @typedef {object} Known What is left of a service that was stopped.
 * @property {import('./sandbox.mjs').Sandbox} sandbox That still has the orders; its latency is 0, its quota none.
 * @property {string} prefix Of the topics they are in.
 * @property {string} state The folder with their images.
 * @property {Readonly<Record<string, string>>} settings As it ran.
 */

/**
 * @param {import('./measure.mjs').Context} context
 * @param {import('./scope.mjs').Scope} scope Ends the sandbox and removes topics and folder.
 * @param {object} options
 * @param {number} options.orders
 * @param {number} options.pollIntervalMs
 * @param {number} [options.requestLogLimit] Arrivals that are remembered. Default the sandbox's.
 * @param {readonly string[]} [options.nodeFlags] Default none.
 * @returns {Promise<{ readonly known: Known, readonly service: import('./service.mjs').Service }>}
 */
export async function startReadingOrders(context, scope, options) {
  const { orders, pollIntervalMs, requestLogLimit, nodeFlags = [] } = options;
  context.tell(`an initial snapshot of ${orders} orders`);
  const prefix = context.prefix();
  scope.add(() => deleteTopics(context, prefix));
  const state = stateFolder(scope);
  const sandbox = await startSandbox(scope, {
    records: { orders },
    ...UNLIMITED,
    ...(requestLogLimit !== undefined && { requestLogLimit }),
  });
  const settings = {
    ...WITHOUT_QUOTA,
    RESOURCES: 'orders',
    POLL_INTERVAL_MS: String(pollIntervalMs),
  };
  const known = { sandbox, prefix, state, settings };
  return { known, service: await startService(context, scope, { ...known, nodeFlags }) };
}
