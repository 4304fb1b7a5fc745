import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SchedulerLike } from 'rxjs';
import { IMAGES } from '../state/image-file.ts';

/** The state folders of accounts that an instance does not run any more: they may come back. */
export interface WarmFolders {
  /** The account is run, or made ready, from now on. */
  readonly use: (account: string) => void;
  /** It was given away. */
  readonly leave: (account: string) => void;
  /** Accounts whose images are still there. */
  readonly warm: () => readonly string[];
  /** Removes what was given away long ago. */
  readonly clear: () => void;
}

/** How long a folder is kept, ms. */
const KEPT_MS = 3_600_000;

/** @param stateDir Each account has a folder of its name in it. What a former process has left counts from now on. */
export function warmFolders(stateDir: string, scheduler: SchedulerLike): WarmFolders {
  /** By account, since when nobody uses it; Infinity while somebody does. */
  const unused = new Map<string, number>();
  const found = readdirSync(stateDir, { withFileTypes: true });
  for (const entry of found) {
    if (entry.isDirectory() && hasImages(join(stateDir, entry.name))) {
      unused.set(entry.name, scheduler.now());
    }
  }
  return {
    use: (account) => void unused.set(account, Infinity),
    leave: (account) => {
      if (hasImages(join(stateDir, account))) unused.set(account, scheduler.now());
      else unused.delete(account);
    },
    warm: () => [...unused.keys()],
    clear: () => {
      for (const [account, since] of unused) {
        if (since + KEPT_MS > scheduler.now()) continue;
        unused.delete(account);
        rmSync(join(stateDir, account), { recursive: true, force: true });
      }
    },
  };
}

/** Else it is none of ours, and is left alone. */
function hasImages(folder: string): boolean {
  return existsSync(join(folder, IMAGES));
}
