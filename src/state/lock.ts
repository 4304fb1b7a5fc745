import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { CellarstreamError } from '../core/errors.ts';
import { OWNER_ONLY } from './owner-only.ts';

/** The part of the package that is used; it ships no types. */
interface FileLocks {
  readonly tryLock: (fd: number) => boolean;
}

/**
 * Takes the state folder for this process; gives the way to let go of it. The lock is the kernel's,
 * on an open file: it ends with the process, however that ends, and a paused process keeps it.
 *
 * @throws CellarstreamError `STATE_LOCKED` while another process has it; `STATE_FOLDER` when it can't
 * be made or written.
 */
export function lockFolder(folder: string): () => void {
  const fd = openLock(folder);
  const { tryLock } = createRequire(import.meta.url)('fs-native-extensions') as FileLocks;
  if (!tryLock(fd)) {
    closeSync(fd);
    throw new CellarstreamError(
      'STATE_LOCKED',
      `another process uses the state folder ${folder}: stop it, or set STATE_DIR to another folder`,
    );
  }
  return () => closeSync(fd);
}

function openLock(folder: string): number {
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY.folder });
    return openSync(join(folder, 'lock'), 'a+', OWNER_ONLY.file);
  } catch (cause) {
    throw new CellarstreamError(
      'STATE_FOLDER',
      `the state folder ${folder} can't be made or written: set STATE_DIR to a folder that can`,
      { cause },
    );
  }
}
