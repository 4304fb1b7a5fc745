import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import { IMAGES } from '../state/image-file.ts';

/**
 * State folders of the accounts. A folder is retained for a while after its account was assigned to another instance, because the account
 * may come back.
 */
export type WarmFolders = ReturnType<typeof warmFolders>;

/**
 * How long an unused state folder is retained, in ms. Shorter: the images of a returning account are restored from Kafka. Longer: unused
 * folders take more disk space.
 */
const RETENTION_MS = 3_600_000;

/**
 * Tracks which accounts' state folders are in use, and deletes those that have been unused for longer than the retention time.
 *
 * @param stateDir Contains one folder per account. Folders left by an earlier process count as unused from the time of this call.
 */
export function warmFolders(stateDir: string, scheduler: SchedulerLike) {
  /** Time at which each account's folder became unused, in ms on the scheduler's clock; Infinity while it is in use. */
  const unused = new Map(
    readdirSync(stateDir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && hasImages(join(stateDir, entry.name)))
      .map(({ name }) => [name, scheduler.now()]),
  );
  return {
    /** Marks the account's folder as in use: the account is assigned to this instance. */
    use: (account: string): void => void unused.set(account, Infinity),
    /**
     * Marks the account's folder as unused: the account is not assigned to this instance any more. A folder without an image store is not
     * tracked, so it is not deleted later.
     */
    release: (account: string): void => {
      if (hasImages(join(stateDir, account))) unused.set(account, scheduler.now());
      else unused.delete(account);
    },
    /** Returns the names of the accounts whose state folder is in use or contains images. */
    warm: (): readonly string[] => [...unused.keys()],
    /** Deletes state folders that have been unused for longer than the retention time. */
    clear: (): void => {
      for (const [account, since] of unused) {
        if (since + RETENTION_MS > scheduler.now()) continue;
        unused.delete(account);
        rmSync(join(stateDir, account), { recursive: true, force: true });
      }
    },
  };
}

/** Whether the folder holds an image store. Other folders do not belong to the service and are never deleted. */
function hasImages(folder: string): boolean {
  return existsSync(join(folder, IMAGES));
}
