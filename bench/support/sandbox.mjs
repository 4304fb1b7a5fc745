// @ts-check
// The API in a process of its own, with its controls.
import { startChild } from './child.mjs';

/** A quota that is not what is measured. */
export const NO_QUOTA = 100_000;
/** The same of a sandbox. */
export const UNLIMITED = { quotaPerMinute: NO_QUOTA, loginQuotaPerMinute: NO_QUOTA };

/** @typedef {import('./sandbox-process.mjs').Calls} Calls */

/**
 * @typedef {object} Sandbox
 * @property {string} url
 * @property {string} apiKey Of the first account.
 * @property {readonly { readonly name: string, readonly apiKey: string }[]} accounts
 * @property {number} pid
 * @property {<Name extends keyof Calls>(name: Name, ...args: Parameters<Calls[Name]>) => Promise<ReturnType<Calls[Name]>>} call
 * @property {() => Promise<void>} end
 */

/**
 * @param {import('./scope.mjs').Scope} scope
 * @param {Omit<import('cellarstream/sandbox').SandboxOptions, 'now' | 'tls'>} options
 * @returns {Promise<Sandbox>}
 */
export async function startSandbox(scope, options) {
  const child = await startChild(scope, './sandbox-process.mjs', [JSON.stringify(options)]);
  const { url, apiKey, accounts } = /** @type {Pick<Sandbox, 'url' | 'apiKey' | 'accounts'>} */ (
    child.first
  );
  return {
    url,
    apiKey,
    accounts,
    pid: child.pid,
    call: async (name, ...args) =>
      /** @type {ReturnType<Calls[typeof name]>} */ (await child.call(name, ...args)),
    end: child.end,
  };
}
