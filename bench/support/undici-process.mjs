// @ts-check
// Requests that were made before, made again by undici and nothing else: `asked-again.mjs` starts it.
import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import { logIn } from './pages.mjs';

/** @typedef {import('./asked-again.mjs').Asked} Asked */

/** Until the compiler has done what it will do. */
const WARM_UP_MS = 1_000;

const { url, apiKey } = /** @type {{ url: string, apiKey: string }} */ (
  JSON.parse(process.argv[2] ?? '{}')
);
const headers = {
  accept: 'application/json',
  authorization: `Bearer ${await logIn({ url, apiKey })}`,
};
const agent = new Agent();

/** Reads an answer to its end. @param {Asked} asked @returns {Promise<number>} its bytes. */
async function get({ resource, query }) {
  const path = `/v1/${resource}?${query}`;
  const { statusCode, body } = await agent.request({ method: 'GET', origin: url, path, headers });
  const { byteLength } = await body.arrayBuffer();
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`);
  return byteLength;
}

/** Each as long behind the first one as it was. @param {readonly Asked[]} requests In their order. */
async function askAgain(requests) {
  const [first] = requests;
  if (!first) throw new Error('there is nothing to be asked');
  const warm = performance.now() + WARM_UP_MS;
  while (performance.now() < warm) await get(first);

  const before = process.cpuUsage();
  const began = performance.now() - first.at;
  const answers = [];
  for (const request of requests) {
    const early = began + request.at - performance.now();
    if (early > 0) await delay(early);
    answers.push(get(request));
  }
  const bytes = (await Promise.all(answers)).reduce((sum, each) => sum + each, 0);
  const { user, system } = process.cpuUsage(before);
  return { cpu: (user + system) / 1e6, bytes };
}

process.on('message', (/** @type {{ id: number, args: [readonly Asked[]] }} */ { id, args }) => {
  askAgain(...args).then(
    (result) => process.send?.({ id, result }),
    (error) => process.send?.({ id, failure: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ id: 0 });
