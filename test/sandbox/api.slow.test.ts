import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CellarstreamError } from '../../src/core/errors.ts';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock, login, readAll, tokenOf } from './client.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let sandbox: Sandbox;
let clock: ReturnType<typeof handClock>;

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  await sandbox?.close();
  clock = handClock();
  sandbox = await startSandbox({ now: clock.now, quotaPerMinute: 10_000, ...options });
  return sandbox;
}

beforeEach(() => start().then(() => undefined));
afterEach(() => sandbox.close());

describe('login', () => {
  it('gives a signed token that says when it expires, and `expiresIn` of 30 minutes in ms', async () => {
    const answer = (await (await login(sandbox)).json()) as Record<string, unknown>;
    const { iat, exp } = decodeJwt(String(answer.accessToken));

    expect(Object.keys(answer).sort()).toEqual(['accessToken', 'expiresIn']);
    expect(answer.expiresIn).toBe(1_800_000);
    expect(decodeProtectedHeader(String(answer.accessToken)).alg).toBe('HS256');
    expect(iat).toBe(clock.now() / 1_000);
    expect(exp).toBe(iat! + 1_800);
  });

  it.each([
    ['a wrong key', '{"apiKey":"wrong"}'],
    ['no key', '{}'],
    ['no object', 'null'],
    ['no JSON', '{"apiKey'],
  ])('answers 400 to %s', async (_, body) => {
    const url = `${sandbox.url}/v1/auth/public/login`;
    expect((await fetch(url, { method: 'POST', body })).status).toBe(400);
  });

  it('is where production and staging have it, the version doubled too', async () => {
    for (const path of ['/v1', '/staging/v1', '/staging/v1/v1']) {
      const url = `${sandbox.url}${path}/auth/public/login`;
      const body = JSON.stringify({ apiKey: sandbox.apiKey });
      expect((await fetch(url, { method: 'POST', body })).status).toBe(200);
    }
  });
});

describe('token', () => {
  it.each([
    ['none', {}],
    ['one that is no JWT', { authorization: 'Bearer nonsense' }],
    ['another scheme', { authorization: 'Basic abc' }],
  ])('401 for %s', async (_, headers) => {
    expect((await fetch(`${sandbox.url}/v1/orders`, { headers })).status).toBe(401);
  });

  it('401 for one signed by somebody else', async () => {
    const other = await startSandbox({ seed: 2, now: clock.now });
    const authorization = `Bearer ${await tokenOf(other)}`;
    await other.close();
    expect((await fetch(`${sandbox.url}/v1/orders`, { headers: { authorization } })).status).toBe(
      401,
    );
  });

  it('is good until it expires, to the ms', async () => {
    const { get } = await connect(sandbox);
    clock.pass(30 * MINUTE - 1);
    expect((await get('orders')).status).toBe(200);
    clock.pass(1);
    expect((await get('orders')).status).toBe(401);
  });

  it('is not good once revoked; a new one is', async () => {
    const { get } = await connect(sandbox);
    sandbox.revokeTokens();
    expect((await get('orders')).status).toBe(401);
    expect((await (await connect(sandbox)).get('orders')).status).toBe(200);
  });

  it('is refused for as long as the store of tokens lags', async () => {
    await start({ tokenLagMs: 2_000 });
    const { get } = await connect(sandbox);
    clock.pass(1_999);
    expect((await get('orders')).status).toBe(401);
    clock.pass(1);
    expect((await get('orders')).status).toBe(200);
  });

  it.each([
    [400, 400, 'token'],
    [419, 419, 'token'],
    [500, 500, 'jwt invalid'],
    ['redirect', 302, '<'],
    ['json', 200, '{"error":"Unauthenticated."}'],
    ['html', 200, '<'],
  ] as const)('that is revoked is reported as %s', async (unauthorized, status, text) => {
    await start({ readings: { unauthorized } });
    const answer = await fetch(`${sandbox.url}/v1/orders`, { redirect: 'manual' });
    expect(answer.status).toBe(status);
    expect(await answer.text()).toContain(text);
  });

  it('expires without the claim too', async () => {
    await start({ readings: { expClaim: false, unauthorized: 403, expiresIn: 'us' } });
    const answer = (await (await login(sandbox)).json()) as Record<string, unknown>;
    expect(decodeJwt(String(answer.accessToken)).exp).toBeUndefined();
    expect(answer.expiresIn).toBe(1_800_000_000);
    const headers = { authorization: `Bearer ${String(answer.accessToken)}` };
    clock.pass(30 * MINUTE);
    expect((await fetch(`${sandbox.url}/v1/orders`, { headers })).status).toBe(403);
  });
});

describe('lists', () => {
  it.each(RESOURCES)(
    '%s: all records once, at both bases, whatever the page size',
    async (resource) => {
      const { page, authorization } = await connect(sandbox);
      const expected = [...sandbox.truth.records(resource)];
      expect(await readAll(page, resource, 7 + Math.ceil(expected.length / 9))).toEqual(expected);

      const staging = await fetch(`${sandbox.stagingUrl}/${resource}`, {
        headers: { authorization },
      });
      expect(staging.headers.get('content-type')).toContain('application/json');
      expect(((await staging.json()) as { data: unknown }).data).toEqual(expected);
    },
  );

  it('sends the eight fields, with a default of 1000 from 0', async () => {
    await start({ records: { orders: 2_345 } });
    const { page } = await connect(sandbox);
    const { data, pagination } = await page('orders');
    expect(data).toHaveLength(1_000);
    expect(pagination).toEqual({
      current_offset: 0,
      page_size: 1_000,
      total_records: 2_345,
      total_pages: 3,
      current_page: 1,
      pages_remaining: 2,
      has_next_page: true,
      has_previous_page: false,
    });
    const last = await page('orders', { offset: 2_000 });
    expect(last.data).toHaveLength(345);
    expect(last.pagination).toMatchObject({ current_page: 3, has_next_page: false });
  });

  it('answers past the end with no records', async () => {
    const { page } = await connect(sandbox);
    const { data, pagination } = await page('orders', { offset: 5_000, pageSize: 10 });
    expect(data).toEqual([]);
    expect(pagination).toMatchObject({
      total_records: 1_000,
      has_next_page: false,
      pages_remaining: 0,
    });
  });

  it.each([
    { pageSize: 1_001 },
    { pageSize: 0 },
    { pageSize: 'ten' },
    { offset: -1 },
    { offset: '1.5' },
    { modifiedToDate: '2026-01-01' },
    { modifiedFromDate: 'yesterday' },
    { modifiedFromDate: '2026-13-01' },
    { modifiedFromDate: '2026-01-01', modifiedToDate: 'soon' },
    { orderNumber: 'x' },
  ])('answers 400 to %o', async (query) => {
    const { get } = await connect(sandbox);
    expect((await get('orders', query as Record<string, string>)).status).toBe(400);
  });

  it('answers 404 to other paths and 405 to other methods', async () => {
    const { authorization } = await connect(sandbox);
    const status = async (path: string, method = 'GET') =>
      (await fetch(sandbox.url + path, { method, headers: { authorization } })).status;
    expect(await status('/v1/wines')).toBe(404);
    expect(await status('/orders')).toBe(404);
    expect(await status('/v1/orders', 'POST')).toBe(405);
    expect(await status('/v1/auth/public/login')).toBe(405);
  });

  it('finds one order by its number', async () => {
    const { page } = await connect(sandbox);
    const found = await page('orders', { orderNumber: 100_500 });
    expect(found.data).toEqual([sandbox.truth.get('orders', 100_500)]);
    expect(found.pagination.total_records).toBe(1);

    sandbox.remove('orders', 100_500);
    const gone = await page('orders', { orderNumber: 100_500 });
    expect(gone).toMatchObject({ data: [], pagination: { total_records: 0, total_pages: 0 } });
  });

  it('accepts gzip when told to', async () => {
    const { get } = await connect(await start({ gzip: true }));
    const answer = await get('products');
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(((await answer.json()) as { data: unknown[] }).data).toHaveLength(120);
  });
});

describe('windows', () => {
  const at = (ms: number) => new Date(ms).toISOString();

  it.each(['orders', 'customers', 'products'] as const)(
    '%s: as the oracle says',
    async (resource) => {
      const { page } = await connect(sandbox);
      const records = [...sandbox.truth.records(resource)] as Record<string, string>[];
      const middle = records[records.length >> 1]!.updated_at!;
      const from = at(Date.parse(middle) - 100 * DAY);
      for (const query of [
        { modifiedFromDate: from, modifiedToDate: middle },
        { modifiedFromDate: middle, modifiedToDate: middle },
        { modifiedFromDate: from.slice(0, 10) },
        { modifiedFromDate: middle, modifiedToDate: from },
      ]) {
        const low = at(Date.parse(query.modifiedFromDate));
        const high = query.modifiedToDate ?? at(clock.now());
        const expected = records.filter(({ updated_at: u }) => u! >= low && u! <= high);
        const { data, pagination } = await page(resource, query);
        expect(data).toEqual(expected);
        expect(pagination.total_records).toBe(expected.length);
      }
    },
  );

  it('are not known to the other lists', async () => {
    const { page } = await connect(sandbox);
    const query = { modifiedFromDate: '2099-01-01' };
    expect((await page('inventory', query)).data).toHaveLength(200);
    expect((await page('wine-club-members', query)).data).toHaveLength(300);
  });

  it.each([
    ['inclusive', [100_001]],
    ['exclusive', []],
  ] as const)('have %s bounds', async (bounds, expected) => {
    await start({ readings: { bounds } });
    const { page } = await connect(sandbox);
    sandbox.change('orders', 100_001, { notes: 'now' });
    const now = at(clock.now());
    const far = at(clock.now() + DAY);
    const numbers = async (modifiedFromDate: string, modifiedToDate: string) =>
      (await page('orders', { modifiedFromDate, modifiedToDate })).data.map((o) => o.order_number);
    expect(await numbers(now, far)).toEqual(expected);
    expect(await numbers(at(clock.now() - 1), now)).toEqual(expected);
    expect(await numbers(at(clock.now() - 1), far)).toEqual([100_001]);
  });

  it.each([
    ['now', 1],
    ['midnight', 0],
  ] as const)('without an end go on until %s', async (defaultEnd, expected) => {
    await start({ readings: { defaultEnd } });
    const { page } = await connect(sandbox);
    sandbox.change('orders', 100_001, { notes: 'today' });
    const { pagination } = await page('orders', { modifiedFromDate: at(clock.now() - 1) });
    expect(pagination.total_records).toBe(expected);
  });

  it('can be cut to days', async () => {
    await start({ readings: { dates: 'days' } });
    const { page } = await connect(sandbox);
    sandbox.change('orders', 100_001, { notes: 'at noon' });
    const query = (to: number) => ({
      modifiedFromDate: at(clock.now() + 60 * MINUTE),
      modifiedToDate: at(to),
    });
    expect((await page('orders', query(clock.now() + 2 * MINUTE))).data).toHaveLength(0);
    expect((await page('orders', query(clock.now() + DAY))).data).toHaveLength(1);
  });
});

describe('modification dates that are not read as written', () => {
  const MINUTES = [-480, 780, 345];
  const at = (ms: number) => new Date(ms).toISOString();

  it.each(MINUTES)('are local times %i minutes ahead of UTC', async (minutes) => {
    await start({ readings: { parameterZone: { minutes } } });
    const { page } = await connect(sandbox);
    sandbox.change('orders', 100_001, { notes: 'now' });
    const near = async (ms: number) => {
      const window = { modifiedFromDate: at(ms - MINUTE), modifiedToDate: at(ms + MINUTE) };
      return (await page('orders', window)).pagination.total_records;
    };
    expect(await near(clock.now())).toBe(0);
    expect(await near(clock.now() + minutes * MINUTE)).toBe(1);
  });

  it('stamp records in local time, the same hour twice when daylight saving ends', async () => {
    const savingEndsAt = clock.now() + MINUTE;
    await start({ readings: { stampZone: { minutes: -480, savingEndsAt } } });
    const { page } = await connect(sandbox);
    const stamps: unknown[] = [];
    for (const notes of ['before', 'after']) {
      sandbox.change('orders', 100_001, { notes });
      stamps.push((await page('orders', { orderNumber: '100001' })).data[0]?.updated_at);
      clock.pass(MINUTE);
    }
    expect(stamps).toEqual(['2026-03-05T05:00:00.000', '2026-03-05T04:01:00.000']);
  });

  it('can be refused in the future, and further apart than some days', async () => {
    await start({ readings: { futureEnd: 'refuse', maxRangeDays: 2 } });
    const { get } = await connect(sandbox);
    const status = async (from: number, to: number) => {
      const window = {
        modifiedFromDate: at(clock.now() + from),
        modifiedToDate: at(clock.now() + to),
      };
      return (await get('orders', window)).status;
    };
    expect(await status(-DAY, 0)).toBe(200);
    expect(await status(-DAY, 1)).toBe(400);
    expect(await status(-2 * DAY - 1, 0)).toBe(400);
  });

  it('can be ignored', async () => {
    await start({ readings: { dates: 'ignored' } });
    const { page } = await connect(sandbox);
    const { total_records: all } = (await page('orders')).pagination;
    const { pagination } = await page('orders', { modifiedFromDate: '2099-01-01' });
    expect(pagination.total_records).toBe(all);
  });
});

describe('the clock of the server', () => {
  it('is in `Date`, in tokens and in `updated_at`, skewed', async () => {
    sandbox.skewClock(5 * MINUTE);
    const { get } = await connect(sandbox);
    const skewed = clock.now() + 5 * MINUTE;
    expect((await get('orders')).headers.get('date')).toBe(new Date(skewed).toUTCString());
    expect(decodeJwt(await tokenOf(sandbox)).iat).toBe(skewed / 1_000);
    sandbox.change('orders', 100_001, { notes: 'x' });
    const changed = sandbox.truth.get('orders', 100_001);
    expect(changed).toHaveProperty('updated_at', new Date(skewed).toISOString());
  });

  it('can be left out of the headers', async () => {
    const { get } = await connect(await start({ readings: { dateHeader: false } }));
    expect((await get('orders')).headers.get('date')).toBeNull();
  });
});

it('names all wrong options at once', async () => {
  const wrong = startSandbox({ records: { orders: -1 }, quotaPerMinute: 0, apiKey: '' });
  const error = (await wrong.catch((reason: unknown) => reason)) as CellarstreamError;
  expect(error.code).toBe('SETTINGS');
  for (const option of ['records.orders', 'apiKey', 'quotaPerMinute']) {
    expect(error.message).toContain(option);
  }
});

it('goes down and comes up on the same port', async () => {
  const { get } = await connect(sandbox);
  await sandbox.down();
  await expect(get('orders')).rejects.toThrow();
  await sandbox.up();
  expect((await get('orders')).status).toBe(200);
});
