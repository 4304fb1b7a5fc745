import { expect, it } from 'vitest';
import type { Measure } from '../../bench/support/measure.mjs';
import { comparisonsOf } from '../../bench/support/compare.mjs';

const ROW: Measure = {
  name: 'row',
  what: '',
  limit: '',
  form: 'short',
  figures: [
    { name: 'cpu', what: 'CPU', unit: 'µs', digits: 1 },
    { name: 'new', what: 'of B alone', unit: '' },
  ],
  run: () => Promise.resolve({}),
};
const run = (figures: Record<string, number>) => ({ figures: { row: figures } });

it('compares within pairs: a machine that slows down between them changes no ratio', () => {
  const pairs = [
    [run({ cpu: 10 }), run({ cpu: 5, new: 1 })],
    [run({ cpu: 40 }), run({ cpu: 20, new: 1 })],
    [run({ cpu: 20 }), run({ cpu: 12, new: 1 })],
  ] as const;
  expect(comparisonsOf([ROW], pairs)).toEqual([
    {
      ...{ row: 'row', figure: 'cpu', what: 'CPU', unit: 'µs', digits: 1 },
      a: [10, 40, 20],
      b: [5, 20, 12],
      ratio: 0.5,
      ratios: [0.5, 0.6],
    },
  ]);
});

it('leaves out a pair of which one run has no figure', () => {
  const [comparison] = comparisonsOf(
    [ROW],
    [
      [run({}), run({ cpu: 5 })],
      [run({ cpu: 10 }), run({ cpu: 5 })],
    ],
  );
  expect(comparison).toMatchObject({ a: [10], b: [5] });
});
