import { closeSync, fchmodSync, fstatSync, openSync } from 'node:fs';

/** Images hold personal fields: nobody but the user who runs the service may read what is stored. */
export const OWNER_ONLY = { folder: 0o700, file: 0o600 } as const;

/** Some file systems (CIFS, vfat) have no modes of their own: who may read is said where they are mounted. */
const MOUNT_DECIDES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP']);

/**
 * Makes a file that its owner alone may read, empty, when it is absent; takes the rights of others away
 * when it is there and ours: earlier versions left them to the umask. A file system that has no modes
 * keeps its own.
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
