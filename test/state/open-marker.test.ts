import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OpenMarker } from '../../src/state/open-marker.ts';

describe.skipIf(process.platform !== 'linux')('OpenMarker', () => {
  let folder: string;
  let path: string;
  let marker: OpenMarker;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cellarstream-marker-'));
    path = join(folder, 'open');
    marker = new OpenMarker(path);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** What the marker says, with some of it as it would be elsewhere, or at another time. */
  const rewrite = (change: { machine?: string; apartMs?: number }) => {
    const [machine, count, at] = readFileSync(path, 'utf8').split(' ');
    const writtenAt = Number(at) + (change.apartMs ?? 0);
    writeFileSync(path, `${change.machine ?? machine} ${count} ${writtenAt}`);
  };

  it('is not there before it is written, nor when it was removed', () => {
    expect(marker.readUncleanShutdown()).toBeUndefined();
    marker.write(1);
    marker.remove();
    expect(marker.readUncleanShutdown()).toBeUndefined();
    marker.remove();
  });

  it.each([0, 1, 2])('says that %i starts were cut short, which is no reason to doubt', (count) => {
    marker.write(count);
    expect(marker.readUncleanShutdown()).toEqual({ shortStarts: count, doubt: undefined });
  });

  it('doubts after three', () => {
    marker.write(3);
    expect(marker.readUncleanShutdown()).toEqual({
      shortStarts: 3,
      doubt: 'the service ended abruptly after each of its last 3 starts',
    });
  });

  it('doubts what was found damaged', () => {
    marker.write('damaged');
    expect(marker.readUncleanShutdown()?.doubt).toMatch('damaged');
  });

  it.each(['another-boot', 'unknown', ''])('doubts what the machine "%s" had open', (machine) => {
    marker.write(1);
    rewrite({ machine });
    expect(marker.readUncleanShutdown()?.doubt).toMatch('the machine');
  });

  it.each([-3_600_000, -11_000, 11_000])(
    'doubts a copy: its file is %i ms away from what it says',
    (apartMs) => {
      marker.write(1);
      rewrite({ apartMs });
      expect(marker.readUncleanShutdown()?.doubt).toMatch('a copy');
    },
  );

  it.each(['', 'text', '\0'.repeat(60)])('doubts what is no marker: %j', (text) => {
    writeFileSync(path, text);
    expect(marker.readUncleanShutdown()?.doubt).toBeDefined();
  });

  it('stays as it was when another can not be written', () => {
    marker.write(2);
    mkdirSync(`${path}.new`); // in the way, as a full disk is
    expect(() => marker.write(3)).toThrow();
    expect(marker.readUncleanShutdown()).toEqual({ shortStarts: 2, doubt: undefined });
  });
});
