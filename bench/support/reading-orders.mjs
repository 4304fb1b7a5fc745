// @ts-check
// An initial snapshot of all orders without a quota, begun.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startChild } from './child.mjs';
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
 * @param {boolean} [options.isNumbered] Whether they are read from numbered pages, by a description. Default from the sandbox.
 * @param {number} [options.requestLogLimit] Arrivals that are remembered. Default the sandbox's.
 * @param {readonly string[]} [options.nodeFlags] Default none.
 * @returns {Promise<{ readonly known: Known, readonly service: import('./service.mjs').Service }>}
 */
export async function startReadingOrders(context, scope, options) {
  const { orders, pollIntervalMs, isNumbered = false, requestLogLimit, nodeFlags = [] } = options;
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
    ...(isNumbered ? await numberedPages(scope, sandbox, orders) : WITHOUT_QUOTA),
    RESOURCES: 'orders',
    POLL_INTERVAL_MS: String(pollIntervalMs),
  };
  const known = { sandbox, prefix, state, settings };
  return { known, service: await startService(context, scope, { ...known, nodeFlags }) };
}

/**
 * Serves the orders of a sandbox in numbered pages.
 *
 * @param {import('./scope.mjs').Scope} scope
 * @param {import('./sandbox.mjs').Sandbox} sandbox
 * @param {number} orders
 * @returns {Promise<Readonly<Record<string, string>>>} settings with which the service reads them.
 */
async function numberedPages(scope, { url, apiKey }, orders) {
  const options = { sandbox: { url, apiKey }, orders };
  const child = await startChild(scope, './numbered-pages-process.mjs', [JSON.stringify(options)]);
  const file = join(stateFolder(scope), 'numbered.json');
  const list = {
    ...{ path: '/orders', query: { _page: '{page}', _limit: '{limit}' }, limit: 1_000 },
    ...{ paging: 'page', first: 1, records: '', total: { header: 'X-Total-Count' } },
    ...{ key: 'order_number', updated: 'updated_at' },
  };
  const quota = `${NO_QUOTA}/min per list`;
  const description = { format: 1, api: 'numbered', auth: 'none', quota, lists: { orders: list } };
  writeFileSync(file, JSON.stringify(description));
  return { API_DESCRIPTION: file, API_BASE_URL: String(child.first) };
}
