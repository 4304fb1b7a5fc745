import { createReadStream } from 'node:fs';
import { CellarstreamError } from '../core/errors.ts';

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
        throw new SyntaxError('the first line must name the columns key and sequence');
      }
      const key = fields[columns.key];
      const text = fields[columns.sequence] ?? '';
      const sequence = /^\d+$/.test(text) ? Number(text) : NaN;
      if (key === undefined || !Number.isSafeInteger(sequence)) {
        throw new SyntaxError(
          `line ${line} must have a text in the column key and a whole number in the column sequence`,
        );
      }
      yield { key, sequence };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !isFileError(error)) throw error;
    throw new CellarstreamError('SETTINGS', `--file ${file}: ${error.message}`, { cause: error });
  }
  if (!columns) throw new CellarstreamError('SETTINGS', `--file ${file}: the file is empty`);
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

export interface CsvRow {
  /** Number of the line in the CSV file on which the row begins, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** State of the CSV parser: before a field, in an unquoted field, in a quoted field, or after a quote within a quoted field. */
type ParserState = 'start' | 'plain' | 'quoted' | 'quote';

/**
 * Parses CSV (RFC 4180): commas, quotes doubled within quotes, lines that end with LF or CRLF. Empty lines are skipped.
 *
 * @throws SyntaxError with the line number, if a quote is misplaced or never closed.
 */
export async function* csvRows(
  chunks: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<CsvRow> {
  let fields: string[] = [];
  let field = '';
  let state: ParserState = 'start';
  let [line, begun] = [1, 1];
  let isFirst = true;
  const endField = () => {
    fields.push(field);
    field = '';
    state = 'start';
  };
  const endRow = (): CsvRow | undefined => {
    const isEmpty = fields.length === 0 && state === 'start';
    endField();
    const row = { line: begun, fields };
    fields = [];
    return isEmpty ? undefined : row;
  };

  for await (const chunk of chunks) {
    for (const char of isFirst ? chunk.replace(/^\uFEFF/, '') : chunk) {
      isFirst = false;
      if (char === '\n') line += 1;
      if (state === 'quoted') {
        if (char === '"') state = 'quote';
        else field += char;
      } else if (char === '"') {
        if (state === 'plain')
          throw new SyntaxError(`line ${line}: a quote inside a field without quotes`);
        if (state === 'quote') field += char;
        state = 'quoted';
      } else if (char === ',') endField();
      else if (char === '\n') {
        const row = endRow();
        if (row) yield row;
        begun = line;
      } else if (char !== '\r') {
        if (state === 'quote')
          throw new SyntaxError(`line ${line}: a field continues after its closing quote`);
        field += char;
        state = 'plain';
      }
    }
  }
  if (state === 'quoted')
    throw new SyntaxError(`the row that begins on line ${begun} has a quote that is never closed`);
  const row = endRow();
  if (row) yield row;
}
