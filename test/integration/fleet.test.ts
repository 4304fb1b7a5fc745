import { describe, expect, it, vi } from 'vitest';
import { scaled } from '../support/scale.ts';
import { fleetForTest } from './support/fleet.ts';
import type { Instance, TestAccount, TestFleet } from './support/fleet.ts';
import {
  longestGap,
  mostOfQuota,
  named,
  servedAgain,
  shared,
  SOON,
} from './support/fleet-states.ts';

/** Whether the quota's window is full when an instance is killed: that takes most of a minute. */
const FILLS = scaled(false, true);
const all = (fleet: TestFleet) => fleet.accounts;

/** Resolves when lists were taken over so often, by all of these instances. */
async function ready(instances: readonly Instance[], times: number): Promise<void> {
  await vi.waitFor(() => {
    const lines = instances.flatMap(({ cli }) => cli.lines());
    expect(lines.filter(({ event }) => event === 'ready').length).toBeGreaterThanOrEqual(times);
  }, SOON);
}

const steps = ({ cli }: Instance) =>
  cli.lines().flatMap(({ event, step }) => (event === 'account' ? [step] : []));

/** Which of these instances has taken an account last, and when. */
function lastClaim({ name }: TestAccount, instances: readonly Instance[]) {
  const claims = instances.flatMap((instance) =>
    instance.cli
      .lines()
      .filter(({ account, step }) => account === name && step === 'claim')
      .map(({ time }) => ({ instance, time: Date.parse(String(time)) })),
  );
  return claims.toSorted((a, b) => a.time - b.time).at(-1);
}

/** Whether a list of the account is read since. */
function isReadAfter({ name }: TestAccount, claim: { instance: Instance; time: number }): boolean {
  return claim.instance.cli
    .lines()
    .some(
      ({ account, event, time }) =>
        account === name && event === 'ready' && Date.parse(String(time)) > claim.time,
    );
}

describe('run with ACCOUNTS_DIR', { timeout: 240_000 }, () => {
  it('shares accounts out, and takes over those of an instance that is killed', async () => {
    const fleet = await fleetForTest({
      ...{ prefix: 'fleet-kill', accounts: 6 },
      env: { POLL_INTERVAL_MS: FILLS ? '500' : '1000' },
    });
    const instances = ['one', 'two', 'three'].map((name) => fleet.start(name));
    await shared(instances, 6);
    await servedAgain(all(fleet), 0);
    await vi.waitFor(() => {
      for (const { cli } of instances) {
        const ready = cli.lines().filter(({ event }) => event === 'ready');
        expect(ready.length).toBeGreaterThanOrEqual(2);
      }
    }, SOON);

    if (FILLS) await mostOfQuota(all(fleet));

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

  it('hands accounts over without silence when an instance comes, and when one goes', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-rolling', accounts: 6 });
    const [one, two] = ['one', 'two'].map((name) => fleet.start(name)) as [Instance, Instance];
    await shared([one, two], 6);
    await Promise.all([one, two].map((each) => ready([each], 3))); // one may have had all six before
    const before = one.claimed().length + two.claimed().length;

    const three = fleet.start('three');
    await shared([one, two, three], 6);
    await ready([three], 2);
    expect(one.claimed().length + two.claimed().length).toBe(before); // those that stay are not stopped
    expect(steps(three)).toEqual(expect.arrayContaining(['warm', 'ask', 'claim']));

    expect(await one.cli.end('SIGTERM')).toBe(0);
    await shared([two, three], 6);
    await ready([two, three], 6);
    const since = Date.now();
    await servedAgain(all(fleet), since);
    const gaps = all(fleet).map(({ polls }) => longestGap(polls()) / 1_000);
    console.log('longest gaps, s:', gaps);
    expect(Math.max(...gaps)).toBeLessThan(6); // a poll a second, and five of silence at most
    expect(two.cli.stderr()).not.toContain('FENCED');
    expect(await fleet.violations()).toEqual([]);
  });

  it('follows the files of accounts, each by itself', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-files', accounts: 3 });
    const [first, second, third] = all(fleet) as [TestAccount, TestAccount, TestAccount];
    fleet.setFile(third.name, undefined);
    fleet.setFile('wrong', 'API_KEY=other\nPAGE_SIZE=many\n');
    const instance = fleet.start('one');
    const wrong = await instance.cli.logged(({ event }) => event === 'wrong-file');
    expect(wrong.account).toBe('wrong');
    await ready([instance], 2);
    expect(third.polls()).toEqual([]);

    fleet.setFile(third.name, fleet.fileOf(third));
    await ready([instance], 3);
    fleet.setFile(second.name, `${fleet.fileOf(second)}POLL_INTERVAL_MS=500\n`);
    await ready([instance], 4);
    fleet.setFile(first.name, undefined);
    await instance.cli.logged(({ account, step }) => account === first.name && step === 'stop');
    await vi.waitFor(() => {
      const last = first.polls().at(-1)!;
      expect(Date.now() - last).toBeGreaterThan(5_000);
    }, SOON);
    await servedAgain([second, third], Date.now());
    expect(await instance.cli.end('SIGTERM')).toBe(0);
    expect(instance.cli.stderr()).not.toContain('key-of-');
  });

  // Left to the long run, as it waits for three sessions to run out; the simulation has its rules.
  it.runIf(scaled(false, true))(
    'quarantines an account that takes three instances down, and goes on with the others',
    async () => {
      const fleet = await fleetForTest({ prefix: 'fleet-quarantine', accounts: 4 });
      const [poison, ...sound] = all(fleet) as [TestAccount, ...TestAccount[]];
      let alive = ['one', 'two', 'three', 'four'].map((name) => fleet.start(name));
      await shared(alive, 4);
      await vi.waitFor(() => {
        const owners = all(fleet).map((account) => lastClaim(account, alive)?.instance);
        expect(new Set(owners).size).toBe(4);
      }, SOON);
      let killedAt = 0;
      for (let losses = 0; losses < 3; losses++) {
        const taken = await vi.waitFor(() => {
          const newest = lastClaim(poison, alive);
          expect(newest?.time).toBeGreaterThan(killedAt);
          expect(isReadAfter(poison, newest!)).toBe(true);
          return newest!;
        }, SOON);
        const victim = taken.instance;
        killedAt = Date.now();
        await victim.cli.end('SIGKILL');
        alive = alive.filter((instance) => instance !== victim);
      }
      const [last] = alive as [Instance];
      const { account } = await last.cli.logged(({ event }) => event === 'quarantined');
      expect(account).toBe(poison.name);
      await servedAgain(sound, Date.now());
      expect(last.claimed()).not.toContain(poison.name);

      fleet.setFile(poison.name, `${fleet.fileOf(poison)}POLL_INTERVAL_MS=800\n`);
      await servedAgain([poison], Date.now());
      expect(await fleet.violations()).toEqual([]);
    },
  );
});
