import { describe, expect, it } from 'vitest';
import type { ImageUpdate, StoredPayloadDigest, TaskStore } from '../../src/state/store.ts';
import { image, memory, textOf } from '../support/task-memory.ts';

/** What tasks rely on, of whatever store: the simulated one and lmdb are held to it alike. */
export function storeContract(name: string, open: () => TaskStore): void {
  describe(`the contract of a store: ${name}`, () => {
    const seenBy = (sweep: number, bySweep: boolean, ...keys: string[]) => ({
      seen: { keys, sweep, bySweep },
    });
    /** All keys that are unseen, however many stretches that takes. */
    const unseen = (store: TaskStore, since: number): string[] => {
      const keys: string[] = [];
      let after: string | undefined;
      do {
        const stretch = store.unseen(since, after);
        keys.push(...stretch.keys);
        after = stretch.next;
      } while (after !== undefined);
      return keys;
    };

    it('gives back images, the newest of each key, and memory', async () => {
      const store = open();
      expect([store.get('k'), store.memory(), store.count()]).toEqual([undefined, undefined, 0]);
      await store.put([{ key: 'k', sequence: 5, image: image('new') }], memory);
      await store.put([{ key: 'k', sequence: 5, image: image('same') }], memory);
      await store.put([{ key: 'k', sequence: 4, image: image('old') }], memory);
      await store.put([{ key: 'k', sequence: 4, image: null }], memory);
      expect(store.get('k')).toEqual({ sequence: 5, ...image('new') });
      expect([store.memory(), store.count()]).toEqual([memory, 1]);
      await store.put([{ key: 'k', sequence: 6, image: null }], memory);
      expect([store.get('k'), store.count()]).toEqual([undefined, 0]);
    });

    it('tells the sequences of what has an image, in order', async () => {
      const store = open();
      const put = (key: string, sequence: number, isThere = true) =>
        store.put([{ key, sequence, image: isThere ? image(key) : null }], memory);
      for (const [nth, key] of ['e', 'b', 'é', 'd', 'a', 'c'].entries()) await put(key, nth + 1);
      await put('b', 9);
      await put('b', 8);
      await put('d', 10, false);
      await store.put([], memory, seenBy(1, true, 'x'));
      const kept: (readonly [string, number])[] = [];
      let after: string | undefined;
      do {
        const stretch = store.storedKeys(after);
        kept.push(...stretch.keys);
        after = stretch.next;
      } while (after !== undefined);
      const sequences = [
        ['a', 5],
        ['b', 9],
        ['c', 6],
        ['e', 1],
        ['é', 3],
      ];
      expect(kept).toEqual(sequences);
      expect(['b', 'd', 'x', 'z'].map((key) => store.sequence(key))).toEqual([
        9,
        ...[undefined, undefined, undefined],
      ]);
    });

    it('tells what has not been seen since a sweep, in order, and what a sweep has not read', async () => {
      const store = open();
      const images = ['e', 'b', 'd', 'a', 'c'].map((key) => ({
        key,
        sequence: 1,
        image: image(key),
      }));
      await store.put(images, memory, seenBy(0, false, 'e', 'b', 'd', 'a', 'c'));
      expect(unseen(store, 0)).toEqual([]);
      expect(unseen(store, 1)).toEqual(['a', 'b', 'c', 'd', 'e']);
      await store.put([], memory, seenBy(1, true, 'b', 'd', 'x'));
      await store.put([], memory, seenBy(1, false, 'e'));
      expect(unseen(store, 1)).toEqual(['a', 'c']); // x has no image
      expect(store.countUnread(['a', 'b', 'b', 'e', 'x'], 1)).toBe(2); // a and e
      await store.put([], memory, seenBy(0, false, 'b')); // late, of an earlier sweep
      expect([store.isUnseen('b', 1), store.isUnseen('a', 1), store.isUnseen('z', 1)]).toEqual([
        false,
        true,
        true,
      ]);
      await store.put([{ key: 'a', sequence: 2, image: null }], memory);
      expect(unseen(store, 1)).toEqual(['c']);
    });

    describe('texts', () => {
      const put = (
        store: TaskStore,
        images: readonly ImageUpdate[],
        texts: Readonly<Record<string, StoredPayloadDigest>> = {},
        keys: readonly string[] = Object.keys(texts),
      ) => {
        const seen = { keys, sweep: 1, bySweep: false };
        return store.put(images, memory, { seen, payloadDigests: new Map(Object.entries(texts)) });
      };
      const update = (key: string, sequence: number, text: string | null = 'x'): ImageUpdate => ({
        key,
        sequence,
        image: text === null ? null : image(text),
      });

      it('are kept with an image, and of one that is there', async () => {
        const store = open();
        await put(store, [update('k', 1)], { k: textOf('a', 7) });
        expect([store.payloadDigest('k'), store.payloadDigest('l')]).toEqual([
          textOf('a', 7),
          undefined,
        ]);
        await put(store, [], { k: textOf('ÿ', -0.5) });
        expect(store.payloadDigest('k')).toEqual(textOf('ÿ', -0.5));
        await put(store, [update('l', 2)], { k: textOf('c'), l: textOf('d') });
        expect([store.payloadDigest('k'), store.payloadDigest('l')]).toEqual([
          textOf('c'),
          textOf('d'),
        ]);
      });

      it('stay when the key is only seen, and when others change', async () => {
        const store = open();
        await put(store, [update('k', 1)], { k: textOf('a') });
        await put(store, [update('l', 2)], {}, ['k', 'l']);
        await store.put([], memory, seenBy(2, true, 'k'));
        expect([store.payloadDigest('k'), store.countUnread(['k'], 2)]).toEqual([textOf('a'), 0]);
      });

      it('are dropped when an image is written without one, seen or not', async () => {
        const store = open();
        await put(store, [update('k', 1), update('l', 1)], { k: textOf('a'), l: textOf('b') });
        await put(store, [update('k', 2, 'same'), update('l', 2)], {}, ['k']);
        expect([store.payloadDigest('k'), store.payloadDigest('l')]).toEqual([
          undefined,
          undefined,
        ]);
      });

      it('stay with an image that is newer than what is written', async () => {
        const store = open();
        await put(store, [update('k', 5)], { k: textOf('a') });
        await put(store, [update('k', 5)], { k: textOf('b') });
        await put(store, [update('k', 4, null)], { k: textOf('c') });
        await put(store, [update('k', 3)]);
        expect(store.payloadDigest('k')).toEqual(textOf('a'));
      });

      it('go with the image, whatever comes with that', async () => {
        const store = open();
        await put(store, [update('k', 1)], { k: textOf('a') });
        await put(store, [update('k', 2, null)], { k: textOf('b') });
        expect([store.get('k'), store.payloadDigest('k')]).toEqual([undefined, undefined]);
        await put(store, [update('k', 3)]);
        expect(store.payloadDigest('k')).toBeUndefined();
        await put(store, [], { k: textOf('c') });
        await store.clear();
        expect(store.payloadDigest('k')).toBeUndefined();
      });
    });

    it('remembers rejects, and forgets all when cleared', async () => {
      const store = open();
      await store.put([], memory, { rejects: ['one', 'two'] });
      await store.put([{ key: 'k', sequence: 1, image: image('x') }], memory, {
        ...seenBy(1, true, 'k'),
        rejects: ['three'],
      });
      const rejects = () => ['one', 'two', 'three', 'four'].map((each) => store.isRejected(each));
      expect(rejects()).toEqual([true, true, true, false]);
      await store.clear();
      expect([store.count(), store.memory(), ...new Set(rejects())]).toEqual([0, undefined, false]);
      expect([unseen(store, 9), store.countUnread(['k'], 1)]).toEqual([[], 1]);
    });
  });
}
