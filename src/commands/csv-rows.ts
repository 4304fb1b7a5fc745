/** A row of a CSV file, and the line where it begins. */
export interface CsvRow {
  /** Line number, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** State of the CSV parser: before a field, in an unquoted field, in a quoted field, or after a quote within a quoted field. */
type ParserState = 'start' | 'plain' | 'quoted' | 'quote';

/**
 * Parses CSV (RFC 4180): commas, quotes doubled within quotes, any line ending. Empty lines are skipped.
 *
 * @throws SyntaxError with the line number, if a quote is misplaced.
 */
export async function* csvRows(
  chunks: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<CsvRow> {
  let fields: string[] = [];
  let field = '';
  let place: ParserState = 'start';
  let [line, begun] = [1, 1];
  let isFirst = true;
  const endField = () => {
    fields.push(field);
    field = '';
    place = 'start';
  };
  const endRow = (): CsvRow | undefined => {
    const isEmpty = fields.length === 0 && place === 'start';
    endField();
    const row = { line: begun, fields };
    fields = [];
    return isEmpty ? undefined : row;
  };

  for await (const chunk of chunks) {
    for (const char of isFirst ? chunk.replace(/^\uFEFF/, '') : chunk) {
      isFirst = false;
      if (char === '\n') line += 1;
      if (place === 'quoted') {
        if (char === '"') place = 'quote';
        else field += char;
      } else if (char === '"') {
        if (place === 'plain')
          throw new SyntaxError(`line ${line}: a quote inside a field without quotes`);
        if (place === 'quote') field += char;
        place = 'quoted';
      } else if (char === ',') endField();
      else if (char === '\n') {
        const row = endRow();
        if (row) yield row;
        begun = line;
      } else if (char !== '\r') {
        if (place === 'quote')
          throw new SyntaxError(`line ${line}: a field continues after its closing quote`);
        field += char;
        place = 'plain';
      }
    }
  }
  if (place === 'quoted') throw new SyntaxError(`line ${begun}: a quote is never closed`);
  const row = endRow();
  if (row) yield row;
}
