import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { folderError } from './folder-error.ts';
import { OWNER_ONLY } from './owner-only.ts';

/**
 * Reads and writes the file that names the service instance which wrote the request times (see `recent-starts.ts`) in the same folder. If
 * that instance also made the newest declaration of requests in the ledger topic, the stored times include all of its requests.
 */
export function ledgerWriter(file: string) {
  return {
    /** Returns the name of the instance; undefined if the file is absent or unreadable. */
    get: (): string | undefined => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return undefined;
      }
    },
    /**
     * Writes the name of the instance to the file. When the call returns, the operating system has the name, so a crash of the process does
     * not lose it.
     */
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
