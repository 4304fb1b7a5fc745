import { describe, expect, it, vi } from 'vitest';
import { scaled } from '../support/scale.ts';
import { fleetForTest } from './support/fleet.ts';
import type { Instance, TestAccount } from './support/fleet.ts';
import { followFleet } from './support/fleet-said.ts';
import {
  expectServed,
  LONGEST_SILENCE_MS,
  mostOfQuota,
  named,
  shared,
} from './support/fleet-states.ts';
import { fleetStatusOf } from './support/fleet-status.ts';
import { publishedTruth } from './support/published-truth.ts';

/** More than the quota allows: an overrun would show. */
const BUSY = { POLL_INTERVAL_MS: '500' };
/** Before those of the sandbox, by name. */
const NEW_NAME = 'renamed';
const SEEN = { timeout: 2 * LONGEST_SILENCE_MS, interval: 100 };

/** Resolves when an account was asked for at any time behind a moment that lies so far back. */
const seenSince = ({ polls }: TestAccount, since: number) =>
  vi.waitFor(() => expect(polls().at(-1)).toBeGreaterThan(since + LONGEST_SILENCE_MS), SEEN);

// Left to the long run: the quota's window is to be full. Which of two accounts is run has unit tests.
describe.runIf(scaled(false, true))('a file of an account', { timeout: 300_000 }, () => {
  it.for(['that runs it', 'that does not run it'])(
    'gets another name, first at the instance %s, and its key is used under one name at a time',
    async (first) => {
      const prefix = `fleet-rename-${first.replaceAll(' ', '-')}`;
      const fleet = await fleetForTest({ prefix, accounts: 2, env: BUSY });
      const folders = new Map<Instance, string>();
      const [one, two] = ['one', 'two'].map((name) => {
        const folder = fleet.folderOf(fleet.accounts);
        const instance = fleet.start(name, { ACCOUNTS_DIR: folder });
        folders.set(instance, folder);
        return instance;
      }) as [Instance, Instance];
      await shared([one, two], 2);
      const said = await followFleet(fleet);
      const [account] = named(fleet, await said.runBy('two', 1)) as [TestAccount];
      await said.runBy('one', 1);
      await mostOfQuota(fleet.accounts);

      const order = first === 'that runs it' ? [two, one] : [one, two];
      const rename = (instance: Instance) => {
        const folder = folders.get(instance)!;
        fleet.setFile(NEW_NAME, fleet.fileOf(account), folder);
        fleet.setFile(account.name, undefined, folder);
        return Date.now();
      };
      const firstAt = rename(order[0]!);
      await seenSince(account, firstAt);
      const { accounts } = await fleetStatusOf(one);
      const states = [account.name, NEW_NAME].map(
        (name) => accounts.find((each) => each.account === name)?.state,
      );
      expect(states.toSorted()).toEqual(['running', 'wrong-file']);

      const secondAt = rename(order[1]!);
      await said.heard((each) => each.type === 'runs' && each.account === NEW_NAME);
      await seenSince(account, secondAt);
      expectServed('another name of a file', fleet.accounts, firstAt);
      expect(fleet.overruns()).toEqual([]);
      account.sandbox.setRate(0);
      const { SCHEMA_REGISTRY_URL } = fleet.env;
      const topics = `${prefix}.${NEW_NAME}`;
      await publishedTruth(fleet.brokers, SCHEMA_REGISTRY_URL!, topics, account.sandbox);
    },
  );

  it('gets another name everywhere at once, and what was asked under the old one counts', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-renamed', accounts: 1, env: BUSY });
    const [account] = fleet.accounts as [TestAccount];
    const one = fleet.start('one');
    await shared([one], 1);
    const said = await followFleet(fleet);
    await mostOfQuota(fleet.accounts);

    const renamedAt = Date.now();
    fleet.setFile(NEW_NAME, fleet.fileOf(account));
    fleet.setFile(account.name, undefined);
    await said.heard((each) => each.type === 'runs' && each.account === NEW_NAME);
    await seenSince(account, renamedAt);
    expectServed('another name everywhere', fleet.accounts, renamedAt);
    expect(fleet.overruns()).toEqual([]);
  });
});
