import { isDeepStrictEqual } from 'node:util';

/** Whether a column of a table has the value that the API sent; numbers, dates and times may be texts. */
export function isSameValue(column: unknown, sent: unknown): boolean {
  if (sent === null || sent === undefined) return column === null;
  if (typeof sent === 'number') return Number(column) === sent;
  if (typeof sent === 'string' && typeof column === 'string') {
    return (
      column === sent || Date.parse(`${column}Z`) === Date.parse(sent) || sent.startsWith(column)
    );
  }
  return isDeepStrictEqual(column, sent);
}
