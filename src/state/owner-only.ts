import { closeSync, fchmodSync, fstatSync, openSync } from 'node:fs';

/** Images hold personal fields: nobody but the user who runs the service may read what is stored. */
export const OWNER_ONLY = { folder: 0o700, file: 0o600 } as const;

/** Some file systems (CIFS, vfat) have no modes of their own: who may read is said where they are mounted. */
const MOUNT_DECIDES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP']);

/**
 * Makes a file that only its owner may read, empty, when it is absent. Takes the rights of others away when it exists and belongs to this
 * user, such as in a folder restored from a backup. A file system that has no modes keeps its own.
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
