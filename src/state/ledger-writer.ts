import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { folderError } from './folder-error.ts';
import { OWNER_ONLY } from './owner-only.ts';

/** Which process the request times of a folder belong to. */
export interface LedgerWriter {
  /** Undefined where that is not known. */
  readonly get: () => string | undefined;
  /** The kernel has it when this returns. */
  readonly set: (instance: string) => void;
}

/**
 * Kept in a file: whoever finds the newest declaration to be by that process finds all that it asked in the request times
 * beside it.
 */
export function ledgerWriter(file: string): LedgerWriter {
  return {
    get: () => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return undefined; // what can't be read is not believed
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
