import { describe, expect, it } from 'vitest';
import { ServerClock } from '../../../src/streams/http/server-clock.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** On the hour, but not on the day. */
const NOON = Date.UTC(2026, 2, 5, 12);
const MS = 7; // keeps times from being coarse

/** A clock at whose last scan's start `newest` was the newest, told `date` by its first answer. */
function markOf(date: number | undefined, ...updatedAt: (number | null)[]) {
  const clock = new ServerClock();
  clock.see(updatedAt);
  const newest = clock.newest();
  clock.tell(date);
  return clock.mark(newest);
}

describe('ServerClock', () => {
  it('knows nothing to begin with', () => {
    const clock = new ServerClock();
    clock.tell(undefined);
    clock.see([null]);
    expect(clock.newest()).toBeUndefined();
    expect(clock.mark(clock.newest())).toBeUndefined();
    expect(clock.latest(NOON)).toBe(NOON);
  });

  it('marks nothing while no record has been seen: Date says nothing of the clock that stamps them', () => {
    expect(markOf(NOON)).toBeUndefined();
  });

  it('marks the newest record while no Date is sent', () => {
    expect(markOf(undefined, NOON - HOUR, NOON + MS, null, NOON)).toBe(NOON + MS);
  });

  it('marks Date when the clock of the records is ahead of it', () => {
    expect(markOf(NOON, NOON + 10 * MINUTE + MS)).toBe(NOON);
  });

  it('marks the newest record when the clock of the records is behind', () => {
    expect(markOf(NOON, NOON - 10 * MINUTE + MS)).toBe(NOON - 10 * MINUTE + MS);
  });

  it('opens no gap for a record stamped in the future', () => {
    expect(markOf(NOON, NOON - 3, Date.UTC(2099, 0, 1))).toBe(NOON);
  });

  it('allows for a clock that is behind, though one record is stamped in the future', () => {
    const clock = new ServerClock();
    const [stamp, future] = [NOON - 5 * MINUTE, Date.UTC(2099, 0, 1)];
    clock.tell(NOON);
    clock.see([stamp, future + MS]);
    expect(clock.mark(clock.newest())).toBe(stamp);
    expect(clock.latest(NOON)).toBe(future + MS); // a window's end still takes it in
    clock.tell(NOON + HOUR); // nor does it say that times are not cut to minutes
    expect(clock.mark(clock.newest())).toBe(NOON + HOUR - 15 * MINUTE - MINUTE);
  });

  it('takes a record stamped in the future for the newest once Date has passed it', () => {
    const clock = new ServerClock();
    clock.tell(NOON);
    clock.see([NOON + 2 * MINUTE, NOON + MINUTE]);
    expect(clock.newest()).toBeUndefined();
    clock.tell(NOON + 2 * MINUTE - 1);
    expect(clock.newest()).toBeUndefined();
    clock.tell(NOON + 2 * MINUTE);
    expect(clock.newest()).toBe(NOON + 2 * MINUTE);
    clock.see([NOON + 2 * MINUTE]);
    expect(clock.mark(clock.newest())).toBe(NOON + 2 * MINUTE);
  });

  it('goes back no further than 15 minutes and a step when nothing changes', () => {
    const quiet = markOf(NOON, NOON - 90 * DAY + MS);
    expect(quiet).toBe(NOON - 15 * MINUTE - 1);
  });

  it.each([
    ['days', DAY, NOON - 12 * HOUR],
    ['hours', HOUR, NOON - 3 * HOUR],
    ['minutes', MINUTE, NOON - 3 * MINUTE],
    ['seconds', 1_000, NOON - 3_000],
    ['ms', 1, NOON - 3],
  ])('goes back one step more where updated_at is cut to %s', (_, step, at) => {
    expect(markOf(NOON, at, at - 90 * DAY)).toBeGreaterThanOrEqual(NOON - 15 * MINUTE - step);
    expect(markOf(NOON, at - 90 * DAY)).toBe(NOON - 15 * MINUTE - step);
  });

  it('misses no record of a clock that is cut to days', () => {
    // What changes at 12:00 is stamped with 0:00; the window has to begin there all day long.
    const day = NOON - 12 * HOUR;
    for (let hour = 0; hour < 24; hour++) {
      expect(markOf(day + hour * HOUR, day - DAY)).toBeLessThanOrEqual(day);
    }
  });

  it('follows a Date that steps back, and one that jumps ahead', () => {
    const clock = new ServerClock();
    clock.see([NOON - 1]);
    const newest = clock.newest();
    clock.tell(NOON);
    clock.tell(NOON - HOUR);
    expect(clock.mark(newest)).toBe(NOON - HOUR);
    clock.tell(NOON + HOUR);
    expect(clock.mark(newest)).toBe(NOON + HOUR - 15 * MINUTE - 1);
  });

  it('keeps the Date it was told when an answer tells none', () => {
    const clock = new ServerClock();
    clock.tell(NOON);
    clock.tell(undefined);
    expect(clock.mark(Infinity)).toBe(NOON);
  });

  it('marks by what was newest at the start of the scan, not by what the scan has seen', () => {
    const clock = new ServerClock();
    clock.see([NOON - 5 * MINUTE + MS]);
    const newest = clock.newest();
    clock.tell(NOON);
    clock.see([NOON - MS]);
    expect(clock.mark(newest)).toBe(NOON - 5 * MINUTE + MS);
    expect(clock.newest()).toBe(NOON - MS);
  });

  it('takes the local time for the latest until it is told a Date: what was seen may be old', () => {
    const [dated, stamped] = [new ServerClock(), new ServerClock()];
    dated.tell(NOON);
    stamped.see([NOON - 1, null]);
    expect([dated.latest(NOON + HOUR), stamped.latest(NOON + HOUR)]).toEqual([NOON, NOON + HOUR]);
  });

  it('knows the latest of all times, for the end of a window', () => {
    const clock = new ServerClock();
    clock.see([NOON, NOON - HOUR]);
    expect(clock.latest(NOON - HOUR)).toBe(NOON);
    clock.tell(NOON - 10 * MINUTE);
    expect(clock.latest(NOON - HOUR)).toBe(NOON);
    clock.tell(NOON + 10 * MINUTE);
    expect(clock.latest(NOON - HOUR)).toBe(NOON + 10 * MINUTE);
  });

  it('goes back as far as stamps lag where they may be local times, and an hour for the end of daylight saving', () => {
    const clock = new ServerClock();
    clock.tell(NOON);
    clock.see([NOON - 8 * HOUR + MS, NOON - 90 * DAY]);
    clock.tell(NOON + 10 * MINUTE);
    const newest = clock.newest()!;
    expect(clock.mark(newest, 'far')).toBe(newest - HOUR);
    expect(clock.mark(newest, 'near')).toBe(NOON + 10 * MINUTE - 15 * MINUTE - 1);
    clock.see([NOON - 7 * HOUR + MS]); // a change of this moment
    clock.rose([NOON - 7 * HOUR + MS], newest);
    expect(clock.mark(clock.newest(), 'near')).toBe(NOON - 8 * HOUR + MS);
    clock.see([NOON + 10 * MINUTE - MS]); // no zone after all
    expect(clock.mark(NOON - 8 * HOUR, 'far')).toBe(NOON + 10 * MINUTE - 15 * MINUTE - 1);
  });

  it('takes stamps for earlier by an offset below 0, and an hour', () => {
    const clock = new ServerClock();
    clock.tell(NOON);
    clock.see([NOON - MS]);
    clock.shift(-8 * HOUR);
    expect(clock.newestStamp()).toBe(NOON - MS);
    expect(clock.mark(clock.newest())).toBeLessThanOrEqual(NOON - MS - 9 * HOUR);
    clock.shift(0);
    expect(clock.mark(clock.newest())).toBe(NOON - MS);
  });

  it("goes on from the server's time by the local clock", () => {
    const clock = new ServerClock();
    expect(clock.now(5)).toBeUndefined();
    clock.tell(NOON, 1_000);
    expect([clock.now(1_000), clock.now(3_500), clock.now(0)]).toEqual([NOON, NOON + 2_500, NOON]);
  });
});
