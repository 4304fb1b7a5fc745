import { expect, it } from 'vitest';
import { BOUNDS } from '../../bench/bounds.mjs';
import { MEASURES } from '../../bench/measures/index.mjs';

it('a bound is of a figure with a target that is there: another would hold nothing', () => {
  const bounds = Object.entries(BOUNDS).flatMap(([row, figures]) =>
    Object.keys(figures).map((figure) => `${row} ${figure}`),
  );
  const targets = MEASURES.flatMap(({ name, figures }) =>
    figures.flatMap((figure) => (figure.target ? [`${name} ${figure.name}`] : [])),
  );
  expect(targets).toEqual(expect.arrayContaining(bounds));
});
