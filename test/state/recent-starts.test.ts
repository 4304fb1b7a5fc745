import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
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
    expect([first.times, first.isReliable]).toEqual([[], false]);
    [11, 12].forEach((at) => first.add(at));
    const second = recentStarts(file(), 3);
    expect(second.isReliable).toBe(true);
    expect(kept(3)).toEqual([11, 12]);
    [13, 14].forEach((at) => second.add(at));
    expect(kept(3)).toEqual([12, 13, 14]);
    first.close();
    second.close();
  });

  it('writes nothing once it is closed: its number may be that of another file', () => {
    const starts = recentStarts(file(), 3);
    const later = starts.add(1);
    starts.close();
    const other = join(folder, 'other');
    const number = openSync(other, 'w+');
    later(2);
    starts.add(3);
    starts.addAll([4]);
    expect(readFileSync(other)).toHaveLength(0);
    closeSync(number);
  });

  it('does not believe what a process left that was killed before it kept a time', () => {
    recentStarts(file(), 3); // whoever it was had not waited for those before it
    const starts = recentStarts(file(), 3);
    expect([starts.times, starts.isReliable]).toEqual([[], false]);
    starts.close();
  });

  it('keeps the answers that came last: a slow one is not forgotten as the ring goes round', () => {
    const starts = recentStarts(file(), 3);
    const slow = starts.add(1);
    starts.add(2);
    starts.add(3);
    slow(40);
    starts.add(41);
    starts.add(42);
    expect(kept(3)).toEqual([40, 41, 42]);
    starts.close();
  });

  it('keeps the newest of many, whatever their order, and of those that it has', () => {
    const starts = recentStarts(file(), 3);
    starts.add(20);
    starts.add(30);
    starts.addAll([50, 25, 10]);
    expect(kept(3)).toEqual([25, 30, 50]);
    starts.addAll([5, 4, 3]);
    expect(kept(3)).toEqual([25, 30, 50]);
    starts.close();
  });

  it('leaves a place to the newer when what it was of ends after all', () => {
    const starts = recentStarts(file(), 1);
    const old = starts.add(1);
    starts.add(2);
    old(3);
    expect(kept(1)).toEqual([2]);
    starts.close();
  });

  it('does not believe a file of another size', () => {
    recentStarts(file(), 1).close();
    writeFileSync(file(), Buffer.alloc(100, 65));
    const starts = recentStarts(file(), 3);
    expect([starts.times, starts.isReliable]).toEqual([[], false]);
    starts.close();
  });

  it('does not believe garbage of the right size', () => {
    const first = recentStarts(file(), 3);
    first.add(11);
    first.close();
    writeFileSync(file(), Buffer.alloc(statSync(file()).size, 65));
    const starts = recentStarts(file(), 3);
    expect([starts.times, starts.isReliable]).toEqual([[], false]);
    starts.close();
  });

  it('does not believe a file with a changed time, but counts the others; then it is whole again', () => {
    const first = recentStarts(file(), 3);
    [11, 12].forEach((at) => first.add(at));
    first.close();
    const bytes = readFileSync(file());
    bytes[6]! ^= 1;
    writeFileSync(file(), bytes);
    const second = recentStarts(file(), 3);
    expect([second.times, second.isReliable]).toEqual([[12], false]);
    second.add(13);
    second.close();
    const third = recentStarts(file(), 3);
    expect([[...third.times].sort(), third.isReliable]).toEqual([[12, 13], true]);
    third.close();
  });

  it.skipIf(!existsSync('/dev/full'))(
    'goes on with a full disk, and leaves what the next process does not believe',
    () => {
      mkdirSync(join(folder, 'quota'));
      symlinkSync('/dev/full', file());
      const starts = recentStarts(file(), 3);
      expect(starts.isReliable).toBe(false);
      starts.add(11);
      starts.close();
      expect(recentStarts(file(), 3).isReliable).toBe(false);
    },
  );

  it('says which folder can not be written', () => {
    writeFileSync(join(folder, 'quota'), '');
    expect(() => recentStarts(file(), 3)).toThrow(
      expect.objectContaining({
        code: 'STATE_FOLDER',
        message: expect.stringContaining(join(folder, 'quota')),
      }),
    );
  });
});
