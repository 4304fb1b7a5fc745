import { describe, expect, it } from 'vitest';
import { csvRows } from '../../src/commands/copy-rows.ts';

/** The fields of all rows, of a text that comes in chunks of one size. */
async function rowsOf(text: string, size = text.length): Promise<(readonly string[])[]> {
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += size) chunks.push(text.slice(at, at + size));
  const rows: (readonly string[])[] = [];
  for await (const { fields } of csvRows(chunks)) rows.push(fields);
  return rows;
}

describe('csvRows', () => {
  it.each([
    [
      'plain',
      'key,sequence\n1,7\n',
      [
        ['key', 'sequence'],
        ['1', '7'],
      ],
    ],
    [
      'without an end of line at the end',
      'a,b\r\n1,',
      [
        ['a', 'b'],
        ['1', ''],
      ],
    ],
    ['with quotes', '"a ""b"", c","x\r\ny"\n', [['a "b", c', 'x\r\ny']]],
    [
      'with empty fields in quotes',
      '"",""\n\n"",\n',
      [
        ['', ''],
        ['', ''],
      ],
    ],
    ['with a byte order mark', '\uFEFFkey\n1\n', [['key'], ['1']]],
    ['with letters outside the first plane', '"🍷",🍇\n', [['🍷', '🍇']]],
    ['empty', '', []],
  ])('reads a file %s', async (_, text, rows) => {
    expect(await rowsOf(text)).toEqual(rows);
  });

  it('does not mind where chunks end', async () => {
    const text = 'key,sequence\r\n"a ""b""",1\r\n\r\nc,2';
    for (let size = 1; size < text.length; size++) {
      expect(await rowsOf(text, size)).toEqual([
        ['key', 'sequence'],
        ['a "b"', '1'],
        ['c', '2'],
      ]);
    }
  });

  it.each([
    ['a\n1"2', 'line 2: a quote inside'],
    ['"a"b', 'line 1: a field continues'],
    ['a\n"b\nc', 'the row that begins on line 2 has a quote that is never closed'],
  ])('refuses %j by its line', async (text, message) => {
    await expect(rowsOf(text)).rejects.toThrow(message);
  });

  it('says in which line a row begins', async () => {
    const lines: number[] = [];
    for await (const { line } of csvRows(['a\n"b\nc"\n\nd'])) lines.push(line);
    expect(lines).toEqual([1, 2, 5]);
  });
});
