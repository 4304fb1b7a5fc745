import { packRun, unpackRun } from '../../src/state/run-entries.ts';
import type { Run, StoredRun } from '../../src/state/run-entries.ts';

/** Finds runs by their first key, as they are once they were stored. */
export function storedRuns(runs: readonly Run[]): (key: string) => StoredRun | undefined {
  return (key) => {
    const run = runs.find(({ members }) => members[0]!.key === key);
    return run && unpackRun(run.id, packRun(run.id, run));
  };
}
