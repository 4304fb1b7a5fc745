import { closeSync, fchmodSync, fstatSync, openSync } from 'node:fs';

/** Images hold personal fields: nobody but the user who runs the service may read what is stored. */
export const OWNER_ONLY = { folder: 0o700, file: 0o600 } as const;

/**
 * Makes a file that its owner alone may read, empty, when it is absent; takes the rights of others away
 * when it is there and ours: earlier versions left them to the umask.
 */
export function makeOwnerOnly(file: string): void {
  const fd = openSync(file, 'a', OWNER_ONLY.file);
  try {
    const { mode, uid } = fstatSync(fd);
    if ((mode & 0o077) !== 0 && uid === process.getuid?.()) fchmodSync(fd, OWNER_ONLY.file);
  } finally {
    closeSync(fd);
  }
}
