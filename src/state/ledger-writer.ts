import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { folderError } from './folder-error.ts';
import { OWNER_ONLY } from './owner-only.ts';

/**
 * File that names the service instance which wrote the request times (see `recent-starts.ts`) in the same folder. If that instance also
 * wrote the newest declaration in the ledger, the stored times include all of its requests.
 */
export function ledgerWriter(file: string) {
  return {
    /** Undefined if the file is absent or unreadable. */
    get: (): string | undefined => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return undefined;
      }
    },
    /** The name is with the kernel when the call returns, so it survives a crash of the process. */
    set: (instance: string): void => {
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

export type LedgerWriter = Readonly<ReturnType<typeof ledgerWriter>>;
