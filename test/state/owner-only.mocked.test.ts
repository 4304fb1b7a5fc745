import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { lockFolder } from '../../src/state/lock.ts';
import { makeOwnerOnly } from '../../src/state/state-files.ts';
import { recentStarts } from '../../src/state/recent-starts.ts';
import { openStore } from '../../src/state/store.ts';

const { fchmodSync } = vi.hoisted(() => ({
  fchmodSync: vi.fn<(fd: number, mode: number) => void>(),
}));
vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs')>();
  fchmodSync.mockImplementation(fs.fchmodSync);
  return { ...fs, fchmodSync };
});

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'cellarstream-modes-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

it.skipIf(process.platform === 'win32')('nobody else may read what is stored', async () => {
  const state = join(folder, 'a', 'state');
  const unlock = lockFolder(state);
  const store = openStore(state, () => undefined);
  const starts = recentStarts(join(state, 'quota', 'default', 'orders'), 10);
  starts.add(1);
  const paths = readdirSync(state, { recursive: true, withFileTypes: true });
  const modes = paths.map((entry) => [
    entry.isDirectory() ? 'folder' : 'file',
    modeOf(join(entry.parentPath, entry.name)),
  ]);
  expect(modes.filter(([kind]) => kind === 'file').length).toBeGreaterThanOrEqual(5);
  for (const [kind, mode] of modes) expect(mode).toBe(kind === 'folder' ? '700' : '600');
  expect([modeOf(state), modeOf(join(folder, 'a'))]).toEqual(['700', '700']);
  starts.close();
  await store.close();
  unlock();
});

it.skipIf(process.platform === 'win32')(
  'takes the rights of others from a file, and leaves what is in it',
  () => {
    const file = join(folder, 'images.mdb');
    writeFileSync(file, 'images');
    chmodSync(file, 0o664);
    makeOwnerOnly(file);
    expect([modeOf(file), statSync(file).size]).toEqual(['600', 6]);
  },
);

it.skipIf(process.platform === 'win32')(
  'leaves the rights as they are where the file system has none of its own',
  () => {
    const file = join(folder, 'images.mdb');
    writeFileSync(file, 'images');
    chmodSync(file, 0o664);
    const failing = (code: string) =>
      fchmodSync.mockImplementationOnce(() => {
        throw Object.assign(new Error(code), { code });
      });
    for (const code of ['EPERM', 'ENOTSUP']) {
      failing(code);
      makeOwnerOnly(file);
      expect(modeOf(file)).toBe('664');
    }
    failing('EIO');
    expect(() => makeOwnerOnly(file)).toThrow('EIO');
  },
);
