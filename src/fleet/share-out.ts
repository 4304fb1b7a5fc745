import type { Member } from '../sinks/membership/membership.ts';
import { assign } from './assignment.ts';
import type { Candidate } from './assignment.ts';
import { packSharedOut, unpackTold } from './member-data.ts';
import type { Told } from './member-data.ts';

/**
 * The leader's part: what each member is given. Accounts move to make it even only when other instances take part than in
 * the generation before. Who tells what this version can't read takes part in the group, and is given nothing.
 *
 * @param before The instances of the generation before, as far as the leader knows them.
 */
export function shareOut(
  members: readonly Member[],
  before: ReadonlySet<string>,
): ReadonlyMap<string, Buffer> {
  const told = members.flatMap(({ id, told: bytes }) => {
    const readable = readableOf(bytes);
    return readable ? [{ id, told: readable }] : [];
  });
  const instances = told.map(({ told: { instance } }) => instance);
  const mayMove =
    instances.length !== before.size || instances.some((instance) => !before.has(instance));
  const assignment = assign({
    members: told.map(({ told: member }) => candidateOf(member)),
    weights: weightsOf(told.map(({ told: member }) => member)),
    mayMove,
  });
  const given = packSharedOut({
    members: told.map(({ told: { instance, name } }) => ({ instance, name })),
    accounts: new Map(
      [...assignment].flatMap(([instance, accounts]) =>
        accounts.map((account) => [account, instance] as const),
      ),
    ),
  });
  return new Map(members.map(({ id }) => [id, given]));
}

/** By instance, not by the group's ids: a member that had to join anew is still who it was. */
function candidateOf({ instance, known, held, warm }: Told): Candidate {
  return {
    id: instance,
    known: new Set(known),
    held: new Map([...held].map(([account, { generation }]) => [account, generation])),
    warm: new Set(warm),
  };
}

/** As whoever was given an account last has it. */
function weightsOf(members: readonly Told[]): ReadonlyMap<string, number> {
  const newest = new Map<string, { readonly generation: number; readonly weight: number }>();
  for (const { held } of members) {
    for (const [account, mine] of held) {
      const known = newest.get(account);
      if (!known || known.generation < mine.generation) newest.set(account, mine);
    }
  }
  return new Map([...newest].map(([account, { weight }]) => [account, weight]));
}

function readableOf(bytes: Buffer): Told | undefined {
  try {
    return unpackTold(bytes);
  } catch {
    return undefined; // of another version, which can do without accounts until all are of one
  }
}
