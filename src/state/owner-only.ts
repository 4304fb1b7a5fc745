import { closeSync, fchmodSync, fstatSync, openSync } from 'node:fs';

/** File modes of the state folder and its files: readable only for the user of the service, as images contain personal data. */
export const OWNER_ONLY = { folder: 0o700, file: 0o600 } as const;

/** Error codes of chmod on file systems without modes (CIFS, vfat), where the mount options determine the access. */
const MOUNT_DECIDES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP']);

/**
 * Creates an empty file that only its owner may read, if the file is absent. If the file exists and belongs to this user, such as in a
 * folder restored from a backup, removes the rights of other users. On a file system without modes, access remains unchanged.
 */
export function makeOwnerOnly(file: string): void {
  const fd = openSync(file, 'a', OWNER_ONLY.file);
  try {
    const { mode, uid } = fstatSync(fd);
    if ((mode & 0o077) !== 0 && uid === process.getuid?.()) fchmodSync(fd, OWNER_ONLY.file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || !MOUNT_DECIDES.has(code)) throw error;
  } finally {
    closeSync(fd);
  }
}
