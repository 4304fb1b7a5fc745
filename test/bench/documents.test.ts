import { expect, it } from 'vitest';
import { growthPlot, joined, withResults } from '../../bench/support/documents.mjs';
import { text } from '../docs/texts.ts';

const machine = {
  ...{ cpu: 'A processor', cores: 2, memoryGb: 24, system: 'linux', load: 0.1 },
  ...{ node: 'v20.20.2', kafka: '4.1.1', revision: 'abc', date: '2026-01-31T12:00:00.000Z' },
};
const ON = 'on A processor, 2 cores, 24 GB, linux; Node v20.20.2, Kafka 4.1.1';
const point = (x: number, cpu: number) => ({ x, cpu, memory: 100 });
const growth = (cpu: number) => ({
  records: [point(1_000_000, cpu), point(5_000_000, 10 * cpu)],
  resources: [point(1, cpu), point(6, 6 * cpu)],
  changes: [point(0, 0.1), point(5, cpu), point(500, 2 * cpu)],
});
const results = (...runs: object[]) => ({
  machine,
  form: 'full' as const,
  rows: [],
  runs: runs.map((details) => ({ details: { ...details } })),
});

it('results take the place of those before, and of nothing else', () => {
  const document = text('docs/performance.md');
  const once = withResults(document, results({}));
  expect(once).toContain('The full form.');
  expect(withResults(once, results({}))).toBe(once);
  const [before, after] = [document.split('<!-- results')[0]!, document.split('/results -->')[1]!];
  expect(once.startsWith(before)).toBe(true);
  expect(once.endsWith(after)).toBe(true);
  expect(() => withResults('nothing', results({}))).toThrow(/no part/);
});

it('growth is a table of medians, and a plot without the points that have no logarithm', () => {
  const measured = results({ growth: growth(1) }, { growth: growth(3) }, { growth: growth(2) });
  const document = withResults(text('docs/performance.md'), measured);
  expect(document).toContain('| orders | 5,000,000 | 20.00 | 1.43 | 100 |');
  // Without the idle tenth of a second, and none from there.
  expect(document).toContain('| changes a second | 5 | 2.00 |  | 100 |');
  expect(document).toContain('| changes a second | 500 | 4.00 | 0.16 | 100 |');
  const svg = growthPlot(measured)!;
  expect(svg.match(/<circle/g)).toHaveLength(6);
  expect(svg).toContain('>2 M<');
  expect(svg).not.toMatch(/NaN|Infinity/);
  expect(growthPlot(results({}))).toBeUndefined();
});

it('rows that were measured apart are put together, if nothing but the row is another', () => {
  const row = (name: string, median: number) => ({
    ...{ name, what: '', limit: '', failures: [] },
    figures: [
      {
        ...{
          name: 'p',
          what: 'p99',
          unit: 'ms',
          digits: 0,
          target: null,
          verdict: 'told' as const,
        },
        ...{ values: [median, median], median, least: median, most: median },
      },
    ],
  });
  const first = { ...results({}), rows: [row('a', 1), row('b', 2)] };
  const busy = { ...machine, load: 3 };
  const second = { ...results({ growth: growth(1) }), rows: [row('b', 3)], machine: busy };
  const grown = { ...results({ growth: growth(9) }), rows: [row('c', 4)] };
  const { rows, runs, machine: both } = joined([grown, first, second]);
  expect(rows.map(({ name, figures }) => [name, figures[0]!.median])).toEqual([
    ['c', 4],
    ['a', 1],
    ['b', 3],
  ]);
  expect(runs).toEqual(second.runs);
  expect(both.load).toBe(3);
  expect(withResults(text('docs/performance.md'), joined([first, second]))).toContain(
    `- \`b\`: 2 runs, revision abc, 2026-01-31, ${ON}; load at the end 3.0`,
  );
  expect(joined([joined([first, second])])).toEqual(joined([first, second]));
  const elsewhere = { cpu: 'Another processor', cores: 4, node: 'v24.0.0' };
  const later = {
    ...second,
    machine: { ...machine, ...elsewhere, revision: 'def', date: '2026-02-01T12:00:00Z' },
  };
  expect(withResults(text('docs/performance.md'), joined([first, later]))).toContain(
    `- \`a\`: 2 runs, revision abc, 2026-01-31, ${ON}; load at the end 0.1\n` +
      '- `b`: 2 runs, revision def, 2026-02-01, on Another processor, 4 cores, 24 GB, linux; Node v24.0.0, Kafka 4.1.1; load at the end 0.1\n',
  );
  expect(() => joined([first, { ...second, form: 'short' }])).toThrow(/can't be put together/);
});
