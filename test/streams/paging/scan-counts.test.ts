import { describe, expect, it } from 'vitest';
import {
  countsAfter,
  countsWith,
  NO_COUNTS,
  sampleSize,
} from '../../../src/streams/paging/scan-counts.ts';
import type { PageScanCounts, KeyOutcomes } from '../../../src/streams/paging/scan-counts.ts';

const page = (offset: number, rejectedAt: number[], more: Partial<PageScanCounts> = {}) => ({
  ...{ offset, length: 10, rejectedAt, leftOut: 0, isConsistent: true },
  at: { first: 5, later: 7 },
  ...more,
});
const read = (more: Partial<KeyOutcomes>): KeyOutcomes => ({
  ...{ decided: new Set(), unpublished: [], undecided: [] },
  ...more,
});

describe('what a reading counts', () => {
  it('is each place of what is rejected once, though pages overlap, step back and begin again', () => {
    const pages = [page(0, [0, 9]), page(8, [1, 5]), page(3, [6]), page(0, [0, 9]), page(18, [2])];
    const counts = pages.reduce(countsAfter, NO_COUNTS);
    expect([counts.rejected, counts.reached]).toEqual([4, 28]); // 0, 9, 13, 20
  });

  it('is when it began, by its first page alone, and when it ended: never before that', () => {
    const one = countsAfter(NO_COUNTS, page(0, []));
    expect([one.beganAt, one.endedAt]).toEqual([5, 5]);
    const two = countsAfter(one, page(10, [], { at: { first: 9, later: 8 } }));
    expect([two.beganAt, two.endedAt]).toEqual([5, 8]);
    const three = countsAfter(one, page(10, [], { at: { first: 4, later: 4 } }));
    expect([three.beganAt, three.endedAt]).toEqual([5, 5]);
  });

  it('is settled while every page is', () => {
    const counts = countsAfter(NO_COUNTS, page(0, [], { isConsistent: false }));
    expect(countsAfter(counts, page(10, [])).settled).toBe(false);
  });
});

describe('keys in doubt', () => {
  it('are each there once, until a read decides them', () => {
    const one = countsWith(NO_COUNTS, read({ undecided: ['a', 'b'], unpublished: ['c'] }));
    const two = countsWith(one, read({ undecided: ['b', 'd'], decided: new Set(['a', 'x']) }));
    expect([two.undecided.keys, two.unpublished.keys]).toEqual([['b', 'd'], ['c']]);
    const three = countsWith(two, read({ decided: new Set(['b', 'c', 'd']) }));
    expect([sampleSize(three.undecided), sampleSize(three.unpublished)]).toEqual([0, 0]);
  });

  it('that a read decides and doubts at once stay in doubt', () => {
    const counts = countsWith(NO_COUNTS, read({ undecided: ['a'], decided: new Set('a') }));
    expect(counts.undecided.keys).toEqual(['a']);
  });

  it('change nothing where there are none', () => {
    const decided = new Set(['a']);
    expect(countsWith(NO_COUNTS, read({ decided }))).toBe(NO_COUNTS);
  });

  it('are a thousand by name, and the rest a number that does not shrink', () => {
    const all = Array.from({ length: 1_200 }, (_, nth) => `k${nth}`);
    const counts = countsWith(NO_COUNTS, read({ undecided: all }));
    expect([counts.undecided.keys.length, sampleSize(counts.undecided)]).toEqual([1_000, 1_200]);
    const later = countsWith(counts, read({ decided: new Set(all) }));
    expect(sampleSize(later.undecided)).toBe(200);
  });
});
