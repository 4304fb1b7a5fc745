import { afterEach, describe, expect, it } from 'vitest';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox, SandboxAccount, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock, login, readAll, tokenOf } from './client.ts';

let sandbox: Sandbox;

async function start(options: SandboxOptions = {}): Promise<readonly SandboxAccount[]> {
  const records = { orders: 30, customers: 20, inventory: 10, 'wine-clubs': 3, products: 10 };
  sandbox = await startSandbox({ accounts: 3, now: handClock().now, records, ...options });
  return sandbox.accounts;
}

afterEach(() => sandbox.close());

const at = ({ apiKey }: SandboxAccount) => ({ url: sandbox.url, apiKey });
const client = (account: SandboxAccount) => connect(at(account));

const orders = (authorization?: string) =>
  fetch(`${sandbox.url}/v1/orders`, { headers: authorization ? { authorization } : {} });

const everything = ({ truth }: SandboxAccount) =>
  RESOURCES.map((resource) => [...truth.keys(resource)].map((key) => truth.text(resource, key)));

describe('accounts', () => {
  it('have names that sort, and a key each; one alone is as it always was', async () => {
    const names = (accounts: readonly SandboxAccount[]) => accounts.map(({ name }) => name);
    expect(names(await start({ accounts: 12 }))).toEqual(names(sandbox.accounts).toSorted());
    expect(names(sandbox.accounts).slice(8)).toEqual([
      'winery-09',
      'winery-10',
      'winery-11',
      'winery-12',
    ]);
    expect(new Set(sandbox.accounts.map(({ apiKey }) => apiKey)).size).toBe(12);
    expect(sandbox.account('winery-02').apiKey).toBe('sandbox-key-2');
    expect(() => sandbox.account('winery-2')).toThrow('winery-01 to winery-12');
    await sandbox.close();

    const [only] = await start({ accounts: 1 });
    expect([only!.name, only!.apiKey]).toEqual(['winery-1', 'sandbox-key']);
    expect(sandbox.truth).toBe(only!.truth);
  });

  it('refuses numbers that it cannot serve', async () => {
    await start();
    for (const accounts of [0, 1.5, 10_001, NaN]) {
      await expect(startSandbox({ accounts })).rejects.toThrow('accounts must be an integer');
    }
  });

  it('have records of their own, which their number and the seed decide', async () => {
    const before = (await start()).map(everything);
    for (const [k, resource] of RESOURCES.entries()) {
      const lists = before.map((account) => account[k]);
      expect(new Set(lists.map(String)).size, resource).toBe(3);
      expect(new Set(lists.map((list) => list!.length)).size, resource).toBe(1);
    }
    await sandbox.close();
    expect((await start({ accounts: 5 })).slice(0, 3).map(everything)).toEqual(before);
    await sandbox.close();
    expect(everything((await start({ accounts: 1 }))[0]!)).toEqual(before[0]);
    await sandbox.close();
    expect((await start({ seed: 2 })).map(everything)).not.toEqual(before);
  });

  it('serve what their truth says, whichever lists were asked for first', async () => {
    const accounts = await start();
    for (const account of accounts.toReversed()) {
      const { page } = await client(account);
      for (const resource of [...RESOURCES].toReversed()) {
        expect(await readAll(page, resource, 7)).toEqual([...account.truth.records(resource)]);
      }
    }
  });

  it('change alone, and the same for the same seed', async () => {
    const changed = async () => {
      const [first, second, third] = await start();
      const before = [first!, third!].map(everything);
      second!.changeSome(40);
      second!.setStatus(100_001, 'payment_status', 'refunded');
      expect([first!, third!].map(everything)).toEqual(before);
      expect([first!, third!].flatMap(({ truth }) => truth.changes)).toEqual([]);
      third!.changeSome(40);
      expect(third!.truth.changes).not.toEqual(second!.truth.changes.slice(0, 40));
      return everything(second!);
    };
    const once = await changed();
    await sandbox.close();
    expect(await changed()).toEqual(once);
  });

  it('change at the rate of each', async () => {
    const clock = handClock();
    const [first, second, third] = await start({ now: clock.now, changesPerSecond: 10 });
    second!.setRate(0);
    clock.pass(2_000);
    await expect.poll(() => third!.truth.changes.length).toBeGreaterThanOrEqual(20);
    expect(first!.truth.changes).toHaveLength(20);
    expect(third!.truth.changes.length).toBeLessThanOrEqual(21);
    expect(second!.truth.changes).toEqual([]);
  });
});

describe('a token', () => {
  it('opens the records of the account that logged in, and no others', async () => {
    const accounts = await start();
    for (const account of accounts) {
      const answer = await orders(`Bearer ${await tokenOf(at(account))}`);
      expect(((await answer.json()) as { data: unknown[] }).data).toEqual([
        ...account.truth.records('orders'),
      ]);
    }
  });

  it('that names another account is refused', async () => {
    const [first, second] = await start();
    const [head, , signature] = (await tokenOf(at(first!))).split('.');
    const [, claims] = (await tokenOf(at(second!))).split('.');
    const forged = `Bearer ${[head, claims, signature].join('.')}`;
    expect((await orders(forged)).status).toBe(401);
    expect(second!.truth.requests('orders')).toHaveLength(1); // whose it said it was
    expect(first!.truth.requests('orders')).toHaveLength(0);
  });

  it('of an account that is not there is refused', async () => {
    await start({ accounts: 1 });
    const old = `Bearer ${await tokenOf(sandbox)}`;
    await sandbox.close();
    await start({ accounts: 12 }); // winery-1 is winery-01 now
    expect((await orders(old)).status).toBe(401);
  });

  it('is revoked with those of its account alone', async () => {
    const [first, second] = await start();
    const clients = [await client(first!), await client(second!)];
    first!.revokeTokens();
    const statuses = await Promise.all(
      clients.map(async ({ get }) => (await get('orders')).status),
    );
    expect(statuses).toEqual([401, 200]);
  });
});

describe('quotas', () => {
  it('of lists are for each account', async () => {
    const [first, second] = await start({ quotaPerMinute: 2, quotaScope: 'key' });
    const [one, two] = [await client(first!), await client(second!)];
    const status = async ({ get }: typeof one) => (await get('orders')).status;
    expect([await status(one), await status(one), await status(one)]).toEqual([200, 200, 429]);
    expect([await status(two), await status(two), await status(two)]).toEqual([200, 200, 429]);
    expect([first!.truth.refused(), second!.truth.refused()]).toEqual([1, 1]);
    expect(first!.truth.mostInAnyWindow('orders', 60_000)).toBe(3);
  });

  it('of logins are for each account', async () => {
    const [first, second] = await start({ loginQuotaPerMinute: 1 });
    const status = async (account: SandboxAccount) => (await login(at(account))).status;
    expect([await status(first!), await status(first!)]).toEqual([200, 429]);
    expect(await status(second!)).toBe(200);
    expect(second!.truth.requests('login')).toHaveLength(1);
  });

  it('of accounts are not used up by requests of none', async () => {
    const accounts = await start({ loginQuotaPerMinute: 2, quotaPerMinute: 2 });
    const wrong = { url: sandbox.url, apiKey: 'wrong' };
    const statuses = async (request: () => Promise<Response>) => [
      (await request()).status,
      (await request()).status,
      (await request()).status,
    ];
    expect(await statuses(() => login(wrong))).toEqual([400, 400, 429]);
    expect(await statuses(() => orders())).toEqual([401, 401, 429]);
    expect((await orders('Bearer of.no.account')).status).toBe(429);
    for (const account of accounts) {
      const { get } = await client(account);
      expect((await get('orders')).status).toBe(200);
    }
  });
});

describe('faults', () => {
  it('of one account leave the others alone', async () => {
    const [first, second, third] = await start();
    const lift = second!.fault({ kind: 'status', status: 503 });
    sandbox.fault({ kind: 'status', status: 502, endpoint: 'login' }); // the first account's
    const logins = async () => {
      const answers = await Promise.all([first!, second!, third!].map((each) => login(at(each))));
      return answers.map(({ status }) => status);
    };
    expect(await logins()).toEqual([502, 503, 200]);
    lift();
    expect(await logins()).toEqual([502, 200, 200]);
  });

  it('of all strike each account, and who has none, until they are lifted', async () => {
    const [first, second] = await start();
    const [one, two] = [await client(first!), await client(second!)];
    const statuses = async () => [
      (await one.get('orders')).status,
      (await two.get('orders')).status,
      (await orders()).status,
    ];
    const lift = sandbox.faultAll({ kind: 'status', status: 503, times: 2 });
    expect(await statuses()).toEqual([503, 503, 503]);
    expect(await statuses()).toEqual([503, 503, 503]);
    expect(await statuses()).toEqual([200, 200, 401]);
    lift();
    sandbox.faultAll({ kind: 'status', status: 503 })();
    expect(await statuses()).toEqual([200, 200, 401]);
  });

  it('of all strike a sole account once', async () => {
    await start({ accounts: 1 });
    const { get } = await connect(sandbox);
    sandbox.faultAll({ kind: 'status', status: 503, times: 1 });
    expect([(await get('orders')).status, (await get('orders')).status]).toEqual([503, 200]);
  });
});

it('makes the records of an account when they are asked for', async () => {
  // 50,000,000 orders would be 1 GB, and minutes.
  const accounts = await start({ accounts: 500, records: { orders: 100_000 } });
  const { page } = await client(accounts[498]!);
  const { data } = await page('orders', { offset: 99_999 });
  expect(data).toEqual([accounts[498]!.truth.get('orders', 200_000)]);
});
