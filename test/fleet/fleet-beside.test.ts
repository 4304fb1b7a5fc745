import { expect, it } from 'vitest';
import { accountsUnder } from '../../src/fleet/fleet-beside.ts';

it('finds each fleet whose account could have a prefix: there may be dots in both', () => {
  expect(accountsUnder('wine')).toEqual([]);
  expect(accountsUnder('wine.east')).toEqual([{ fleet: 'wine', account: 'east' }]);
  expect(accountsUnder('eu.wine.east')).toEqual([
    { fleet: 'eu', account: 'wine.east' },
    { fleet: 'eu.wine', account: 'east' },
  ]);
});
