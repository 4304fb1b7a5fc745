// @ts-check
// What undici alone takes for the requests of a service.
import { startChild } from './child.mjs';

/** A request to a list, at its time in ms. @typedef {{ readonly at: number, readonly resource: string, readonly query: string }} Asked */

/**
 * Makes them again, each as long behind the first one as it was, in a process that does nothing else.
 *
 * @param {import('./measure.mjs').Context} context
 * @param {Pick<import('./sandbox.mjs').Sandbox, 'url' | 'apiKey'>} sandbox That has no quota, and the records of that time.
 * @param {readonly Asked[]} requests
 * @returns {Promise<{ readonly cpu: number, readonly bytes: number }>} seconds of the processor, and bytes of bodies.
 */
export async function askedAgain(context, { url, apiKey }, requests) {
  const scope = context.scope.inner();
  try {
    const child = await startChild(scope, './undici-process.mjs', [
      JSON.stringify({ url, apiKey }),
    ]);
    const inOrder = [...requests].sort((a, b) => a.at - b.at);
    return /** @type {{ cpu: number, bytes: number }} */ (await child.call('askAgain', inOrder));
  } finally {
    await scope.close();
  }
}
