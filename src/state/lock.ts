import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { CellarstreamError } from '../core/errors.ts';
import { makeFolder, OWNER_ONLY } from './state-files.ts';

/**
 * Locks the state folder for this process, and returns the function that unlocks it. The kernel releases the lock when the process ends,
 * even by a crash.
 *
 * @throws CellarstreamError `STATE_LOCKED` while another process, or this one, has locked the folder; `STATE_FOLDER` when it can't be
 * created or written.
 */
export function lockFolder(folder: string): () => void {
  let fd: number | undefined;
  try {
    makeFolder(folder);
    fd = tryLockFile(join(folder, 'lock'));
  } catch (cause) {
    throw new CellarstreamError(
      'STATE_FOLDER',
      `the state folder ${folder} can't be created or written: set STATE_DIR to a folder that this process can write`,
      { cause },
    );
  }
  if (fd === undefined) {
    throw new CellarstreamError(
      'STATE_LOCKED',
      `another process uses the state folder ${folder}: stop it, or set STATE_DIR to another folder`,
    );
  }
  return () => closeSync(fd);
}

/**
 * Opens a file and locks it until the returned descriptor is closed. Undefined while the file is locked by another process, or by this
 * process with another descriptor.
 */
export function tryLockFile(file: string): number | undefined {
  const fd = openSync(file, 'a+', OWNER_ONLY);
  // The package has no type declarations.
  const { tryLock } = createRequire(import.meta.url)('fs-native-extensions') as {
    readonly tryLock: (fd: number) => boolean;
  };
  if (tryLock(fd)) return fd;
  closeSync(fd);
  return undefined;
}
