import { describe, expect, it } from 'vitest';
import type { Lane } from '../../../src/observe/hooks.ts';
import { ClockSkew, countPage, changeTime } from '../../../src/ops/status/hook-figures.ts';
import type { Change, Operation } from '../../../src/streams/diff/change.ts';

const BEFORE = '2026-01-01T00:00:00Z';
const INSTANT = Date.parse(BEFORE);

function changeOf(op: Operation, before: string | null, updatedAt: number | null): Change {
  const images = { before: null, after: null };
  const was = before === null ? null : {};
  const updatedBefore = before === null ? null : Date.parse(before);
  const facts = { before: was, after: null, images, changed: [], updatedAt, updatedBefore };
  return { key: '1', op, ...facts };
}

describe('newUpdatedAt', () => {
  it('is when it was created or updated, and not when something else was', () => {
    expect(changeTime(changeOf('c', null, INSTANT))).toBe(INSTANT);
    expect(changeTime(changeOf('u', BEFORE, INSTANT + 1))).toBe(INSTANT + 1);
    expect(changeTime(changeOf('u', BEFORE, INSTANT))).toBeNull();
    expect(changeTime(changeOf('u', BEFORE, null))).toBeNull();
    expect(changeTime(changeOf('r', null, INSTANT))).toBeNull();
    expect(changeTime(changeOf('d', BEFORE, INSTANT + 1))).toBeNull();
  });
});

describe('ClockSkew', () => {
  function logins() {
    const skew = new ClockSkew();
    return {
      skew,
      login: (elapsedMs: number, ahead: number | undefined) => {
        skew.hooks.onRequest({ what: 'login', status: 200, elapsedMs, waitedMs: 0 });
        skew.hooks.onLogin({ lifeMs: 1_000, aheadMs: ahead });
        return skew.aheadMs;
      },
    };
  }

  it('is what the login says, unless a cut off Date can make as much', () => {
    const { login, skew } = logins();
    expect(skew.aheadMs).toBe(0);
    expect(login(0, 2_001)).toBe(2_001);
    expect(login(0, -2_000)).toBe(0);
    expect(login(0, -3_600_000)).toBe(-3_600_000);
  });

  it('can be told by a slow login only where it is larger than what that took', () => {
    const { login } = logins();
    expect(login(8_000, -8_900)).toBe(0);
    expect(login(8_000, -60_000)).toBe(-60_000);
    expect(login(100, -8_900)).toBe(-8_900);
  });

  it('stays what it was after a login that does not tell, and requests of lists do not matter', () => {
    const { login, skew } = logins();
    const { hooks } = skew;
    login(0, 30_000);
    hooks.onRequest({ what: 'orders', status: 200, elapsedMs: 60_000, waitedMs: 0 });
    hooks.onLogin({ lifeMs: 1_000, aheadMs: 29_000 });
    expect(login(0, undefined)).toBe(29_000);
  });
});

it('a page counts what was read: no deletion, and no record twice that is published again', () => {
  const page = (lane: Lane) =>
    countPage({
      resource: 'orders',
      lane,
      changes: (['c', 'u', 'u', 'd', 'r'] as const).map(change),
      statusChanges: [],
      unchanged: 5,
      known: 9,
      at: 0,
      completes: false,
    });
  const events = { r: 1, c: 1, u: 2, d: 1 };
  expect(page('poll')).toEqual({ read: 9, events });
  expect(page('resync')).toEqual({ read: 8, events });
});

function change(op: Operation): Change {
  const images = { before: null, after: null };
  return { key: '1', op, before: null, after: null, images, changed: [], updatedAt: null };
}
