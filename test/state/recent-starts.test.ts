import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { recentStarts } from '../../src/state/recent-starts.ts';

describe('recentStarts', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'cellarstream-starts-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const file = () => join(folder, 'quota', 'orders');
  const kept = (capacity: number) => {
    const starts = recentStarts(file(), capacity);
    starts.close();
    return [...starts.times].sort((a, b) => a - b);
  };

  it('keeps the newest, across processes that never close it', () => {
    const first = recentStarts(file(), 3);
    expect([first.times, first.known]).toEqual([[], false]);
    [11, 12].forEach(first.add);
    const second = recentStarts(file(), 3);
    expect(second.known).toBe(true);
    expect(kept(3)).toEqual([11, 12]);
    [13, 14].forEach(second.add);
    expect(kept(3)).toEqual([12, 13, 14]);
    first.close();
    second.close();
  });

  it('does not believe a file of another size', () => {
    recentStarts(file(), 1).close();
    writeFileSync(file(), Buffer.alloc(100, 65));
    const starts = recentStarts(file(), 3);
    expect([starts.times, starts.known]).toEqual([[], false]);
    starts.close();
  });
});
