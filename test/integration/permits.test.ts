import { describe, expect, it, vi } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { scaled } from '../support/scale.ts';
import { cliForTest, connections, folderForTest, sandboxForTest } from './support/service.ts';
import type { Env } from './support/service.ts';

const LIMITS = { orders: 100, products: 100, login: 10 };
const WINDOW_MS = 60_000;
const PATIENCE = { timeout: 150_000, interval: 20 };

/** As many requests as a service makes while others ask beside it. */
const FULL = scaled(140, 260);
const SECOND_MINUTE = scaled(30, 85);

/** With the true limits, and more to read than they allow in minutes. */
async function account(prefix: string) {
  const sandbox = await sandboxForTest({
    records: { orders: 30_000, products: 30_000 },
    quotaPerMinute: LIMITS.orders,
    loginQuotaPerMinute: LIMITS.login,
  });
  const settings = { RESOURCES: 'orders,products', PAGE_SIZE: '100' };
  const env = (): Env => ({ ...connections(sandbox, prefix, folderForTest()), ...settings });
  return { sandbox, run: () => cliForTest(['run'], env()), env };
}

const requests = ({ truth }: Sandbox) => truth.requests('orders').length;
const reached = (sandbox: Sandbox, count: number) =>
  vi.waitUntil(() => requests(sandbox) >= count, PATIENCE);

async function fine(args: readonly string[], env: Env): Promise<{ out: string; ms: number }> {
  const begun = performance.now();
  const cli = cliForTest(args, env);
  expect(await cli.ended, `${cli.stdout()}${cli.stderr()}`).toBe(0);
  return { out: cli.stdout(), ms: Math.round(performance.now() - begun) };
}

/** As the API counts. */
function keptItsQuota(name: string, { truth }: Sandbox): void {
  const endpoints = ['orders', 'products', 'login'] as const;
  const most = endpoints.map((each) => [each, truth.mostInAnyWindow(each, WINDOW_MS)] as const);
  console.log(`${name}: most in any minute`, Object.fromEntries(most), 'refused', truth.refused());
  for (const [endpoint, count] of most)
    expect(count, endpoint).toBeLessThanOrEqual(LIMITS[endpoint]);
  expect(truth.refused()).toBe(0);
}

async function besideFullUse(): Promise<void> {
  const { sandbox, run, env } = await account('permits-full');
  const service = run();
  await reached(sandbox, 30);
  const took: number[] = [];
  for (const count of scaled([40, 95], [40, 95, 200])) {
    await reached(sandbox, count);
    const { out, ms } = await fine(['check'], env());
    expect(out).toMatch(/^orders +ok +\d+ records/m);
    expect(out).not.toMatch(/^quota/m);
    took.push(ms);
  }
  const peeked = await fine(['peek', 'orders', '--limit', '250'], env());
  expect(peeked.out.trim().split('\n')).toHaveLength(250);
  // Guests have 20 of 100 requests a minute: more checks succeed or report the lack of permits, and never blame the API.
  const more = ['first', 'second', 'third'].map(() => cliForTest(['check'], env()));
  for (const cli of more) {
    await cli.ended;
    const lists = cli.stdout().match(/^(orders|products) .*$/gm) ?? [cli.stdout()];
    for (const line of lists)
      expect(line).toMatch(/ ok +\d+ records| FAIL +no permits .* try again in a minute$/);
  }
  await reached(sandbox, FULL);
  console.log('beside full use: check took', took, 'ms, peek', peeked.ms);
  keptItsQuota('beside full use', sandbox);
  const times = sandbox.truth.requests('orders').map(({ at }) => at);
  const full = times.filter((at) => at >= times[0]! + 60_000 && at < times[0]! + 120_000).length;
  console.log(`beside full use: ${full} requests in the second minute`);
  expect(full).toBeGreaterThanOrEqual(SECOND_MINUTE);
  expect(await service.end('SIGTERM')).toBe(0);
}

/** Nobody gives permits: what is asked is declared, and a service that comes counts it. */
async function afterStop(): Promise<void> {
  const { sandbox, run, env } = await account('permits-alone');
  const first = run();
  await reached(sandbox, 60);
  expect(await first.end('SIGTERM')).toBe(0);
  const [asked, begun] = [requests(sandbox), performance.now()];
  const checked = fine(['check'], env());
  await reached(sandbox, asked + 1);
  const ms = Math.round(performance.now() - begun);
  await checked;
  const peeked = await fine(['peek', 'orders', '--limit', '1500'], env());
  console.log(`alone: check asked after ${ms} ms, peek of 15 pages took ${peeked.ms} ms`);
  expect(ms).toBeLessThan(9_000);
  const killed = cliForTest(['peek', 'orders'], env());
  const before = requests(sandbox);
  await reached(sandbox, before + 3);
  await killed.end('SIGKILL');
  const next = run();
  await reached(sandbox, scaled(140, 200));
  expect(await next.end('SIGTERM')).toBe(0);
  keptItsQuota('alone', sandbox);
}

/** Where no service has ever been there is nothing to declare in, and nothing is made. */
async function first(): Promise<void> {
  const { sandbox, env } = await account('permits-first');
  const { out, ms } = await fine(['check'], env());
  console.log(`first: check took ${ms} ms`);
  expect(out).toMatch(/cellarstream run` will create .*permits-first\.ledger/);
  const again = await fine(['check'], env());
  expect(again.out).toMatch(/cellarstream run` will create .*permits-first\.ledger/);
  const unreachable = cliForTest(['check'], { ...env(), KAFKA_BROKERS: '127.0.0.1:1' });
  expect(await unreachable.ended).toBe(1);
  expect(unreachable.stdout()).toMatch(/^orders +ok/m);
  expect(unreachable.stdout()).toMatch(/^kafka +FAIL/m);
  keptItsQuota('first', sandbox);
}

describe('never more than the quota, whoever asks', () => {
  it('check and peek beside a service in full use, without one, and before the first', async () => {
    const all = await Promise.allSettled([besideFullUse(), afterStop(), first()]);
    expect(all.filter(({ status }) => status === 'rejected')).toEqual([]);
  }, 300_000);
});
