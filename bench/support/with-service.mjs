// @ts-check
// A sandbox and a service of one's own, for as long as a row needs them.
import { startSandbox } from './sandbox.mjs';
import { startService, stateFolder } from './service.mjs';
import { deleteTopics } from './topics.mjs';

/**
 * @typedef {object} Running
 * @property {import('./scope.mjs').Scope} scope Ends both, and whatever is added to it.
 * @property {import('./sandbox.mjs').Sandbox} sandbox
 * @property {import('./service.mjs').Service} service
 * @property {string} prefix Of its topics.
 */

/**
 * Starts both, and ends them when the work is done; its topics go too.
 *
 * @template T
 * @param {import('./measure.mjs').Context} context
 * @param {object} options
 * @param {Parameters<typeof startSandbox>[1]} options.sandbox
 * @param {Readonly<Record<string, string>>} [options.settings] Of the service. Default none.
 * @param {(running: Running) => Promise<T>} work
 */
export async function withService(context, { sandbox: options, settings = {} }, work) {
  const scope = context.scope.inner();
  const prefix = context.prefix();
  try {
    const sandbox = await startSandbox(scope, options);
    const state = stateFolder(scope);
    const service = await startService(context, scope, { sandbox, prefix, state, settings });
    return await work({ scope, sandbox, service, prefix });
  } finally {
    await scope.close();
    await deleteTopics(context, prefix);
  }
}
