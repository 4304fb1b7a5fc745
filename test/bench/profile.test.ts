import { expect, it } from 'vitest';
import { sharesOf } from '../../bench/support/profile.mjs';

const node = (id: number, functionName: string, children: number[] = []) => ({
  id,
  callFrame: { functionName, url: 'file:///somewhere/dist/a.js', lineNumber: 0 },
  children,
});

it('of the busy time, what each function took by itself and with all that it calls, once', () => {
  const { self, inclusive, busyMs } = sharesOf({
    nodes: [
      node(1, '(root)', [2, 5]),
      node(2, 'outer', [3]),
      node(3, 'inner', [4]),
      node(4, 'outer'), // calls itself, by way of inner
      node(5, '(idle)'),
    ],
    samples: [2, 3, 4, 4, 5],
    timeDeltas: [1_000, 1_000, 1_000, 1_000, 9_000],
  });
  expect(busyMs).toBe(4);
  expect(self).toEqual([
    { where: 'outer dist/a.js:1', percent: 75 },
    { where: 'inner dist/a.js:1', percent: 25 },
  ]);
  expect(inclusive).toEqual([
    { where: 'outer dist/a.js:1', percent: 100 },
    { where: 'inner dist/a.js:1', percent: 75 },
  ]);
});
