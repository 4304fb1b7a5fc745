import { expect, it } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import { accountOverviews, hasProblem } from '../../src/fleet/account-views.ts';
import type { FleetOverview } from '../../src/fleet/account-views.ts';
import type { AccountTopicState } from '../../src/fleet/fleet-record.ts';
import type { Report } from '../../src/fleet/report.ts';
import type { AccountFigures } from '../../src/observe/fleet-view.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');
const AT = NOW - 60_000;
const ONE = { instance: 'i1', name: 'one' };
const GONE = { instance: 'i9', name: 'nine' };

const runsAt = (owner: typeof ONE): AccountTopicState => ({
  ...{
    owner: { ...owner, generation: 1 },
    releaseRequest: undefined,
    updatedAt: AT,
    claimedAt: AT,
  },
  ...{ crashTimes: [], quarantinedAt: undefined },
});
const fleet = (
  now: Partial<FleetOverview> & { readonly assigned?: readonly string[] },
): FleetOverview => ({
  accounts: new Map(),
  reports: new Map(),
  group: {
    members: [
      { ...ONE, configured: ['a', 'b', 'c'], owned: new Map(), warm: [], apiKeyDigests: new Map() },
    ],
    assignment: {
      members: [ONE],
      accounts: new Map((now.assigned ?? []).map((name) => [name, 'i1'])),
    },
  },
  files: new Map(),
  now: NOW,
  ...now,
});

it('puts what is wrong first', () => {
  const error = new CellarstreamError('SETTINGS', 'b.env: 1 setting is wrong');
  const accounts = accountOverviews(
    fleet({
      assigned: ['a', 'c'],
      accounts: new Map([
        ['a', runsAt(ONE)],
        ['c', runsAt(ONE)],
        ['d', runsAt(GONE)],
      ]),
      files: new Map([['b', { error }]]),
    }),
  );
  expect(accounts).toEqual([
    {
      ...{ account: 'b', state: 'wrong-file', owner: undefined, since: undefined },
      problem: 'b.env: 1 setting is wrong',
    },
    {
      ...{ account: 'd', state: 'without-owner', owner: undefined, since: undefined },
      problem: 'no instance has its file; nine was its last owner and has left the fleet',
    },
    { account: 'a', state: 'running', owner: 'one', since: AT, problem: undefined },
    { account: 'c', state: 'running', owner: 'one', since: AT, problem: undefined },
  ]);
  expect(accounts.map(hasProblem)).toEqual([true, true, false, false]);
});

it('takes no owner for alive that is no member of the group', () => {
  const words = new Map([['a', runsAt(GONE)]]);
  const [taken] = accountOverviews(fleet({ assigned: ['a'], accounts: words }));
  expect(taken).toMatchObject({ state: 'without-owner', owner: undefined });
  const group = { members: [], assignment: undefined };
  const [nobody] = accountOverviews(fleet({ accounts: words, group }));
  expect(nobody?.problem).toBe('no instance runs; nine was its last owner and has left the fleet');
});

it('shows a wrong file of an account that is still run', () => {
  const files = new Map([['a', { error: new CellarstreamError('SETTINGS', 'a.env: wrong') }]]);
  const [account] = accountOverviews(
    fleet({ assigned: ['a'], accounts: new Map([['a', runsAt(ONE)]]), files }),
  );
  expect(account).toMatchObject({ state: 'wrong-file', owner: 'one', since: AT });
});

it('knows what is wrong with an account that runs, or failed, from its instance', () => {
  const figures = (causes: readonly string[], reason: string): AccountFigures => ({
    ...{ at: NOW, ready: false, reasons: [reason], causes, lagMs: null, lookedAt: null },
    ...{ quota: null, eventsPerSecond: 0, firstRead: null },
  });
  const report: Report = {
    ...{ type: 'reports', ...ONE, at: '' },
    accounts: {
      a: { weight: 1, figures: figures(['starting'], 'orders: not caught up yet') },
      b: { weight: 1, figures: figures(['api'], 'orders: waiting for the API') },
      c: { weight: 1, failed: 'the API key is refused' },
    },
  };
  const accounts = accountOverviews(
    fleet({
      assigned: ['a', 'b', 'c'],
      accounts: new Map(['a', 'b'].map((name) => [name, runsAt(ONE)])),
      reports: new Map([['i1', report]]),
    }),
  );
  expect(accounts.map(({ account, state, problem }) => [account, state, problem])).toEqual([
    ['c', 'failed', 'the API key is refused'],
    ['b', 'running', 'orders: waiting for the API'],
    ['a', 'running', undefined],
  ]);
});
