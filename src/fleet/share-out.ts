import type { Member } from '../sinks/membership/membership.ts';
import { assign } from './assignment.ts';
import type { Candidate } from './assignment.ts';
import { packSharedOut, unpackTold } from './member-data.ts';
import type { Told } from './member-data.ts';
import { twinsOf, withoutTwins } from './twins.ts';

export interface Before {
  /** The instances of the generation before; none where the leader does not know them. */
  readonly instances: ReadonlySet<string>;
  /** Whether they have had too different loads for long. */
  readonly isUneven: boolean;
}

/**
 * The leader's part: what each member is given. Accounts move to make it even only when other instances take part than in
 * the generation before, or when it has been uneven for long.
 */
export function shareOut(members: readonly Member[], before: Before): ReadonlyMap<string, Buffer> {
  const all = allTold(members);
  const twins = twinsOf(all);
  const told = withoutTwins(all, twins);
  const isOther =
    told.length !== before.instances.size ||
    told.some(({ instance }) => !before.instances.has(instance));
  const assignment = assign({
    members: told.map(candidateOf),
    weights: weightsOf(told),
    mayMove: isOther || before.isUneven,
  });
  const given = packSharedOut({
    members: told.map(({ instance, name }) => ({ instance, name })),
    accounts: new Map(
      [...assignment].flatMap(([instance, accounts]) =>
        accounts.map((account) => [account, instance] as const),
      ),
    ),
    twins,
  });
  return new Map(members.map(({ id }) => [id, given]));
}

/** By instance, not by the group's ids: a member that had to join anew is still who it was. */
export function candidateOf({ instance, known, held, warm }: Told): Candidate {
  return {
    id: instance,
    known: new Set(known),
    held: new Map([...held].map(([account, { generation }]) => [account, generation])),
    warm: new Set(warm),
  };
}

/** As whoever was given an account last has it. */
export function weightsOf(members: readonly Told[]): ReadonlyMap<string, number> {
  const newest = new Map<string, { readonly generation: number; readonly weight: number }>();
  for (const { held } of members) {
    for (const [account, mine] of held) {
      const known = newest.get(account);
      if (!known || known.generation < mine.generation) newest.set(account, mine);
    }
  }
  return new Map([...newest].map(([account, { weight }]) => [account, weight]));
}

/** What members tell, of the accounts that are to be run. */
export function toldBy(members: readonly Member[]): readonly Told[] {
  const all = allTold(members);
  return withoutTwins(all, twinsOf(all));
}

/** Who tells what this version can't read takes part in the group, and is given nothing. */
function allTold(members: readonly Member[]): readonly Told[] {
  return members.flatMap(({ told }) => {
    try {
      return [unpackTold(told)];
    } catch {
      return []; // of another version, which can do without accounts until all are of one
    }
  });
}
