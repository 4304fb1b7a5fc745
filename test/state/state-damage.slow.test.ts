import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OpenMarker } from '../../src/state/open-marker.ts';
import { openStore } from '../../src/state/store.ts';
import type { Store } from '../../src/state/store.ts';
import { memory } from '../support/task-memory.ts';

const KEYS = Array.from({ length: 400 }, (_, k) => `key-${k}`);
const DAMAGED = expect.objectContaining({ code: 'STATE_DAMAGED' });
const TEN_MINUTES = 600_000;

/** Of all keys, or of these. */
const put = (to: Store, name: string, sequence: number, keys = KEYS) =>
  to.task(name).put(
    keys.map((key) => ({
      key,
      sequence,
      image: { schemaId: 3, bytes: Buffer.from(`${name} ${key} `.repeat(20)) },
    })),
    memory,
    { seen: { keys, sweep: 1, bySweep: true } },
  );

let folder: string;
let file: string;
let store: Store | undefined;
let discarded: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cellarstream-damage-'));
  file = join(folder, 'images.mdb');
  discarded = [];
  const filling = openStore(folder);
  for (const name of ['a', 'b']) await put(filling, name, 1);
  await filling.close();
});
afterEach(async () => {
  await store?.close();
  store = undefined;
  rmSync(folder, { recursive: true });
});

const open = () => (store = openStore(folder, (reason) => void discarded.push(reason)));
const counts = () => ['a', 'b'].map((name) => store!.task(name).count());

describe('a damaged images.mdb', () => {
  const change = (work: (bytes: Buffer) => void): void => {
    const bytes = readFileSync(file);
    work(bytes);
    writeFileSync(file, bytes);
  };
  const replaceAll = (from: string, to: string) =>
    change((bytes) => {
      for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1))
        bytes.write(to, at);
    });
  /** Makes `key-39:` of `key-399` in the images of task a: they stay in order. */
  const renameKey = () =>
    // A key stands before its value, wherever pages that were split have left a copy.
    change((bytes) => {
      const found = [...bytes.toString('latin1').matchAll(/key-399[^]{12}a key-399 /g)];
      expect(found.length).toBeGreaterThan(0);
      for (const { index } of found) bytes.write('key-39:', index);
    });

  it('that is empty is a new one', () => {
    truncateSync(file, 0);
    open();
    expect([discarded, counts()]).toEqual([[], [0, 0]]);
  });

  it('with garbage for a lock opens', () => {
    writeFileSync(`${file}-lock`, Buffer.alloc(9_000, 'lock'));
    open();
    expect([discarded, counts()]).toEqual([[], [400, 400]]);
  });

  it('with a changed byte in an image gives an error, never the image; then all begins anew', async () => {
    replaceAll('a key-7 a', 'a key-8 a');
    const [a, b] = [open().task('a'), store!.task('b')];
    expect(a.get('key-6')?.sequence).toBe(1);
    expect(() => a.get('key-7')).toThrow(DAMAGED);
    // One file: nothing of it is believed any more, by nobody.
    expect(() => a.get('key-6')).toThrow(DAMAGED);
    expect(() => b.memory()).toThrow(DAMAGED);
    await expect(b.put([], memory)).rejects.toThrow(DAMAGED);
    expect(discarded).toEqual([]);
    const anew = store!.task('b');
    expect([discarded.length, anew.count(), anew.memory()]).toEqual([1, 0, undefined]);
    expect(store!.task('a').count()).toBe(0);
    expect(() => b.memory()).toThrow(DAMAGED);
    await put(store!, 'a', 2);
    await store!.close();
    open();
    expect([discarded.length, counts()]).toEqual([1, [400, 0]]);
  });

  it('that nobody has thrown away by the end is thrown away by the next start', async () => {
    replaceAll('a key-7 a', 'a key-8 a');
    expect(() => open().task('a').get('key-7')).toThrow(DAMAGED);
    await store!.close();
    expect(discarded).toEqual([]);
    open();
    expect([discarded, counts()]).toEqual([[expect.stringContaining('damaged')], [0, 0]]);
  });

  it('that has lost an image does not say that there never was one', () => {
    renameKey();
    const task = open().task('a');
    expect(() => KEYS.map((key) => task.get(key))).toThrow(DAMAGED);
  });

  it('with an image under another key does not give it for that one', () => {
    renameKey();
    const task = open().task('a');
    expect(() => task.get('key-39:')).toThrow(DAMAGED);
  });

  it('with a changed mark does not say that a record is gone', () => {
    change((bytes) => {
      // Seen 1, read 1, has an image: of every mark.
      const mark = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 1]);
      for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1))
        bytes[at + 3] = 0;
    });
    const task = open().task('a');
    expect(() => task.isUnseen('key-1', 1)).toThrow(DAMAGED);
  });

  it('with a changed memory does not say that more is known than is', () => {
    replaceAll('"ends":{"0":"7"}', '"ends":{"0":"8"}');
    const task = open().task('a');
    expect(() => task.memory()).toThrow(DAMAGED);
  });
});

describe.skipIf(process.platform !== 'linux')('an images.mdb that was not closed', () => {
  const marker = () => new OpenMarker(`${file}-open`);
  afterEach(() => void vi.useRealTimers());

  it('no longer counts a start that still writes after ten minutes', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    marker().write(2);
    open();
    vi.advanceTimersByTime(TEN_MINUTES - 1);
    await store!.task('a').put([], memory);
    expect(marker().readUncleanShutdown()?.shortStarts).toBe(3);
    vi.advanceTimersByTime(1);
    await store!.task('a').put([], memory);
    expect(marker().readUncleanShutdown()).toEqual({ shortStarts: 0, doubt: undefined });
  });

  it('is thrown away when the machine was started anew: it may be of old and new pages', () => {
    writeFileSync(`${file}-open`, `another-start-of-the-machine 1 ${Date.now()}`);
    open();
    expect([discarded, counts()]).toEqual([[expect.stringContaining('machine')], [0, 0]]);
  });

  it('is thrown away when it is a copy: it may have been made in the middle of a write', () => {
    open();
    const copy = join(folder, 'copy');
    mkdirSync(copy);
    for (const name of ['images.mdb', 'images.mdb-open'])
      copyFileSync(join(folder, name), join(copy, name));
    // The time that the marker of a store says that has been open for an hour.
    const [machine, count] = readFileSync(join(copy, 'images.mdb-open'), 'utf8').split(' ');
    writeFileSync(join(copy, 'images.mdb-open'), `${machine} ${count} ${Date.now() - 3_600_000}`);
    const other = openStore(copy, (reason) => void discarded.push(reason));
    expect(discarded).toEqual([expect.stringContaining('a copy')]);
    expect(other.task('a').count()).toBe(0);
    return other.close();
  });

  it('is kept when a start fails for want of a marker, as on a full disk', () => {
    mkdirSync(`${file}-open.new`); // in the way
    expect(open).toThrow(expect.objectContaining({ code: 'STATE_FOLDER' }));
    rmSync(`${file}-open.new`, { recursive: true });
    open();
    expect([discarded, counts()]).toEqual([[], [400, 400]]);
  });
});

/** What a process says that opens the file, writes for one task and then reads what another has. */
interface Start {
  /** What it died of. */
  readonly signal: NodeJS.Signals | null;
  /** The images of task a, by their first words. */
  readonly images: readonly string[];
  readonly discarded: readonly string[];
}

describe.skipIf(process.platform !== 'linux')('an images.mdb, after a process that died', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const contents = `
    import { openStore } from './src/state/store.ts';
    const [folder, isKilled] = process.argv.slice(1);
    const discarded = [];
    const store = openStore(folder, (reason) => void discarded.push(reason));
    const work = async () => {
      await store.task('b').put([], ${JSON.stringify(memory)});
      if (isKilled) process.kill(process.pid, 'SIGKILL');
      const task = store.task('a');
      const found = ${JSON.stringify(KEYS)}.map((key) => task.get(key)?.bytes);
      return found.flatMap((bytes) => (bytes ? bytes.toString().split(' ', 2).join(' ') : []));
    };
    const images = await work().catch(work); // damage that is noticed is thrown away
    console.log(JSON.stringify({ images, discarded }));
    await store.close();`;
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: root },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    packages: 'external',
  });
  const start = ({ isKilled = false } = {}): Start => {
    const { signal, stdout } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', outputFiles[0]!.text, folder, ...(isKilled ? ['killed'] : [])],
      { cwd: root, encoding: 'utf8' },
    );
    if (signal) return { signal, images: [], discarded: [] };
    return { signal, ...(JSON.parse(stdout) as Omit<Start, 'signal'>) };
  };
  const WHOLE = { signal: null, images: KEYS.map((key) => `a ${key}`), discarded: [] };

  it('is kept: what a killed process wrote is there', () => {
    expect(start({ isKilled: true }).signal).toBe('SIGKILL');
    expect(start()).toEqual(WHOLE);
  });

  it('is thrown away after three in a row, though each of them wrote', () => {
    for (let n = 0; n < 3; n++) expect(start({ isKilled: true }).signal).toBe('SIGKILL');
    expect(start()).toEqual({
      signal: null,
      images: [],
      discarded: ['the service ended abruptly after each of its last 3 starts'],
    });
  });

  it('is kept after more than three that were not in a row', () => {
    for (let n = 0; n < 3; n++) {
      for (let k = 0; k < 2; k++) start({ isKilled: true });
      expect(start()).toEqual(WHOLE);
    }
  });

  /** As a supervisor does: starts until one lives. */
  const expectHealed = () => {
    let died = 0;
    let last = start();
    for (; last.signal && died < 10; died++) last = start();
    expect(died).toBeLessThanOrEqual(3);
    expect(last).toEqual({ signal: null, images: [], discarded: [expect.any(String)] });
    expect(start()).toEqual({ signal: null, images: [], discarded: [] });
  };

  const truncate = (part: number) => truncateSync(file, Math.floor(statSync(file).size * part));
  it.each([
    ['was cut off in its first page', () => truncateSync(file, 100)],
    ['was cut off in the middle', () => truncate(0.5)],
    ['was cut off near its end', () => truncate(0.99)],
    ['is garbage', () => writeFileSync(file, Buffer.alloc(200_000, 'garbage'))],
  ])('is thrown away after three that died because it %s', (_, damage) => {
    damage();
    expectHealed();
  });

  it('is thrown away after three that died because it was copied in the middle of writes', async () => {
    const first = readFileSync(file).subarray(0, statSync(file).size / 2);
    open();
    for (let n = 0; n < 60; n++) await put(store!, 'ab'[n % 2]!, 2 + n, KEYS.slice(n, n + 50));
    await store!.close();
    writeFileSync(file, Buffer.concat([first, readFileSync(file).subarray(first.length)]));
    expectHealed();
  });
});
