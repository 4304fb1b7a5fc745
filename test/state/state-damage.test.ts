import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { damageIn, newestTransaction } from '../../src/state/lmdb-pages.ts';
import { openStore } from '../../src/state/store.ts';
import type { Store } from '../../src/state/store.ts';
import { memory } from '../support/task-memory.ts';

const KEYS = Array.from({ length: 400 }, (_, k) => `key-${k}`);
const DAMAGED = expect.objectContaining({ code: 'STATE_DAMAGED' });

describe('a damaged images.mdb', () => {
  let folder: string;
  let file: string;
  let store: Store | undefined;
  let discarded: string[];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cellarstream-damage-'));
    file = join(folder, 'images.mdb');
    discarded = [];
    await fill();
  });
  afterEach(async () => {
    await store?.close();
    store = undefined;
    rmSync(folder, { recursive: true });
  });

  const open = () => (store = openStore(folder, (reason) => void discarded.push(reason)));
  const put = (to: Store, name: string, sequence: number) =>
    to.task(name).put(
      KEYS.map((key) => ({
        key,
        sequence,
        image: { schemaId: 3, bytes: Buffer.from(`${name} ${key} `.repeat(20)) },
      })),
      memory,
      { seen: { keys: KEYS, sweep: 1, bySweep: true } },
    );
  async function fill(): Promise<void> {
    const filling = openStore(folder);
    for (const name of ['a', 'b']) await put(filling, name, 1);
    await filling.close();
  }
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
  /** As if the process had been killed while it had the file open. */
  const leaveOpen = (stillborn = 0) => {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    writeFileSync(`${file}-open`, `${boot} ${stillborn}`);
  };
  const counts = () => ['a', 'b'].map((name) => store!.task(name).count());

  it('that is whole is kept, after a clean end and after a kill', async () => {
    open();
    expect(existsSync(`${file}-open`)).toBe(true);
    await store!.close();
    expect(existsSync(`${file}-open`)).toBe(false);
    leaveOpen();
    open();
    expect([discarded, counts()]).toEqual([[], [400, 400]]);
  });

  it.each([
    ['cut off in its first page', () => truncateSync(file, 100)],
    ['cut off in the middle', () => truncateSync(file, Math.floor(statSync(file).size / 2))],
    ['cut off by its last page', () => truncateSync(file, statSync(file).size - 4_096)],
    ['of garbage', () => writeFileSync(file, Buffer.alloc(200_000, 'garbage'))],
    ['of zeros', () => writeFileSync(file, Buffer.alloc(200_000))],
    ['with a meta page of garbage', () => change((bytes) => bytes.fill(7, 4_096, 8_192))],
    ['with an odd page size', () => change((bytes) => bytes.writeUInt32LE(4_095, 48))],
  ])('%s would end the process: it is thrown away before it is opened', async (_, damage) => {
    damage();
    open();
    expect(discarded).toHaveLength(1);
    expect(counts()).toEqual([0, 0]);
    await put(store!, 'a', 1);
    await store!.close();
    open();
    expect([discarded.length, counts()]).toEqual([1, [400, 0]]);
  });

  it('that is empty is a new one', () => {
    truncateSync(file, 0);
    open();
    expect([discarded, counts()]).toEqual([[], [0, 0]]);
  });

  it('with garbage on any of its pages is found out after the crash that it causes', () => {
    const good = readFileSync(file);
    const pages = good.length / 4_096;
    const found = Array.from({ length: pages }, (_, page) => {
      const bytes = Buffer.from(good);
      bytes.fill(0xa5, page * 4_096, (page + 1) * 4_096);
      writeFileSync(file, bytes);
      return damageIn(file, 'all');
    });
    // The others hold nothing: free pages.
    expect(found.filter((what) => what !== undefined).length).toBeGreaterThan(pages / 2);
    writeFileSync(file, good);
    expect(damageIn(file, 'all')).toBeUndefined();

    change((bytes) => bytes.fill(0xa5, found.findLastIndex(Boolean) * 4_096));
    leaveOpen();
    open();
    expect([discarded.length, counts()]).toEqual([1, [0, 0]]);
  });

  /** The numbers of pages that a transaction later than this has written, or others in use. */
  const pagesOf = (since: bigint, isLater: boolean) => {
    const bytes = readFileSync(file);
    const newest = newestTransaction(file);
    return Array.from({ length: bytes.length / 4_096 - 2 }, (_, nth) => nth + 2).filter((page) => {
      const transaction = bytes.readBigUInt64LE(page * 4_096 + 8);
      const isLeaf = bytes.readUInt16LE(page * 4_096 + 18) === 2;
      return isLeaf && transaction <= newest && transaction > since === isLater;
    });
  };
  const spoil = (page: number) =>
    change((bytes) => bytes.fill(0xa5, page * 4_096 + 18, (page + 1) * 4_096));

  it('is looked at as far as it was written since, where that is asked for', async () => {
    const since = newestTransaction(file);
    await put(open(), 'b', 2);
    await store!.close();
    const good = readFileSync(file);
    expect(damageIn(file, { since })).toBeUndefined();
    const found = (pages: readonly number[], looked: Parameters<typeof damageIn>[1]) =>
      pages.filter((page) => {
        writeFileSync(file, good);
        spoil(page);
        return damageIn(file, looked) !== undefined;
      });
    const [older, later] = [pagesOf(since, false), pagesOf(since, true)];
    const inUse = found(later, 'all');
    expect(inUse.length).toBeGreaterThan(10);
    expect(found(later, { since })).toEqual(inUse);
    expect(found(older, 'all').length).toBeGreaterThan(10);
    expect(found(older, { since })).toEqual([]);
    writeFileSync(file, good);
  });

  it('that points to pages far behind its end is found out', () => {
    const pages = readFileSync(file).length / 4_096;
    const good = readFileSync(file);
    const branches = Array.from({ length: pages - 2 }, (_, nth) => nth + 2).filter(
      (page) => good.readUInt16LE(page * 4_096 + 18) === 1,
    );
    const found = branches.filter((page) => {
      writeFileSync(file, good);
      const first = page * 4_096 + 24 + good.readUInt16LE(page * 4_096 + 24);
      change((bytes) => bytes.fill(0xa5, first, first + 6)); // where its first child is
      return damageIn(file, 'all')?.startsWith('the place of page');
    });
    expect(found.length).toBeGreaterThan(0);
    writeFileSync(file, good);
  });

  it('of another time than what is said of it is looked at wholly', () => {
    const page = pagesOf(0n, true).find((each) => {
      const good = readFileSync(file);
      spoil(each);
      const isInUse = damageIn(file, 'all') !== undefined;
      writeFileSync(file, good);
      return isInUse;
    })!;
    const newest = newestTransaction(file);
    spoil(page);
    expect(damageIn(file, { since: newest })).toBeUndefined();
    expect(damageIn(file, { since: newest + 1n })).toBeDefined();
  });

  it('is looked at wholly when the process was killed once more', async () => {
    const since = newestTransaction(file);
    await put(open(), 'b', 2);
    const killed = mkdtempSync(join(tmpdir(), 'cellarstream-killed-'));
    try {
      cpSync(folder, killed, { recursive: true }); // as a kill leaves it
      await store!.close();
      store = undefined;
      file = join(killed, 'images.mdb');
      for (const page of pagesOf(since, false)) spoil(page);
      // What is wrong with them may have been wrong before; they are of no harm until they are used.
      const again = openStore(killed, (reason) => void discarded.push(reason));
      expect(discarded).toEqual([]);
      expect(readFileSync(`${file}-open`, 'utf8')).toMatch(/ 1 \d+ partly$/);
      again.close().catch(() => undefined);
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      writeFileSync(`${file}-open`, `${boot} 0 ${newestTransaction(file)} partly`);
      const third = openStore(killed, (reason) => void discarded.push(reason));
      expect(discarded).toHaveLength(1);
      await third.close();
    } finally {
      rmSync(killed, { recursive: true });
    }
  });

  it('that ended two starts before they stored anything is thrown away, whatever it is', () => {
    leaveOpen(1);
    open();
    expect([discarded, counts()]).toEqual([[], [400, 400]]);
    leaveOpen(2);
    const again = openStore(folder, (reason) => void discarded.push(reason));
    expect(discarded).toEqual([expect.stringContaining('2 starts')]);
    void again.close();
  });

  it('counts a start that was killed before it had stored anything', async () => {
    const killed = [open(), open()]; // neither is closed
    const count = () => readFileSync(`${file}-open`, 'utf8').split(' ')[1];
    expect(count()).toBe('2');
    await store!.task('a').put([], memory);
    expect(count()).toBe('0');
    killed.push(open());
    expect(count()).toBe('1');
    await Promise.all(killed.slice(0, 2).map((each) => each.close()));
  });

  it('of a machine that was started anew is thrown away: it may be of old and new pages', () => {
    writeFileSync(`${file}-open`, 'another-start-of-the-machine 0');
    open();
    expect(discarded).toEqual([expect.stringContaining('machine')]);
  });

  it('is not thrown away because a full disk left an empty mark', () => {
    writeFileSync(`${file}-open`, '');
    open();
    expect([discarded, counts()]).toEqual([[], [400, 400]]);
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
