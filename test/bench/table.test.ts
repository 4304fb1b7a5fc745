import { expect, it } from 'vitest';
import { markdownTable, shown, textTable } from '../../bench/support/table.mjs';
import type { RowResult } from '../../bench/support/result.mjs';

const ROWS: RowResult[] = [
  {
    name: 'cpu',
    what: '',
    limit: '',
    failures: [],
    figures: [
      {
        ...{ name: 'ratio', what: 'of the limit', unit: 'x', digits: 2, target: { atMost: 1.25 } },
        ...{ values: [1.2, 1.3, 1.4], median: 1.3, least: 1.2, most: 1.4, verdict: 'near' },
      },
      {
        ...{ name: 'rate', what: 'a second', unit: '', digits: 0, target: null },
        ...{ values: [12_345], median: 12_345, least: 12_345, most: 12_345, verdict: 'told' },
      },
    ],
  },
  { name: 'gone', what: '', limit: '', failures: ['no broker'], figures: [] },
];

it('numbers have their unit, and their thousands apart', () => {
  expect(shown(1.256, { digits: 2, unit: 'x' })).toBe('1.26 x');
  expect(shown(12_345, { digits: 0, unit: '' })).toBe('12,345');
  expect(shown(NaN, { digits: 0, unit: 'ms' })).toBe('-');
});

it('has a line for each figure, and one for what could not be measured', () => {
  expect(textTable(ROWS)).toBe(
    [
      'row   figure        median        min to max     target',
      'cpu   of the limit  1.30 x      1.20 to 1.40  <= 1.25 x  not met, within the noise',
      '      a second      12,345  12,345 to 12,345',
      'gone  no broker',
    ].join('\n'),
  );
});

it('is the same in Markdown', () => {
  const lines = markdownTable(ROWS).split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[2]).toBe(
    '| cpu | of the limit | 1.30 x | 1.20 to 1.40 | <= 1.25 x | not met, within the noise |',
  );
  expect(lines[4]).toBe('| gone | no broker |  |  |  |  |');
});
