import { describe, expect, it } from 'vitest';
import type { AccountFigures, FleetAccount } from '../../../src/observe/fleet-view.ts';
import { FleetStatusModel } from '../../../src/ops/status/fleet-status.ts';

const AT = 1_700_000_000_000;
const FIGURES: AccountFigures = {
  at: AT,
  ready: true,
  reasons: [],
  causes: [],
  lagMs: 900,
  lookedAt: AT - 2_000,
  quota: { name: 'orders', used: 40, limit: 100 },
  eventsPerSecond: 0.5,
  firstRead: null,
};

/** An instance `cellar-0` that runs these accounts. */
function instance(...here: string[]) {
  const running = new Map(here.map((account) => [account, { figures: () => FIGURES }]));
  const model = new FleetStatusModel({
    prefix: 'wine',
    instance: 'cellar-0',
    now: () => AT,
    readiness: () => ({ ready: true, reasons: [], causes: [] }),
    accounts: running,
  });
  return {
    status: () => model.status(),
    notHere: (account: string) => model.notHere(account),
    tell: (...accounts: (Partial<FleetAccount> & Pick<FleetAccount, 'account'>)[]) =>
      model.onFleet({
        instance: 'cellar-0',
        generation: 3,
        instances: ['cellar-0', 'cellar-1'],
        accounts: accounts.map((each) => ({
          state: 'running',
          owner: 'cellar-1',
          since: AT - 1,
          problem: undefined,
          ...each,
        })),
      }),
  };
}

describe('the status of a fleet', () => {
  it('is that of an instance in no group before anybody has told', () => {
    expect(instance().status()).toMatchObject({
      instance: 'cellar-0',
      generation: null,
      instances: [],
      accounts: [],
    });
  });

  it('has the figures of what runs here, and of others what their owners have told', () => {
    const { tell, status } = instance('east');
    const told = { ...FIGURES, lagMs: 7 };
    tell(
      { account: 'east', owner: 'cellar-0', figures: told },
      { account: 'north' },
      { account: 'west', figures: told },
    );
    const { accounts, generation } = status();
    expect(generation).toBe(3);
    const rows = accounts.map(({ account, isHere, owner, figures }) => [
      account,
      isHere,
      owner,
      figures?.lagMs,
    ]);
    expect(rows).toEqual([
      ['east', true, 'cellar-0', 900],
      ['north', false, 'cellar-1', undefined],
      ['west', false, 'cellar-1', 7],
    ]);
    expect(accounts[1]).toMatchObject({ figures: null, problem: null });
  });

  it('has an account that runs here before the fleet has heard of it', () => {
    const { tell, status } = instance('new', 'east');
    tell({ account: 'zinfandel' });
    expect(status().accounts.map(({ account, state }) => [account, state])).toEqual([
      ['east', 'starting'],
      ['new', 'starting'],
      ['zinfandel', 'running'],
    ]);
  });

  it('is bounded in its texts', () => {
    const { tell, status } = instance();
    tell({ account: 'east', state: 'wrong-file', problem: 'x'.repeat(10_000) });
    expect(status().accounts[0]!.problem).toHaveLength(500);
  });
});

describe('an account that is asked for, and does not run here', () => {
  it('is said to run elsewhere, or why it does not run', () => {
    const { tell, notHere } = instance('east');
    tell(
      { account: 'north' },
      { account: 'south', state: 'wrong-file', owner: undefined, problem: 'API_KEY is missing' },
      { account: 'west', state: 'moving', owner: 'cellar-0' },
    );
    expect(notHere('north')).toEqual({
      error: 'north does not run on cellar-0: cellar-1 runs it, ask there',
      account: 'north',
      owner: 'cellar-1',
    });
    expect(notHere('south')).toEqual({
      error: 'south does not run just now (wrong-file): API_KEY is missing',
      account: 'south',
      owner: null,
    });
    expect(notHere('west').error).toBe('west does not run just now (moving)');
  });

  it('is unknown to all, and its name is not repeated at any length', () => {
    const { notHere } = instance();
    expect(notHere('nowhere')).toEqual({
      error: 'no instance knows an account nowhere: ACCOUNTS_DIR has no file of it',
      account: 'nowhere',
      owner: null,
    });
    expect(notHere('x'.repeat(255)).account).toHaveLength(60);
  });
});
