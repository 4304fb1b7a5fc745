import { describe, expect, it } from 'vitest';
import type { AccountWord } from '../../src/fleet/fleet-record.ts';
import { isQuarantined, isSuspect, lossesOf } from '../../src/fleet/losses.ts';

const MINUTE_MS = 60_000;
const NOW = 100 * MINUTE_MS;
const moment = { me: 'me', members: new Set(['me', 'other']), now: NOW };

const word = (some: Partial<AccountWord>): AccountWord => ({
  owner: { instance: 'gone', name: 'gone', generation: 1 },
  ask: undefined,
  at: NOW - 10_000,
  takenAt: NOW - 10_000,
  losses: [],
  quarantinedAt: undefined,
  ...some,
});

describe('losses of instances that had just taken an account', () => {
  it('count for ten minutes', () => {
    expect(lossesOf(undefined, moment)).toEqual([]);
    expect(lossesOf(word({}), moment)).toEqual([NOW]);
    const losses = [NOW - 11 * MINUTE_MS, NOW - 9 * MINUTE_MS];
    expect(lossesOf(word({ losses }), moment)).toEqual([NOW - 9 * MINUTE_MS, NOW]);
  });

  it('are none where it ran for long, was released, or its owner is there', () => {
    const losses = [NOW - MINUTE_MS];
    const others: Partial<AccountWord>[] = [
      { takenAt: NOW - 40_000 },
      { takenAt: undefined },
      { owner: undefined },
      { owner: { instance: 'other', name: 'other', generation: 1 } },
      { owner: { instance: 'me', name: 'me', generation: 1 } },
    ];
    for (const other of others)
      expect(lossesOf(word({ ...other, losses }), moment)).toEqual(losses);
  });

  it('make it a suspect before they make it the cause', () => {
    expect([[], [1], [1, 2], [1, 2, 3]].map(isSuspect)).toEqual([false, false, true, false]);
  });
});

it('is over in an hour', () => {
  expect(isQuarantined(undefined, NOW)).toBe(false);
  expect(isQuarantined(word({}), NOW)).toBe(false);
  expect(isQuarantined(word({ quarantinedAt: NOW - 59 * MINUTE_MS }), NOW)).toBe(true);
  expect(isQuarantined(word({ quarantinedAt: NOW - 61 * MINUTE_MS }), NOW)).toBe(false);
});
