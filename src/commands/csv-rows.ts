/** A row of a file, and where it begins. */
export interface CsvRow {
  /** From 1. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** Where in a field the reader is: before it, in one without quotes, in quotes, or behind a quote in quotes. */
type Place = 'start' | 'plain' | 'quoted' | 'quote';

/**
 * Rows of CSV (RFC 4180): commas, quotes that are doubled inside quotes, any end of line. Empty lines are no rows.
 *
 * @throws SyntaxError where quotes are out of place, with the line.
 */
export async function* csvRows(
  chunks: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<CsvRow> {
  let fields: string[] = [];
  let field = '';
  let place: Place = 'start';
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
          throw new SyntaxError(`line ${line}: a field goes on after its closing quote`);
        field += char;
        place = 'plain';
      }
    }
  }
  if (place === 'quoted') throw new SyntaxError(`line ${begun}: a quote is never closed`);
  const row = endRow();
  if (row) yield row;
}
