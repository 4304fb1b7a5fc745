import { describe, expect, it } from 'vitest';
import type { AccountTopicState } from '../../src/fleet/fleet-record.ts';
import { isQuarantined, isSuspect, crashTimesOf } from '../../src/fleet/crashes.ts';

const MINUTE_MS = 60_000;
const NOW = 100 * MINUTE_MS;
const moment = { instance: 'me', members: new Set(['me', 'other']), now: NOW };

const word = (some: Partial<AccountTopicState>): AccountTopicState => ({
  owner: { instance: 'gone', name: 'gone', generation: 1 },
  releaseRequest: undefined,
  updatedAt: NOW - 10_000,
  claimedAt: NOW - 10_000,
  crashTimes: [],
  quarantinedAt: undefined,
  ...some,
});

describe('losses of instances that had just taken an account', () => {
  it('count for ten minutes', () => {
    expect(crashTimesOf(undefined, moment)).toEqual([]);
    expect(crashTimesOf(word({}), moment)).toEqual([NOW]);
    const losses = [NOW - 11 * MINUTE_MS, NOW - 9 * MINUTE_MS];
    expect(crashTimesOf(word({ crashTimes: losses }), moment)).toEqual([NOW - 9 * MINUTE_MS, NOW]);
  });

  it('are none where it ran for long, was released, or its owner is there', () => {
    const losses = [NOW - MINUTE_MS];
    const others: Partial<AccountTopicState>[] = [
      { claimedAt: NOW - 40_000 },
      { claimedAt: undefined },
      { owner: undefined },
      { owner: { instance: 'other', name: 'other', generation: 1 } },
      { owner: { instance: 'me', name: 'me', generation: 1 } },
    ];
    for (const other of others)
      expect(crashTimesOf(word({ ...other, crashTimes: losses }), moment)).toEqual(losses);
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
