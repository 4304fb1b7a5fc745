import { describe, expect, it, vi } from 'vitest';
import { commits } from '../support/proxy/kafka-frames.ts';
import { holdRequest } from '../support/proxy/kafka-proxy.ts';
import type { Aim } from '../support/proxy/kafka-proxy.ts';
import { scaled } from '../support/scale.ts';
import { between } from './support/between.ts';
import { fleetForTest } from './support/fleet.ts';
import type { TestAccount } from './support/fleet.ts';
import { followFleet } from './support/fleet-said.ts';
import { expectServed, generationOf, named, servedAgain, shared } from './support/fleet-states.ts';

/** More than the quota allows: an overrun would show. */
const BUSY = { POLL_INTERVAL_MS: '500' };
const SOON = { timeout: 30_000, interval: 10 };

/** Something that a test lets happen. */
function gate() {
  let open: () => void = () => undefined;
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  return { open, opened: () => isOpen };
}

/** What a target says in the fleet's topic: first of all, that it asks. */
const ITS_ASK: Aim = { api: 'Produce', where: ({ id }) => id === null };

/** What an account can leave open: events, or what it has declared to ask. */
const OPEN = scaled(['list'], ['list', 'ledger'] as const);

/** How the transactional id ends of an account's list, or of its ledger. */
const idOf = ({ name }: TestAccount, what: string) =>
  what === 'list' ? `${name}.orders` : `.ledger/${name}`;

describe('a handover', { timeout: 240_000 }, () => {
  it('whose target is killed between its ask and its claim is made good by the others', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-target', accounts: 2, env: BUSY });
    const one = fleet.start('one');
    await servedAgain(fleet.accounts, 0);
    const said = await followFleet(fleet);
    const way = await between(fleet);
    // It gets no further than that, however quick it is.
    const claim: Aim = {
      api: 'InitProducerId',
      where: ({ id }) => id?.includes('.ledger/') === true,
    };
    const reached = way.toKafka.strike(claim, () => undefined).begun;

    const two = fleet.start('two', way.env);
    const { account } = await said.heard(({ type, name }) => type === 'asks' && name === 'two');
    const moved = named(fleet, [account]);
    const askedAt = Date.now();
    await said.heard((each) => each.type === 'released' && each.account === account);
    await reached;
    await two.cli.end('SIGKILL');
    await shared([one], 2);
    await servedAgain(moved, Date.now());
    expectServed('the target of a handover killed', fleet.accounts, askedAt);
    expect(said.all.filter(({ type, name }) => type === 'runs' && name === 'two')).toEqual([]);
    expect(await fleet.violations()).toEqual([]);
  });

  it('is not begun by a late ask of an older generation', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-late', accounts: 2, env: BUSY });
    const one = fleet.start('one');
    await servedAgain(fleet.accounts, 0);
    const said = await followFleet(fleet);
    const releases = () => said.all.filter(({ type }) => type === 'released');
    const [late, own] = [gate(), gate()];

    const [wayOfTwo, wayOfThree] = [await between(fleet), await between(fleet)];
    const lateAsk = wayOfTwo.toKafka.strike(ITS_ASK, holdRequest(late.opened));
    const two = fleet.start('two', wayOfTwo.env);
    await lateAsk.begun;
    await two.cli.end('SIGKILL');
    await shared([one], 2);

    const ownAsk = wayOfThree.toKafka.strike(ITS_ASK, holdRequest(own.opened));
    const three = fleet.start('three', wayOfThree.env);
    await ownAsk.begun;
    const askedAt = Date.now();
    late.open();
    const { account, generation } = await said.heard(({ type }) => type === 'asks');
    expect(generation).toBeLessThan(Number(generationOf(one)?.generation));
    // It is heard, and the account goes on: three requests take a second and more.
    const [moved] = named(fleet, [account]);
    const heardAt = Date.now();
    await vi.waitFor(
      () => expect(moved!.answered().filter((at) => at > heardAt).length).toBeGreaterThan(2),
      SOON,
    );
    expect(releases()).toEqual([]);

    own.open();
    await said.runBy('three', 1);
    await servedAgain(fleet.accounts, Date.now());
    expectServed('a late ask', fleet.accounts, askedAt);
    expect(releases().map((each) => each.account)).toEqual([account]);
    expect(three.cli.stderr()).not.toContain('FENCED');
    expect(await fleet.violations()).toEqual([]);
  });

  it.for(OPEN)(
    "goes on while a transaction of another account's %s is left open by an instance that was stopped",
    async (what) => {
      const fleet = await fleetForTest({ prefix: `fleet-open-${what}`, accounts: 3, env: BUSY });
      const [stuck, ...others] = fleet.accounts as [TestAccount, ...TestAccount[]];
      const way = await between(fleet);
      const one = fleet.start('one', {
        ...way.env,
        ACCOUNTS_DIR: fleet.folderOf([stuck]),
      });
      await servedAgain([stuck], 0);
      const two = fleet.start('two');
      await shared([one, two], 3);
      await servedAgain(others, 0);
      const said = await followFleet(fleet);
      await said.runBy('two', 2);

      // It is about to join before the transaction begins: the silence of the account is not that of a process that starts.
      const [woken, joining] = [gate(), gate()];
      const wayOfThree = await between(fleet);
      const join = wayOfThree.toKafka.strike({ api: 'JoinGroup' }, holdRequest(joining.opened));
      const three = fleet.start('three', {
        ...wayOfThree.env,
        ACCOUNTS_DIR: fleet.folderOf(others),
      });
      await join.begun;
      const commit = way.toKafka.strike(
        {
          api: 'EndTxn',
          where: (request) => request.id?.endsWith(idOf(stuck, what)) === true && commits(request),
        },
        holdRequest(woken.opened),
      );
      await commit.begun;
      const openSince = Date.now();
      joining.open();
      await shared([one, two, three], 3);
      one.cli.process.kill('SIGSTOP');
      const moved = await said.runBy('three', 1);
      expect(moved).not.toContain(stuck.name);
      await servedAgain(named(fleet, moved), Date.now());
      const takers = said.all
        .filter(({ account }) => account === stuck.name)
        .map(({ name }) => name);
      expect(new Set(takers)).toEqual(new Set(['one'])); // so nobody has ended its transaction

      await shared([two, three], 3);
      await servedAgain([stuck], Date.now());
      expectServed(`stopped as a transaction of its ${what} was open`, fleet.accounts, openSince);
      woken.open();
      expect((await commit.done)?.errorCode).toBeGreaterThan(0);
      one.cli.process.kill('SIGCONT');
      await shared([one, two, three], 3);
      expect(await fleet.violations()).toEqual([]);
    },
  );
});
