import { describe, expect, it } from 'vitest';
import type { TaskStore } from '../../src/state/store.ts';
import { image, memory } from '../support/task-memory.ts';

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
      expect(store.unread(['a', 'b', 'b', 'e', 'x'], 1)).toBe(2); // a and e
      await store.put([], memory, seenBy(0, false, 'b')); // late, of an earlier sweep
      expect([store.isUnseen('b', 1), store.isUnseen('a', 1), store.isUnseen('z', 1)]).toEqual([
        false,
        true,
        true,
      ]);
      await store.put([{ key: 'a', sequence: 2, image: null }], memory);
      expect(unseen(store, 1)).toEqual(['c']);
    });

    it('remembers rejects in order, and forgets all when cleared', async () => {
      const store = open();
      await store.put([], memory, { rejects: ['one', 'two'] });
      await store.put([{ key: 'k', sequence: 1, image: image('x') }], memory, {
        ...seenBy(1, true, 'k'),
        rejects: ['three'],
      });
      expect(store.rejects()).toEqual(['one', 'two', 'three']);
      await store.clear();
      expect([store.count(), store.memory(), store.rejects()]).toEqual([0, undefined, []]);
      expect([unseen(store, 9), store.unread(['k'], 1)]).toEqual([[], 1]);
    });
  });
}
