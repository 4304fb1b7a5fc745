import { expect, it } from 'vitest';

/** What came of one seed. */
export interface SeedRun {
  /** Of what the seed decided. */
  readonly draw: unknown;
  /** Empty is what we want. */
  readonly violations: readonly string[];
  readonly sums: Readonly<Record<string, number>>;
}

export interface SeedsOptions<Run extends SeedRun> {
  /** Of the test. */
  readonly name: string;
  readonly count: number;
  /** Every n-th seed is run, so that several files share them. */
  readonly part: number;
  readonly parts: number;
  readonly simulate: (seed: number, onLine?: (line: string) => void) => Promise<Run>;
  /** Which lines of a failed run are told, of all that it wrote. Default none. */
  readonly tell?: (run: Run, lines: readonly string[]) => readonly string[];
  /** What else has to hold of all runs together. */
  readonly expectOf?: (runs: number, sums: Readonly<Record<string, number>>) => void;
}

/** `SIM_SEED=7` runs one seed alone, and tells what happened in it; others begin with `SIM_FIRST` (1). */
const ONE = process.env.SIM_SEED;
const FIRST = Number(process.env.SIM_FIRST ?? 1);
const SHOWN = 5;

/** A test of many seeds, which tells of those that failed. */
export function runSeeds<Run extends SeedRun>(options: SeedsOptions<Run>): void {
  const { name, count, part, parts, simulate, tell = () => [], expectOf } = options;
  const share = () =>
    Array.from({ length: count }, (_, k) => FIRST + k).filter((_, k) => k % parts === part - 1);
  const withLines = async (seed: number) => {
    const lines: string[] = [];
    return { run: await simulate(seed, (line) => lines.push(line)), lines };
  };
  const story = async (seed: number) => {
    const { run, lines } = await withLines(seed);
    return [JSON.stringify(run.draw, undefined, 1), ...lines].join('\n');
  };
  const report = async (seed: number) => {
    const { run, lines } = await withLines(seed);
    const found = run.violations.slice(0, SHOWN);
    return [`SIM_SEED=${seed}`, ...found, ...tell(run, lines)].join('\n');
  };

  it(`${name}: part ${part} of ${parts}`, async () => {
    const mine = ONE === undefined ? share() : part === 1 ? [Number(ONE)] : [];
    const began = performance.now();
    const failed: number[] = [];
    const sums: Record<string, number> = {};
    for (const seed of mine) {
      const run = await simulate(seed);
      for (const [what, more] of Object.entries(run.sums)) sums[what] = (sums[what] ?? 0) + more;
      if (run.violations.length > 0) failed.push(seed);
    }
    const ms = ((performance.now() - began) / Math.max(1, mine.length)).toFixed(0);
    console.log(`${mine.length} seeds, ${ms} ms each:`, sums, 'failed:', failed);
    if (ONE !== undefined && mine.length > 0) console.log(await story(Number(ONE)));
    const reports = await Promise.all(failed.slice(0, SHOWN).map(report));
    expect(reports.join('\n\n')).toBe('');
    expectOf?.(mine.length, sums);
  }, 3_600_000);
}
