import { expect, it } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import { fleetViewOf } from '../../src/fleet/fleet-view-of.ts';
import type { Known } from '../../src/fleet/fleet-view-of.ts';

const NOW = 1_000_000;
const file = { config: {} as never };
const owner = (instance: string) => ({ instance, name: `${instance}-host`, generation: 3 });
const runs = (instance: string | undefined, at = NOW - 1_000) => ({
  owner: instance === undefined ? undefined : owner(instance),
  ask: undefined,
  at,
  takenAt: undefined,
  losses: [],
  quarantinedAt: undefined,
});

function view(known: Partial<Known>) {
  const { accounts } = fleetViewOf({
    name: 'a-host',
    generation: 3,
    given: {
      members: ['a', 'b'].map((instance) => ({ instance, name: `${instance}-host` })),
      accounts: new Map([['east', 'a']]),
    },
    words: new Map(),
    files: new Map([['east', file]]),
    here: new Map(),
    now: NOW,
    ...known,
  });
  return accounts.map(({ account, state, owner: by, problem }) => [account, state, by, problem]);
}

it('says how an account is', () => {
  const words = (word: ReturnType<typeof runs>) => ({ words: new Map([['east', word]]) });
  expect(view(words(runs('a')))).toEqual([['east', 'running', 'a-host', undefined]]);
  expect(view(words(runs('b')))).toEqual([['east', 'moving', 'b-host', undefined]]);
  expect(view({})).toEqual([['east', 'starting', undefined, undefined]]);
  expect(view(words(runs('gone', NOW - 60_000)))).toEqual([
    ['east', 'without-owner', undefined, 'the instance that it was given has not taken it'],
  ]);
  const here = new Map([
    ['east', { doing: 'nothing' as const, error: new CellarstreamError('FENCED', 'fenced') }],
  ]);
  expect(view({ here })).toEqual([['east', 'failed', undefined, 'fenced']]);
});

it('says what nobody runs, and why', () => {
  const given = { members: [], accounts: new Map<string, string>() };
  const error = new CellarstreamError('SETTINGS', 'wrong.env: is wrong');
  const files = new Map([['wrong', { error }]]);
  const words = new Map([
    ['lost', runs('gone')],
    ['closed', runs(undefined)],
  ]);
  expect(view({ given, files, words })).toEqual([
    ['lost', 'without-owner', undefined, 'no instance has its file'],
    ['wrong', 'wrong-file', undefined, 'wrong.env: is wrong'],
  ]);
});
