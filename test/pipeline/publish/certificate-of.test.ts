import { describe, expect, it } from 'vitest';
import { certificateOf } from '../../../src/pipeline/publish/certificate-of.ts';
import type { CompletedScan } from '../../../src/pipeline/publish/certificate-of.ts';
import { parseCertificate } from '../../../src/schemas/events/certificate.ts';
import { KeyTally } from '../../../src/schemas/events/key-tally.ts';
import { listNamed } from '../../../src/description/description.ts';
import { readingRules } from '../../../src/description/levels.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { NO_COUNTS } from '../../../src/streams/paging/scan-counts.ts';
import type { ScanCounts } from '../../../src/streams/paging/scan-counts.ts';
import { NO_SWEEP } from '../../../src/streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../../src/streams/paging/sweep-progress.ts';

const tally = (...keys: string[]) => {
  const all = new KeyTally();
  for (const key of keys) all.add(key, 1);
  return all;
};
const named = (...keys: string[]) => ({ keys, more: 0 });

function certified(
  sweep: Partial<SweepProgress> = {},
  counts: Partial<ScanCounts> = {},
  more: Partial<CompletedScan> = {},
) {
  return certificateOf({
    ...{ account: 'estate', resource: 'orders', number: 3, sequence: 9 },
    sweep: {
      ...{ ...NO_SWEEP, number: 2, total: 3, distinct: 3, proof: 'exact' },
      counts: { ...NO_COUNTS, beganAt: 100, endedAt: 200, ...counts },
      ...sweep,
    },
    rules: readingRules(listNamed(WINE, 'orders')),
    proofMs: 1_000,
    heldBack: 0,
    unseen: { count: 0, keys: [] },
    live: { keys: [tally('a', 'b'), tally('c')], ends: { 0: '5', 1: '3' } },
    now: 900,
    ...more,
  });
}

describe('a certificate', () => {
  it('is what its contract says, and is read as it was written', () => {
    const certificate = certified();
    expect(certificate).toMatchObject({
      ...{ account: 'estate', resource: 'orders', number: 3, sequence: 9 },
      ...{ began_at: 100, ended_at: 200, total_records: 3, read: 3, records: 3, proof: 'exact' },
      digest: tally('a', 'b', 'c').digest,
      partitions: {
        0: { position: 5, records: 2, digest: tally('a', 'b').digest },
        1: { position: 3, records: 1, digest: tally('c').digest },
      },
    });
    expect(parseCertificate(JSON.stringify(certificate))).toEqual(certificate);
  });

  it('counts what was rejected as read', () => {
    expect(certified({ distinct: 2, proof: 'complete' }, { rejected: 1 }).proof).toBe('exact');
    expect(certified({}, { rejected: 1 }).proof).toBe('complete');
  });

  it.each<[string, Partial<SweepProgress>, Partial<ScanCounts>, Partial<CompletedScan>]>([
    ['the total moved', { total: 'moved', proof: 'complete' }, {}, {}],
    ['it read less', { distinct: 2, proof: 'complete' }, {}, {}],
    ['a key is in doubt', {}, { undecided: named('a') }, {}],
    ['a key is missing', {}, {}, { unseen: { count: 1, keys: ['c'] } }],
    ['deletions are held back', {}, {}, { heldBack: 1, unseen: { count: 1, keys: ['c'] } }],
    ['a record is too large', {}, { unpublished: named('a') }, {}],
  ])('is complete where %s', (_, sweep, counts, more) => {
    expect(certified(sweep, counts, more).proof).toBe('complete');
  });

  it('has the level of a complete reading where the API tells no total, and only there', () => {
    const rules = { ...readingRules(listNamed(WINE, 'orders')), overlaps: false, hasTotal: false };
    const sweep = { total: 'moved', proof: 'complete' } as const;
    const whole = { rules: { ...rules, isWhole: true } };
    expect(certified(sweep, {}, { rules })).toMatchObject({ proof: 'complete', level: 'read' });
    expect(certified(sweep, {}, whole)).toMatchObject({ proof: 'complete', level: 'whole' });
    expect(certified(sweep, { rejected: 1 }, whole).level).toBe('read');
    const read = certified(sweep, {}, { rules });
    expect(parseCertificate(JSON.stringify(read))).toEqual(read);
    expect(certified(sweep)).not.toHaveProperty('level');
    expect(certified({ ...sweep, interrupted: true }, {}, whole)).not.toHaveProperty('level');
  });

  it('of a list that may be cut off at its total is exact only if each published record was read', () => {
    const cut = { total: 3, since: 100 };
    const live = { keys: [tally('a', 'b'), tally('c', 'd')], ends: { 0: '5', 1: '4' } };
    expect(certified({ cut }, {}, { live }).proof).toBe('complete');
    expect(certified({ cut }).proof).toBe('exact');
    expect(certified({}, {}, { live }).proof).toBe('exact'); // d was added since
  });

  it.each<[string, Partial<SweepProgress>, Partial<ScanCounts>]>([
    ['it was interrupted', { interrupted: true }, {}],
    ['it is in doubt', { proof: 'doubtful' }, {}],
    ['a page did not add up', {}, { settled: false }],
    ['its end was an empty page', { proof: 'nothing' }, {}],
    ['it seems empty, and was not', { proof: 'nothing', distinct: 0, total: 3 }, {}],
  ])('is unsettled where %s', (_, sweep, counts) => {
    expect(certified(sweep, counts).proof).toBe('unsettled');
  });

  it('of an empty list is exact where nothing is published', () => {
    const empty = { proof: 'nothing', distinct: 0, total: 0 } as const;
    expect(certified(empty).proof).toBe('exact');
    expect(certified(empty, {}, { unseen: { count: 1, keys: ['a'] } }).proof).toBe('unsettled');
  });

  it('tells those that are held back from those that nobody knows of, and names a hundred', () => {
    const keys = Array.from({ length: 100 }, (_, nth) => `k${nth}`);
    const all = certified({}, { undecided: named('a', 'b') }, { unseen: { count: 130, keys } });
    expect(all).toMatchObject({ held: 0, undecided: 132 });
    expect(all.undecided_keys).toEqual(['a', 'b', ...keys.slice(0, 98)]);
    const held = certified({}, {}, { heldBack: 130, unseen: { count: 130, keys } });
    expect(held).toMatchObject({ held: 130, undecided: 0, undecided_keys: [] });
  });
});
