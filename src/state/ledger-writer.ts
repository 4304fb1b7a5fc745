// Stores which instance of the service wrote the request times in the state folder.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { folderError } from './folder-error.ts';
import { OWNER_ONLY } from './owner-only.ts';

/** File that names the service instance which wrote the request times (see `recent-starts.ts`) in a state folder. */
export interface LedgerWriter {
  /** Returns the name of the instance that wrote the request times; undefined if it is unknown. */
  readonly get: () => string | undefined;
  /**
   * Stores the name of the instance that writes the request times. It is with the kernel when the call returns, so it survives a crash of
   * the process.
   */
  readonly set: (instance: string) => void;
}

/**
 * Gives access to the file that names the instance which wrote the request times in the same folder. If that instance also wrote the newest
 * declaration of requests in the ledger (a Kafka topic), the stored times include all requests of that instance.
 */
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
