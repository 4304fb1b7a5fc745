// Files of the state folder: readable only for the user of the service, as images contain personal data. Also the errors of its disk.

import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { CellarstreamError } from '../core/errors.ts';

/** Mode of the files: only their owner may read them. */
export const OWNER_ONLY = 0o600;

/** Error codes of chmod on file systems without modes (CIFS, vfat), where the mount options determine the access. */
const MOUNT_DECIDES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP']);

/** Creates a folder and the missing folders above it. Only their owner may read the new folders. Does nothing if the folder exists. */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/**
 * Creates an empty file that only its owner may read, or removes the rights of other users from an existing file of this user. On a file
 * system without modes, access remains unchanged.
 */
export function makeOwnerOnly(file: string): void {
  const fd = openSync(file, 'a', OWNER_ONLY);
  try {
    const { mode, uid } = fstatSync(fd);
    if ((mode & 0o077) !== 0 && uid === process.getuid?.()) fchmodSync(fd, OWNER_ONLY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || !MOUNT_DECIDES.has(code)) throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * Replaces the content of a file, or creates the file. When the call returns, the disk has the new content. If the new content can't be
 * written, as on a full disk, the old content remains.
 */
export function replaceDurably(file: string, text: string): void {
  const next = `${file}.new`;
  const fd = openSync(next, 'w', OWNER_ONLY);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(next, file);
  if (process.platform === 'win32') return; // folders can't be opened on Windows, and need not be synced
  const folder = openSync(dirname(file), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Error codes that count as a full disk (no space, quota exceeded, file too large): Node's names, and the numbers that lmdb reports. */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 27]);
const SYSTEM = /^E[A-Z0-9]+$/;

/** Converts an error of the operating system to `STATE_FOLDER` with advice for the operator; returns other errors unchanged. */
export function folderError(folder: string, cause: unknown): unknown {
  if (!(cause instanceof Error) || cause instanceof CellarstreamError) return cause;
  const code: unknown = 'code' in cause ? cause.code : undefined;
  const isSystem = typeof code === 'number' ? code > 0 : SYSTEM.test(String(code));
  if (!isSystem) return cause;
  const message = FULL.has(code)
    ? `the disk of the state folder ${folder} is full: make room, or set STATE_DIR to another folder`
    : `the state folder ${folder} can't be read or written: check its disk, or set STATE_DIR to another folder`;
  return new CellarstreamError('STATE_FOLDER', message, { cause });
}

/** Runs `work`, which reads or writes files in `folder`, and converts its errors with {@link folderError}. */
export function inFolder<T>(folder: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw folderError(folder, error);
  }
}
