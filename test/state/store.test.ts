import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../src/state/store.ts';
import type { Notes, Store, TaskStore } from '../../src/state/store.ts';
import { marksProperty, runOf } from '../support/marks-property.ts';
import { scaled } from '../support/scale.ts';
import { image, memory, textOf } from '../support/task-memory.ts';

describe('openStore', () => {
  let folder: string;
  let store: Store;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cellarstream-store-'));
    store = openStore(folder);
  });
  afterEach(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });

  it('gives back images and memory, also to the next process', async () => {
    await store.task('a').put([{ key: 'k', sequence: 2 ** 40, image: image('one') }], memory);
    await store.close();
    store = openStore(folder);
    expect(store.task('a').get('k')).toEqual({ sequence: 2 ** 40, ...image('one') });
    expect(store.task('a').memory()).toEqual(memory);
    expect(store.task('a').get('other')).toBeUndefined();
  });

  marksProperty('in lmdb', () => store.task('a'), 25);

  describe('digests of runs', () => {
    const bytes = Buffer.from('some records of a page');
    /** With a run, which is when anything has to be known again. */
    const form = async (task: TaskStore) => {
      const run = runOf(0, 5, 'x');
      const keys = run.members.map(({ key }) => key);
      const images = keys.map((key) => ({ key, sequence: 1, image: image(key) }));
      const texts = new Map(keys.map((key) => [key, textOf(key)]));
      const seen = { keys, sweep: 1, bySweep: true };
      await task.put(images, memory, { seen, payloadDigests: texts, newRuns: [run] });
    };
    /** As the next process would have them. */
    const digestAnew = async () => {
      await store.close();
      store = openStore(folder);
      return store.task('a').digestOf(bytes);
    };

    it('are the same in the next process, also where all else was thrown away', async () => {
      const task = store.task('a');
      const digest = task.digestOf(bytes);
      await form(task);
      expect(await digestAnew()).toBe(digest);
      await store.task('a').clear();
      await form(store.task('a'));
      expect(await digestAnew()).toBe(digest);
    });

    it('are told by one bit of the bytes, and by nobody else', () => {
      const task = store.task('a');
      const others = [...bytes.keys()].map((at) => {
        const other = Buffer.from(bytes);
        other[at]! ^= 1;
        return task.digestOf(other);
      });
      const all = [task.digestOf(bytes), store.task('b').digestOf(bytes), ...others];
      expect(new Set(all).size).toBe(all.length);
      expect(new Set(all.map(({ length }) => length))).toEqual(new Set([16]));
      expect(task.digestOf(bytes)).toBe(all[0]);
    });
  });

  describe('a key of 64 characters or more with U+0000 to U+0003 in it', () => {
    const long = ['x', 'é', 'ab', '\0', '\u0003', '\u0004'].map((text) => text.repeat(64));
    const short = ['\0', '\0\0', 'a', 'a\0', 'a\0b', '\u0004', '\u0004\0', '\u001b', '😀'];
    const odd = [0, 1, 2, 3, 4].map((code) => String.fromCharCode(code));
    const inLong = long.flatMap((text) => odd.flatMap((each) => [text + each, text + each + 'y']));
    const keys = [...new Set([...short, ...long, ...inLong])];

    it('does not end the process that looks for what is gone, and is the key that is found', async () => {
      const task = store.task('a');
      const images = keys.map((key) => ({ key, sequence: 1, image: image(key) }));
      const seen = { keys, sweep: 1, bySweep: true };
      await task.put(images, memory, { seen });
      expect(keys.map((key) => task.get(key)?.bytes.toString())).toEqual(keys);
      expect(new Set(task.unseen(2, undefined).keys)).toEqual(new Set(keys));
      expect(
        keys.flatMap((key) => task.unseen(2, key).keys.filter((each) => each === key)),
      ).toEqual([]);
      await task.put(
        images.map((each) => ({ ...each, sequence: 2, image: null })),
        memory,
      );
      expect([task.count(), task.unseen(2, undefined).keys]).toEqual([0, []]);
    });

    it('of another version keeps nobody from emptying the folder', async () => {
      await store.close();
      const older = open({ path: join(folder, 'images.mdb'), maxDbs: 9 });
      for (const kind of ['images', 'marks']) {
        const database = older.openDB<Buffer, string>({ name: `${kind} a`, encoding: 'binary' });
        for (const key of keys) database.putSync(key, Buffer.from(key));
      }
      await older.close();
      store = openStore(folder);
      const task = store.task('a');
      expect([task.memory(), task.count()]).toEqual([undefined, keys.length]);
      await task.clear();
      await task.put([{ key: 'k', sequence: 1, image: image('k') }], memory);
      expect([task.count(), task.unseen(2, undefined).keys]).toEqual([1, ['k']]);
    });
  });

  it('keeps tasks apart', async () => {
    await store.task('a').put([{ key: 'k', sequence: 1, image: image('a') }], memory);
    expect(store.task('b').get('k')).toBeUndefined();
    expect(store.task('b').memory()).toBeUndefined();
    expect(store.task('a').count()).toBe(1);
  });

  it('does not let a lower sequence set an image back, nor take it away', async () => {
    const task = store.task('a');
    await task.put([{ key: 'k', sequence: 5, image: image('new') }], memory);
    await task.put([{ key: 'k', sequence: 4, image: image('old') }], memory);
    await task.put([{ key: 'k', sequence: 4, image: null }], memory);
    expect(task.get('k')?.bytes.toString()).toBe('new');
    await task.put([{ key: 'k', sequence: 6, image: null }], memory);
    expect(task.get('k')).toBeUndefined();
  });

  it('forgets all when cleared', async () => {
    const task = store.task('a');
    await task.put([{ key: 'k', sequence: 5, image: image('new') }], memory);
    await task.clear();
    expect([task.count(), task.memory()]).toEqual([0, undefined]);
  });

  it('counts images, after puts and deletions and for the next process', async () => {
    const task = store.task('a');
    const update = (k: number, sequence: number, kept = true) => ({
      key: `k${k}`,
      sequence,
      image: kept ? image(`${k}`) : null,
    });
    const all = Array.from({ length: 1_200 }, (_, k) => k);
    await task.put(
      all.map((k) => update(k, 1)),
      memory,
    );
    expect(task.count()).toBe(1_200);
    await task.put([...all.slice(0, 500).map((k) => update(k, 2, false)), update(600, 2)], memory);
    expect(task.count()).toBe(700);
    await task.put([update(0, 3), update(1, 3, false), update(9_999, 1, false)], memory);
    await store
      .task('b')
      .put([update(5_000, 1)], memory, { seen: { keys: ['x'], sweep: 1, bySweep: true } });
    expect([task.count(), store.task('b').count()]).toEqual([701, 1]);
    await store.close();
    store = openStore(folder);
    expect([store.task('a').count(), store.task('b').count()]).toEqual([701, 1]);
  });

  describe('what records were sent as', () => {
    let task: TaskStore;
    beforeEach(() => {
      task = store.task('a');
    });
    const put = (sequence: number, texts: Record<string, string>, isBad = false) => {
      const keys = Object.keys(texts);
      const images = keys.map((key) => ({ key, sequence, image: image(`${sequence}`) }));
      const bad = { key: 'bad', sequence, image: { ...image('bad'), schemaId: 2 ** 40 } };
      return task.put(isBad ? [...images, bad] : images, memory, {
        seen: { keys, sweep: sequence, bySweep: true },
        payloadDigests: new Map(keys.map((key) => [key, textOf(texts[key]!, sequence)])),
      });
    };

    it('is known to the next process, to the last bit', async () => {
      await put(1, { k: 'a', l: '\0', m: 'ÿ' });
      await task.put([], memory, {
        payloadDigests: new Map([['k', textOf('b')]]),
        seen: { keys: ['k'], sweep: 2, bySweep: false },
      });
      await store.close();
      store = openStore(folder);
      task = store.task('a');
      expect(['k', 'l', 'm', 'n'].map((key) => task.payloadDigest(key))).toEqual([
        textOf('b', null),
        textOf('\0', 1),
        textOf('ÿ', 1),
        undefined,
      ]);
      expect(store.task('b').payloadDigest('k')).toBeUndefined();
    });

    it('is as it was after a write that failed, and so are the marks', async () => {
      await put(1, { k: 'a' });
      expect([task.payloadDigest('k'), task.payloadDigest('new')]).toEqual([
        textOf('a', 1),
        undefined,
      ]);
      await expect(put(2, { k: 'b', new: 'c' }, true)).rejects.toThrow();
      expect([task.payloadDigest('k'), task.payloadDigest('new')]).toEqual([
        textOf('a', 1),
        undefined,
      ]);
      expect([task.countUnread(['k', 'new'], 1), task.countUnread(['k', 'new'], 2)]).toEqual([
        1, 2,
      ]);
      expect([task.get('k'), task.get('new'), task.count()]).toEqual([
        { sequence: 1, ...image('1') },
        undefined,
        1,
      ]);
      await put(3, { k: 'd' });
      expect([task.payloadDigest('k'), task.isUnseen('k', 3)]).toEqual([textOf('d', 3), false]);
    });

    it('is right for however many keys, those that are remembered and those that are not', async () => {
      const keys = Array.from({ length: 4_500 }, (_, k) => `k${k}`);
      const all = (text: string) => Object.fromEntries(keys.map((key) => [key, text]));
      const kept = () => new Set(keys.map((key) => task.payloadDigest(key)?.digest[0]));
      await put(1, all('a'));
      expect(kept()).toEqual(new Set('a'));
      await put(2, all('b'));
      expect([kept(), task.countUnread(keys, 2), task.countUnread(keys, 3)]).toEqual([
        new Set('b'),
        0,
        4_500,
      ]);
      await task.put([{ key: 'k4499', sequence: 3, image: null }], memory);
      expect([kept(), task.payloadDigest('k4499')]).toEqual([new Set(['b', undefined]), undefined]);
      await task.clear();
      expect([kept(), task.countUnread(keys, 1)]).toEqual([new Set([undefined]), 4_500]);
    });
  });

  describe('marks', () => {
    const put = (keys: readonly string[], seen?: Notes['seen'], sequence = 1) =>
      store.task('a').put(
        keys.map((key) => ({ key, sequence, image: image(key) })),
        memory,
        { ...(seen && { seen }) },
      );
    const sighting = (keys: readonly string[], sweep: number, bySweep = false) => ({
      keys,
      sweep,
      bySweep,
    });
    const allUnseen = (since: number): string[] => {
      const found: string[] = [];
      let after: string | undefined;
      do {
        const { keys, next } = store.task('a').unseen(since, after);
        found.push(...keys);
        after = next;
      } while (after !== undefined);
      return found;
    };

    it('tell when a key was seen last, by whatever read it', async () => {
      await put(['k', 'l', 'm'], sighting(['k', 'l', 'm'], 3));
      await put([], sighting(['l'], 4, true));
      await put([], sighting(['m'], 5));
      const task = store.task('a');
      expect(['k', 'l', 'm'].map((key) => task.isUnseen(key, 4))).toEqual([true, false, false]);
      expect(task.unseen(3, undefined)).toEqual({ keys: [], next: undefined });
      expect(task.unseen(4, undefined)).toEqual({ keys: ['k'], next: undefined });
      expect(task.unseen(5, undefined)).toEqual({ keys: ['k', 'l'], next: undefined });
      expect(task.unseen(6, undefined)).toEqual({ keys: ['k', 'l', 'm'], next: undefined });
      expect(task.isUnseen('never', 1)).toBe(true);
    });

    it('are never set back', async () => {
      await put(['k'], sighting(['k'], 5));
      await put([], sighting(['k'], 4));
      expect(store.task('a').isUnseen('k', 5)).toBe(false);
    });

    it('tell what a sweep has read, each key once, and not what others have', async () => {
      await put(['k', 'l'], sighting(['k'], 2, true));
      await put([], sighting(['l'], 2));
      const task = store.task('a');
      expect(task.countUnread(['k', 'l', 'new', 'l', 'new'], 2)).toBe(2);
      expect(task.countUnread(['k', 'l', 'new'], 3)).toBe(3);
      await put([], sighting(['k'], 3)); // a poll does not make it read
      expect(task.countUnread(['k'], 3)).toBe(1);
      expect(task.countUnread(['k'], 2)).toBe(0);
    });

    it('outlive a restart, with how far the sweeps have come', async () => {
      await put(['k', 'l'], sighting(['k', 'l'], 1, true));
      const sweep = '{"number":2}';
      await store.task('a').put([], { ...memory, sweep }, { seen: sighting(['k'], 2, true) });
      await store.close();
      store = openStore(folder);
      const task = store.task('a');
      expect(task.memory()?.sweep).toBe(sweep);
      expect(task.unseen(2, undefined).keys).toEqual(['l']);
      expect(task.countUnread(['k', 'l'], 2)).toBe(1);
    });

    it('of another task are not touched', async () => {
      await put(['k'], sighting(['k'], 1));
      const other = store.task('b');
      await other.put([{ key: 'k', sequence: 1, image: image('k') }], memory, {
        seen: sighting(['k'], 9),
      });
      expect(store.task('a').unseen(2, undefined).keys).toEqual(['k']);
      expect(other.unseen(9, undefined).keys).toEqual([]);
    });

    it('go with the image, and only then', async () => {
      await put(['k', 'l'], sighting(['k', 'l'], 4, true));
      const task = store.task('a');
      await task.put([{ key: 'k', sequence: 1, image: null }], memory); // not newer: it stays
      expect(task.isUnseen('k', 4)).toBe(false);
      await task.put([{ key: 'k', sequence: 2, image: null }], memory);
      expect([task.isUnseen('k', 4), task.countUnread(['k'], 4), task.count()]).toEqual([
        true,
        1,
        1,
      ]);
      expect(task.unseen(9, undefined).keys).toEqual(['l']);
    });

    it('of what has no image are nothing to be missed', async () => {
      await put(['k'], sighting(['k', 'too large'], 1));
      expect(store.task('a').unseen(2, undefined).keys).toEqual(['k']);
    });

    it('are found 500 at a time, in order, each once', async () => {
      const keys = Array.from({ length: 1_234 }, (_, k) => `k${String(k).padStart(5, '0')}`);
      const seen = keys.filter((_, k) => k % 10 === 3);
      await put(keys, sighting(keys, 1));
      await put([], sighting(seen, 2));
      const missing = keys.filter((_, k) => k % 10 !== 3);
      const first = store.task('a').unseen(2, undefined);
      expect(first).toEqual({ keys: missing.slice(0, 500), next: missing[499] });
      expect(allUnseen(2)).toEqual(missing);
      // As when it is told between two looks: nothing is passed over.
      const gone = first.keys.map((key) => ({ key, sequence: 2, image: null }));
      await store.task('a').put(gone, memory);
      expect(store.task('a').unseen(2, first.next).keys).toEqual(missing.slice(500, 1_000));
    });

    it('are looked at 10,000 at a time, however few are found', async () => {
      const keys = Array.from({ length: 20_005 }, (_, k) => `k${String(k).padStart(5, '0')}`);
      await put(keys, sighting(keys, 1));
      const few = ['k00001', 'k09999', 'k20003'];
      await put(
        [],
        sighting(
          keys.filter((key) => !few.includes(key)),
          2,
        ),
      );
      const unseen = (since: number, after?: string) => store.task('a').unseen(since, after);
      expect(unseen(2)).toEqual({ keys: ['k00001', 'k09999'], next: 'k09999' });
      expect(unseen(2, 'k09999')).toEqual({ keys: [], next: 'k19999' });
      expect(unseen(2, 'k19999')).toEqual({ keys: ['k20003'], next: undefined });
    });

    it('are forgotten when cleared', async () => {
      await put(['k'], sighting(['k'], 3, true));
      await store.task('a').clear();
      expect(store.task('a').unseen(9, undefined).keys).toEqual([]);
      expect(store.task('a').countUnread(['k'], 3)).toBe(1);
    });
  });

  describe('a page of more images than are written at one go', () => {
    const keys = Array.from({ length: 250 }, (_, k) => `k${k}`);
    const updates = keys.map((key) => ({ key, sequence: 4, image: image(key) }));
    const seen = { keys, sweep: 1, bySweep: true };
    const later = { ...memory, whole: 4 };

    it('is cut short before its memory and notes, and is whole when it is written once more', async () => {
      const task = store.task('a');
      await task.put([], memory);
      const cut = { key: 'k210', sequence: 4, image: { schemaId: -1, bytes: Buffer.of() } };
      const broken = updates.map((each) => (each.key === cut.key ? cut : each));
      await expect(task.put(broken, later, { seen })).rejects.toThrow(RangeError);
      expect(task.memory()).toEqual(memory);
      expect(task.countUnread(keys, 1)).toBe(250);
      expect(task.get('k210')).toBeUndefined();

      await task.put(updates, later, { seen });
      expect(keys.map((key) => task.get(key)?.bytes.toString())).toEqual(keys);
      expect([task.memory(), task.countUnread(keys, 1), task.count()]).toEqual([later, 0, 250]);
    });

    it('keeps what each image was sent as', async () => {
      const texts = new Map(keys.map((key) => [key, textOf('a')]));
      await store.task('a').put(updates, memory, { seen, payloadDigests: texts });
      expect(keys.map((key) => store.task('a').payloadDigest(key))).toEqual(
        keys.map(() => textOf('a')),
      );
    });
  });

  describe('rejects', () => {
    const digests = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, k) => `ÿ ${from + k}`);
    const put = (from: number, to: number) =>
      store.task('a').put([], memory, { rejects: digests(from, to) });
    const known = (from: number, to: number) =>
      digests(from, to).filter((each) => store.task('a').isRejected(each)).length;

    it('are remembered on disk, by the next process too, however many they are', async () => {
      const count = scaled(2_000, 11_000);
      await put(0, 3);
      await put(3, 3);
      await put(3, count);
      expect([known(0, count), known(count, count + 10)]).toEqual([count, 0]);
      expect(store.task('b').isRejected(digests(0, 1)[0]!)).toBe(false);
      await store.close();
      store = openStore(folder);
      expect([known(0, count), known(count, count + 10)]).toEqual([count, 0]);
    });

    it('are so many at the most, and the newer half of them whatever comes', async () => {
      const reopen = async () => {
        await store.close();
        store = openStore(folder, undefined, 100);
      };
      await reopen();
      for (let from = 0; from < 400; from += 23) {
        await put(from, from + 23);
        if (from % 5 === 0) await reopen();
        const [all, newer] = [known(0, from + 23), known(Math.max(0, from + 23 - 50), from + 23)];
        expect(all).toBeLessThanOrEqual(100);
        expect(newer).toBe(Math.min(50, from + 23));
      }
      await put(414, 1_399); // more than there is room for
      expect([known(0, 1_399) <= 100, known(1_349, 1_399)]).toEqual([true, 50]);
    });

    it('are forgotten when cleared, and begin anew', async () => {
      await put(0, 12);
      await store.task('a').clear();
      expect(known(0, 30)).toBe(0);
      await put(20, 22);
      expect([known(0, 20), known(20, 22)]).toEqual([0, 2]);
    });
  });
});
