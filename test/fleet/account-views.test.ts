import { expect, it } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import { accountViews } from '../../src/fleet/account-views.ts';
import type { FleetViewInput } from '../../src/fleet/account-views.ts';
import type { Report } from '../../src/fleet/report.ts';
import type { AccountFigures } from '../../src/observe/fleet-view.ts';

const NOW = 1_000_000;
const file = { config: {} as never };
const owner = (instance: string) => ({ instance, name: `${instance}-host`, generation: 3 });
const runs = (instance: string | undefined, at = NOW - 1_000) => ({
  owner: instance === undefined ? undefined : owner(instance),
  releaseRequest: undefined,
  updatedAt: at,
  claimedAt: undefined,
  crashTimes: [],
  quarantinedAt: undefined,
});

const FIGURES: AccountFigures = {
  ...{ at: NOW, ready: true, reasons: [], causes: [], lagMs: 40, lookedAt: NOW - 900 },
  ...{ quota: null, eventsPerSecond: 0, firstRead: null },
};
const reports = (by: Readonly<Record<string, Report['accounts'][string]>>) =>
  new Map(
    Object.entries(by).map(([instance, east]): [string, Report] => [
      instance,
      { type: 'reports', instance, name: `${instance}-host`, at: '', accounts: { east } },
    ]),
  );

function accountsOf(known: Partial<FleetViewInput>) {
  return accountViews({
    assignment: {
      members: ['a', 'b'].map((instance) => ({ instance, name: `${instance}-host` })),
      accounts: new Map([['east', 'a']]),
    },
    accounts: new Map(),
    reports: new Map(),
    files: new Map([['east', file]]),
    localAccounts: new Map(),
    now: NOW,
    ...known,
  });
}

function view(known: Partial<FleetViewInput>) {
  return accountsOf(known).map(({ account, state, owner: by, problem }) => [
    ...[account, state, by, problem],
  ]);
}

it('says how an account is', () => {
  const words = (word: ReturnType<typeof runs>) => ({ accounts: new Map([['east', word]]) });
  expect(view(words(runs('a')))).toEqual([['east', 'running', 'a-host', undefined]]);
  expect(view(words(runs('b')))).toEqual([['east', 'moving', 'b-host', undefined]]);
  expect(view({})).toEqual([['east', 'starting', undefined, undefined]]);
  expect(view(words(runs('gone', NOW - 60_000)))).toEqual([
    ['east', 'without-owner', undefined, 'the instance that it is assigned to has not claimed it'],
  ]);
  const failure = { error: new CellarstreamError('FENCED', 'fenced'), retryAt: NOW + 5_000 };
  const here = new Map([['east', { run: { failure } }]]);
  expect(view({ localAccounts: here })).toEqual([['east', 'failed', undefined, 'fenced']]);
});

it('says which instance is to run an account that does not run there', () => {
  const target = (word: ReturnType<typeof runs> | undefined) =>
    accountsOf(word ? { accounts: new Map([['east', word]]) } : {})[0]?.target;
  expect(target(runs('b'))).toBe('a-host');
  expect(target(undefined)).toBe('a-host');
  expect(target(runs('a'))).toBeUndefined();
});

it('says what nobody runs, and why', () => {
  const given = { members: [], accounts: new Map<string, string>() };
  const error = new CellarstreamError('SETTINGS', 'wrong.env: is wrong');
  const files = new Map([['wrong', { error }]]);
  const words = new Map([
    ['lost', runs('gone')],
    ['closed', runs(undefined)],
  ]);
  expect(view({ assignment: given, files, accounts: words })).toEqual([
    ['lost', 'without-owner', undefined, 'no instance has its file'],
    ['wrong', 'wrong-file', undefined, 'wrong.env: is wrong'],
  ]);
});

it('says of a wrong file who runs the account all the same, and since when it runs', () => {
  const files = new Map([
    ['east', { error: new CellarstreamError('SETTINGS', 'east.env: wrong') }],
  ]);
  const asked = {
    ...runs('a'),
    claimedAt: NOW - 9_000,
    releaseRequest: { instance: 'b', generation: 2 },
  };
  const words = new Map([['east', asked]]);
  const since = NOW - 9_000; // an ask that came to nothing is no beginning
  expect(accountsOf({ accounts: words, files })).toMatchObject([
    { state: 'wrong-file', owner: 'a-host', since, problem: 'east.env: wrong' },
  ]);
  expect(accountsOf({ accounts: words })).toMatchObject([
    { state: 'running', owner: 'a-host', since },
  ]);
});

it('says that an account is not run as another one has its key, wherever its file is', () => {
  const given = {
    members: [],
    accounts: new Map<string, string>(),
    apiKeyConflicts: new Map([['b', 'a']]),
  };
  const problem = expect.stringContaining('API_KEY is also in a.env') as string;
  for (const files of [new Map([['b', file]]), new Map()]) {
    expect(view({ assignment: given, files })).toEqual([['b', 'wrong-file', undefined, problem]]);
  }
});

it('has the figures of an account from whoever runs it', () => {
  const words = new Map([['east', runs('a')]]);
  const told = { a: { weight: 1, figures: FIGURES }, b: { weight: 1 } };
  expect(accountsOf({ accounts: words, reports: reports(told) })[0]?.figures).toEqual(FIGURES);
  const moving = new Map([['east', runs('b')]]);
  expect(accountsOf({ accounts: moving, reports: reports(told) })[0]?.figures).toBeUndefined();
});

it('says that an account failed where another instance has told so, and why', () => {
  const failed = { weight: 1, failed: 'the API key is refused' };
  const atA = reports({ a: failed });
  const asFailed = (owner?: string) => [['east', 'failed', owner, 'the API key is refused']];
  expect(view({ reports: atA })).toEqual(asFailed());
  // Each minute that one tries again.
  const again = new Map([['east', { ...runs('a'), isClaimPending: true }]]);
  expect(view({ reports: atA, accounts: again })).toEqual(asFailed('a-host'));
  // It was given to another one since, or still runs where it was, or goes on here.
  const atB = reports({ b: failed });
  expect(view({ reports: atB })).toEqual([['east', 'starting', undefined, undefined]]);
  const words = new Map([['east', runs('b')]]);
  expect(view({ reports: atA, accounts: words })).toEqual([
    ['east', 'moving', 'b-host', undefined],
  ]);
  const here = new Map([['east', { run: { failure: undefined } }]]);
  expect(
    view({ reports: atA, accounts: new Map([['east', runs('a')]]), localAccounts: here }),
  ).toEqual([['east', 'running', 'a-host', undefined]]);
});
