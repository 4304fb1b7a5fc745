import type { JsonObject, Pagination, Resource, Sandbox } from '../../src/sandbox/index.ts';

export interface Page {
  readonly data: JsonObject[];
  readonly pagination: Pagination;
}

/** A hand-operated clock for sandboxes; 2026-03-05 at noon (UTC) to begin with. */
export function handClock(start = Date.parse('2026-03-05T12:00:00.000Z')) {
  let time = start;
  return {
    now: () => time,
    pass: (ms: number) => void (time += ms),
  };
}

/** An account, and where it is. */
export type Login = Pick<Sandbox, 'url' | 'apiKey'>;

export async function login(sandbox: Login, apiKey = sandbox.apiKey): Promise<Response> {
  return fetch(`${sandbox.url}/v1/auth/public/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey }),
  });
}

export async function tokenOf(sandbox: Login): Promise<string> {
  const answer = (await (await login(sandbox)).json()) as { accessToken: string };
  return answer.accessToken;
}

/** A client that is logged in: `get` gives the raw answer, `page` the envelope. */
export async function connect(sandbox: Login) {
  const authorization = `Bearer ${await tokenOf(sandbox)}`;
  const get = (resource: Resource, query: Readonly<Record<string, string | number>> = {}) => {
    const params = new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    );
    return fetch(`${sandbox.url}/v1/${resource}?${params.toString()}`, {
      headers: { authorization },
    });
  };
  const page = async (resource: Resource, query: Readonly<Record<string, string | number>> = {}) =>
    (await (await get(resource, query)).json()) as Page;
  return { authorization, get, page };
}

/** Reads a list that holds still, page by page. */
export async function readAll(
  page: (resource: Resource, query: Record<string, number>) => Promise<Page>,
  resource: Resource,
  pageSize: number,
): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  for (let offset = 0; ; offset += pageSize) {
    const { data, pagination } = await page(resource, { offset, pageSize });
    found.push(...data);
    if (!pagination.has_next_page) return found;
  }
}
