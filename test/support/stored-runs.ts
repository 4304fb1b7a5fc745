import { packRun, StoredRun, type Run } from '../../src/state/run-entries.ts';

/** Finds runs by their first key, as they are once they were stored. */
export function storedRuns(runs: readonly Run[]): (key: string) => StoredRun | undefined {
  return (key) => {
    const run = runs.find(({ members }) => members[0]!.key === key);
    return run && new StoredRun(run.id, packRun(run.id, run));
  };
}
