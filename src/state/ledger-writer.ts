// Stores which instance of the service wrote the request times in the state folder.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { folderError } from './folder-error.ts';
import { OWNER_ONLY } from './owner-only.ts';

/** File that names the service instance which wrote the request times (see `recent-starts.ts`) of a state folder. */
export interface LedgerWriter {
  /** Undefined if the file is absent or unreadable. */
  readonly get: () => string | undefined;
  /** The name is with the kernel when the call returns, so it survives a crash of the process. */
  readonly set: (instance: string) => void;
}

/** If the instance in the file also wrote the newest declaration in the ledger, the stored times include all of its requests. */
export function ledgerWriter(file: string): LedgerWriter {
  return {
    get: () => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return undefined; // an unreadable file counts as unknown
      }
    },
    set: (instance) => {
      try {
        mkdirSync(dirname(file), { recursive: true, mode: OWNER_ONLY.folder });
        writeFileSync(`${file}.new`, instance, { mode: OWNER_ONLY.file });
        renameSync(`${file}.new`, file);
      } catch (error) {
        throw folderError(dirname(file), error);
      }
    },
  };
}
