import { describe, expect, it, vi } from 'vitest';
import { fleetForTest } from './support/fleet.ts';
import type { Instance, TestAccount, TestFleet } from './support/fleet.ts';

const SOON = { timeout: 60_000, interval: 100 };

/** Resolves when each of these accounts was asked for again after a moment; gives how long that took, ms. */
async function servedAgain(accounts: readonly TestAccount[], since: number): Promise<number[]> {
  return Promise.all(
    accounts.map(async ({ polls }) => {
      const next = () => polls().find((at) => at > since);
      await vi.waitFor(() => expect(next()).toBeDefined(), SOON);
      return next()! - since;
    }),
  );
}

const all = (fleet: TestFleet) => fleet.accounts;
const named = (fleet: TestFleet, names: readonly string[]) =>
  fleet.accounts.filter(({ name }) => names.includes(name));

/** Resolves when each of so many instances has its part. */
async function shared(instances: readonly Instance[], accounts: number): Promise<void> {
  await vi.waitFor(() => {
    const newest = instances.map(({ cli }) =>
      cli.lines().findLast(({ event }) => event === 'generation'),
    );
    const sum = newest.reduce((total, line) => total + Number(line?.accounts ?? 0), 0);
    expect(sum).toBe(accounts);
    for (const line of newest) expect(line?.instances).toHaveLength(instances.length);
  }, SOON);
}

describe('run with ACCOUNTS_DIR', { timeout: 240_000 }, () => {
  it('shares accounts out, and takes over those of an instance that is killed', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-kill', accounts: 6 });
    const instances = ['one', 'two', 'three'].map((name) => fleet.start(name));
    await shared(instances, 6);
    await servedAgain(all(fleet), 0);
    await vi.waitFor(() => {
      for (const { cli } of instances) {
        const ready = cli.lines().filter(({ event }) => event === 'ready');
        expect(ready.length).toBeGreaterThanOrEqual(2);
      }
    }, SOON);

    const [victim, ...others] = instances as [Instance, Instance, Instance];
    const lost = named(fleet, victim.claimed());
    const killedAt = Date.now();
    await victim.cli.end('SIGKILL');
    const silence = await servedAgain(lost, killedAt + 1_000);
    console.log(
      'silence after a kill, s:',
      silence.map((ms) => (ms / 1_000 + 1).toFixed(1)),
    );
    await shared(others, 6);
    expect(await fleet.violations()).toEqual([]);
    for (const { cli } of others) expect(await cli.end('SIGTERM')).toBe(0);
  });
});
