import { describe, expect, it } from 'vitest';
import type { FleetState } from '../../../src/observe/fleet-view.ts';
import { FleetReadiness } from '../../../src/ops/status/fleet-readiness.ts';
import type { Cause } from '../../../src/ops/status/causes.ts';

const START = Date.parse('2026-01-01T00:00:00Z');

/** An instance that runs accounts with these causes of not being ready. */
function instance(accounts: Readonly<Record<string, readonly Cause[]>>) {
  const all = Object.entries(accounts).map(([account, causes]) => {
    const reasons = causes.map((cause) => `orders: ${cause}`);
    return [account, { check: () => ({ ready: causes.length === 0, reasons, causes }) }] as const;
  });
  const model = new FleetReadiness({ accounts: new Map(all), now: () => START });
  const view = { instance: 'cellar-0', instances: ['cellar-0'] };
  return {
    check: model.check,
    join: (states: Readonly<Record<string, FleetState>> = {}) =>
      model.onFleet({
        ...view,
        generation: 1,
        accounts: Object.keys(accounts).map((account) => ({
          account,
          state: states[account] ?? 'running',
          owner: 'cellar-0',
          since: START,
          problem: undefined,
        })),
      }),
    give: (account: string, target: string) =>
      model.onFleet({
        ...view,
        generation: 1,
        accounts: [
          { account, state: 'moving', owner: 'cellar-1', target, since: START, problem: undefined },
        ],
      }),
    leave: () => model.onFleet({ ...view, generation: undefined, accounts: [] }),
  };
}

describe('an instance', () => {
  it('is not ready before it is in the group, nor when it is out of it again', () => {
    const { check, join, leave } = instance({});
    const reasons = ["not in the fleet's group yet"];
    expect(check()).toEqual({ ready: false, reasons, causes: ['starting'] });
    join();
    expect(check()).toEqual({ ready: true, reasons: [], causes: [] });
    leave();
    leave();
    expect(check()).toEqual({
      ready: false,
      reasons: ["not in the fleet's group any more since 2026-01-01T00:00:00Z"],
      causes: ['kafka'],
    });
  });

  it('is not ready while it has not taken an account that it was given', () => {
    const { check, join, give } = instance({});
    give('east', 'cellar-0');
    expect(check()).toEqual({
      ready: false,
      reasons: ['east: assigned to this instance, not running yet'],
      causes: ['starting'],
    });
    give('east', 'cellar-2');
    expect(check().ready).toBe(true);
    give('east', 'cellar-0');
    join();
    expect(check().ready).toBe(true);
  });

  it('is not ready while an account that it runs is not, and names those', () => {
    const { check, join } = instance({
      east: [],
      north: ['kafka', 'starting'],
      west: ['kafka'],
    });
    join();
    expect(check()).toEqual({
      ready: false,
      reasons: ['north, west: orders: kafka', 'north: orders: starting'],
      causes: ['kafka', 'starting'],
    });
  });

  it.each(['starting', 'stale', 'kafka', 'registry', 'state'] as const)(
    'is not ready where an account is not because of: %s',
    (cause) => {
      const { check, join } = instance({ east: [], north: ['failed', cause] });
      join();
      expect(check().ready).toBe(false);
    },
  );

  it.each(['failed', 'api', 'login'] as const)(
    'is ready where one of its accounts is not for reasons of its own: %s',
    (cause) => {
      const { check, join } = instance({ east: [], north: [cause] });
      join();
      expect(check()).toEqual({ ready: true, reasons: [], causes: [] });
    },
  );

  it.each(['wrong-file', 'failed', 'quarantined'] as const)(
    'is ready where one of its accounts is said to be: %s',
    (state) => {
      const { check, join } = instance({ north: ['starting'] });
      join({ north: state });
      expect(check().ready).toBe(true);
    },
  );

  it('is not ready when no account of it reaches its API: that may be this instance', () => {
    const { check, join } = instance({ east: ['login'], north: ['api'], west: ['failed'] });
    join();
    expect(check().reasons).toEqual(['east: orders: login', 'north: orders: api']);
  });

  it('is ready with nothing but accounts that can not go on: a restart mends none of them', () => {
    const { check, join } = instance({ east: ['failed'] });
    join();
    expect(check().ready).toBe(true);
  });
});
