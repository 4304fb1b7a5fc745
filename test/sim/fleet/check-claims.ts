import type { FleetTold } from './fleet-told.ts';
import type { SimAccount } from './sim-account.ts';

/** Who says that it takes an account takes it: each such word goes to the whole fleet. */
export function checkClaims(told: readonly FleetTold[], accounts: readonly SimAccount[]): string[] {
  const count = (pairs: readonly string[]) => {
    const counts = new Map<string, number>();
    for (const pair of pairs) counts.set(pair, (counts.get(pair) ?? 0) + 1);
    return counts;
  };
  const claims = count(
    told.flatMap(({ what, instance, account }) =>
      what === 'claim' ? [`${instance.name} ${account}`] : [],
    ),
  );
  const servings = count(
    accounts.flatMap(({ name, servings: all }) => all.map(({ instance }) => `${instance} ${name}`)),
  );
  return [...claims].flatMap(([pair, times]) => {
    const begun = servings.get(pair) ?? 0;
    return times > begun ? [`${pair}: claimed ${times} times, served ${begun} times`] : [];
  });
}
