import { unpackFleetAssignment, unpackMemberMetadata } from '../../../src/fleet/member-metadata.ts';
import type { FleetInstance } from './fleet-instance.ts';
import type { SimAccount } from './sim-account.ts';
import type { SimGeneration } from './sim-group.ts';

/** A fleet to which nothing has happened for a while. */
export interface Quiet {
  readonly accounts: readonly SimAccount[];
  /** Accounts that nobody is to run. */
  readonly quarantined: ReadonlySet<string>;
  readonly instances: readonly FleetInstance[];
  readonly generation: SimGeneration;
  readonly now: number;
}

/** Each account is asked for at least so often, ms. */
const ASKED_WITHIN_MS = 20_000;
const EVEN_WITHIN = 0.2;

/** What is not as it should be in the end: undefined when all is well. */
export function restless({
  accounts,
  quarantined,
  instances,
  generation,
  now,
}: Quiet): string | undefined {
  const given = unpackFleetAssignment(generation.given).accounts;
  for (const each of instances) {
    if (each.generation !== generation.number)
      return `${each.name} says that it is in ${each.generation}, not in ${generation.number}`;
  }
  for (const account of accounts) {
    const { name, arrived } = account;
    const alive = account.servings.filter(
      ({ instance, endedAt }) =>
        endedAt === Infinity && instances.some((each) => each.name === instance && each.isWell),
    );
    if (quarantined.has(name)) {
      if (alive.length > 0) return `${name} is quarantined, and run by ${alive[0]!.instance}`;
      continue;
    }
    if (alive.length !== 1) return `${name} is run by ${alive.length} instances`;
    const [one] = alive;
    if (account.owner() !== one) return `${name} is run by ${one!.instance}, which has lost it`;
    if (given.get(name) !== one!.instance)
      return `${name} is run by ${one!.instance}, and given to ${given.get(name)}`;
    if (account.data?.isTrue() === false) return `${name} is not published as it is`;
    if ((arrived.at(-1)?.at ?? 0) < now - ASKED_WITHIN_MS) return `${name} is not asked for`;
  }
  return undefined;
}

/** By the true weights: no account could go to another member so that the two had much more alike to do. */
export function checkLoads({ accounts, instances }: Quiet): string[] {
  const loads = instances.map(({ name }) => {
    const own = accounts.filter((account) => account.owner()?.instance === name);
    return { name, own, load: own.reduce((sum, { weight }) => sum + weight, 0) };
  });
  const mean = loads.reduce((sum, { load }) => sum + load, 0) / loads.length;
  return loads.flatMap((more) =>
    loads.flatMap((less) => {
      const gap = more.load - less.load;
      const fits = more.own.some(({ weight }) => weight >= gap / 4 && weight <= 0.75 * gap);
      // One of the two is further off than that.
      return gap > 2 * EVEN_WITHIN * mean && fits
        ? [`${more.name} has ${more.load}, ${less.name} ${less.load}`]
        : [];
    }),
  );
}

/** How it is shared out: no account could go to another member so that the two have more alike to do. */
export function checkEven({ accounts, instances, generation }: Quiet): string[] {
  const weights = new Map<string, number>();
  const newest = new Map<string, number>();
  for (const { owned } of generation.metadata.map(unpackMemberMetadata)) {
    for (const [account, { generation: since, weight }] of owned) {
      if ((newest.get(account) ?? -1) >= since) continue;
      newest.set(account, since);
      weights.set(account, weight);
    }
  }
  const weightOf = (account: string) => weights.get(account) ?? 1;
  const loads = instances.map(({ name }) => {
    const own = accounts.filter((account) => account.owner()?.instance === name);
    const load = own.reduce((sum, account) => sum + weightOf(account.name), 0);
    return { name, own, load };
  });
  const mean = loads.reduce((sum, { load }) => sum + load, 0) / loads.length;
  return loads.flatMap((more) =>
    loads.flatMap((less) => {
      const gap = more.load - less.load;
      const isFar = gap > EVEN_WITHIN * mean;
      const couldMove = more.own.some(({ name }) => weightOf(name) <= 0.75 * gap);
      // Quarantined when it was told of, and run since: nothing moves before the members change.
      const isOld = more.own.some(({ name }) => weightOf(name) < 0.1);
      return isFar && couldMove && !isOld
        ? [`${more.name} has ${more.load}, ${less.name} ${less.load} in ${generation.number}`]
        : [];
    }),
  );
}
