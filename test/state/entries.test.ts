import { describe, expect, it } from 'vitest';
import { packMark, isSeenSince } from '../../src/state/entries.ts';

describe('a mark that is not held against its checksum', () => {
  const mark = packMark('k', {
    lastSeenSweep: 37,
    lastReadSweep: 36,
    hasImage: true,
    payloadDigest: undefined,
    run: undefined,
  });

  it('says that its key was seen by the sweep that is asked about, or by the one behind it', () => {
    expect([35, 36, 37, 38].map((since) => isSeenSince(mark, since))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it('says nothing where its number can be none of them, or is cut off', () => {
    const flipped = Buffer.from(mark);
    flipped[0]! |= 0x80;
    expect([36, 37, 38].map((since) => isSeenSince(flipped, since))).toEqual([false, false, false]);
    expect(isSeenSince(mark.subarray(0, 4), 37)).toBe(false);
    expect(isSeenSince(Buffer.alloc(0), 0)).toBe(false);
  });
});
