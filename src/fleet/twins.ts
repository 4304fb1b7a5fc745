import type { Told } from './member-data.ts';

/** By account that is not served, the account that has its API key: they would count one quota twice. */
export type Twins = ReadonlyMap<string, string>;

/**
 * One folder has no two accounts with one key; but a file that gets another name does so at one instance before the others. Of
 * such accounts the one that is held is served, else the first by name; none while an instance that leaves still runs one.
 */
export function twinsOf(told: readonly Told[]): Twins {
  const byKey = new Map<string, Set<string>>();
  for (const { keys } of told) {
    for (const [account, key] of keys) {
      byKey.set(key, (byKey.get(key) ?? new Set()).add(account));
    }
  }
  const isLeft = (account: string) =>
    told.some(({ known, keys }) => keys.has(account) && !known.includes(account));
  const isHeld = (account: string) => told.some(({ held }) => held.has(account));
  return new Map(
    [...byKey.values()].flatMap((accounts) => {
      const byName = [...accounts].sort();
      const served = byName.find(isLeft) ?? byName.find(isHeld) ?? byName[0]!;
      return byName.filter((each) => each !== served).map((each) => [each, served] as const);
    }),
  );
}

/** What members tell, as if they had no files of these. */
export function withoutTwins(told: readonly Told[], twins: Twins): readonly Told[] {
  if (twins.size === 0) return told;
  return told.map((one) => ({ ...one, known: one.known.filter((each) => !twins.has(each)) }));
}

/** What is wrong with one of them. */
export function twinProblem(account: string, other: string): string {
  return `${account}.env: API_KEY is that of ${other}.env at another instance: give all instances the same files`;
}
