// @ts-check
// Pages of a list as texts, as the API sends them.

/**
 * @param {Pick<import('./sandbox.mjs').Sandbox, 'url' | 'apiKey'>} sandbox
 * @returns {Promise<string>} the token.
 */
export async function logIn({ url, apiKey }) {
  const login = await fetch(`${url}/v1/auth/public/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey }),
  });
  return /** @type {{ accessToken: string }} */ (await login.json()).accessToken;
}

/**
 * @param {Pick<import('./sandbox.mjs').Sandbox, 'url' | 'apiKey'>} sandbox
 * @param {string} resource
 * @param {number} count Of pages of 1,000 records.
 * @returns {Promise<string[]>}
 */
export async function fetchPages(sandbox, resource, count) {
  const token = await logIn(sandbox);
  const pages = [];
  for (let page = 0; page < count; page++) {
    const query = `offset=${page * 1_000}&pageSize=1000`;
    const answer = await fetch(`${sandbox.url}/v1/${resource}?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    if (answer.status !== 200) throw new Error(`${resource}?${query}: ${answer.status}`);
    pages.push(await answer.text());
  }
  return pages;
}
