import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openStore } from '../../src/state/store.ts';
import { memory } from '../support/task-memory.ts';

vi.mock('node:fs/promises', async (importOriginal) => {
  const promises = await importOriginal<typeof import('node:fs/promises')>();
  return { ...promises, open: vi.fn(promises.open) };
});

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'cellarstream-sync-'))));
afterEach(() => rmSync(folder, { recursive: true }));

it('images that the disk did not take at the end are thrown away by the next start', async () => {
  const store = openStore(folder);
  await store.task('a').put([], memory);
  const original = vi.mocked(open).getMockImplementation()!;
  vi.mocked(open).mockImplementationOnce(async (...args) => {
    const file = await original(...args);
    return Object.assign(file, { sync: () => Promise.reject(new Error('EIO: i/o error, fsync')) });
  });
  await expect(store.close()).rejects.toThrow('EIO');

  const discarded: string[] = [];
  const next = openStore(folder, (reason) => void discarded.push(reason));
  expect(discarded).toEqual([expect.stringContaining('damaged')]);
  expect(next.task('a').memory()).toBeUndefined();
  await next.close();
});
