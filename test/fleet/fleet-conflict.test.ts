import { expect, it } from 'vitest';
import { fleetAccountsUnder } from '../../src/fleet/fleet-conflict.ts';

it('finds each fleet whose account could have a prefix: there may be dots in both', () => {
  expect(fleetAccountsUnder('wine')).toEqual([]);
  expect(fleetAccountsUnder('wine.east')).toEqual([{ fleet: 'wine', account: 'east' }]);
  expect(fleetAccountsUnder('eu.wine.east')).toEqual([
    { fleet: 'eu', account: 'wine.east' },
    { fleet: 'eu.wine', account: 'east' },
  ]);
});
