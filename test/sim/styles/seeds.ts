import { expect } from 'vitest';
import { runSeeds } from '../run-seeds.ts';
import { simulateStyle } from './style-simulation.ts';
import { PAGINGS } from './style.ts';

/** Number of seeds in which each kind of paging occurs. */
const ENOUGH = 100;
const LINES = 60;

/** Number of seeds: `STYLE_SEEDS`, default 200. */
export function styleSeeds(part: number, parts: number): void {
  runSeeds({
    name: 'keeps every promise for lists of other APIs, of each kind of paging',
    count: Number(process.env.STYLE_SEEDS ?? 200),
    ...{ part, parts, simulate: simulateStyle },
    tell: (_, lines) => [lines[0]!, ...lines.slice(1).slice(-LINES)],
    expectOf: (runs, sums) => {
      if (runs < ENOUGH) return;
      for (const paging of PAGINGS) expect(sums[paging], paging).toBeGreaterThan(0);
      expect(sums.deletions).toBeGreaterThan(0);
      expect(sums['of them above read']).toBeGreaterThan(0);
    },
  });
}
