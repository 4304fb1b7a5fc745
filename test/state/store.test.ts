import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../src/state/store.ts';
import type { Store, TaskMemory } from '../../src/state/store.ts';

const memory: TaskMemory = {
  home: 'h',
  ends: { 0: '7' },
  cursorEnd: '9',
  cursor: '{}',
  schemaIds: [1],
  sweep: null,
};
const image = (text: string) => ({ schemaId: 3, bytes: Buffer.from(text) });

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
});
