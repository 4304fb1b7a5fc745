import { createReadStream } from 'node:fs';
import { CellarstreamError } from '../core/errors.ts';
import { csvRows } from './csv-rows.ts';

/** A row of a user's copy of a list, read from a CSV file. */
export interface CopyRow {
  readonly key: string;
  readonly sequence: number;
}

/**
 * Reads the rows of a CSV file with a header line, using its columns `key` and `sequence`.
 *
 * @throws CellarstreamError `SETTINGS` if the file can't be read or does not have that format.
 */
export async function* copyRows(file: string): AsyncGenerator<CopyRow> {
  let columns: { readonly key: number; readonly sequence: number } | undefined;
  try {
    for await (const { line, fields } of csvRows(createReadStream(file, 'utf8'))) {
      if (!columns) {
        columns = { key: fields.indexOf('key'), sequence: fields.indexOf('sequence') };
        if (columns.key >= 0 && columns.sequence >= 0) continue;
        throw new SyntaxError('its first line must name the columns key and sequence');
      }
      const key = fields[columns.key];
      const text = fields[columns.sequence] ?? '';
      const sequence = /^\d+$/.test(text) ? Number(text) : NaN;
      if (key === undefined || !Number.isSafeInteger(sequence)) {
        throw new SyntaxError(`line ${line}: a key and a whole number as sequence are expected`);
      }
      yield { key, sequence };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !isFileError(error)) throw error;
    throw new CellarstreamError('SETTINGS', `--file ${file}: ${error.message}`, { cause: error });
  }
  if (!columns) throw new CellarstreamError('SETTINGS', `--file ${file}: it is empty`);
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}
