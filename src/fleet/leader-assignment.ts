import type { Member } from '../kafka/membership/membership.ts';
import { assign } from './assignment.ts';
import type { Candidate } from './assignment.ts';
import { packFleetAssignment, unpackMemberMetadata } from './member-metadata.ts';
import type { MemberMetadata } from './member-metadata.ts';
import { apiKeyConflictsOf, withoutApiKeyConflicts } from './api-key-conflicts.ts';

/**
 * Computes the assignment that the leader sends to each member, by member id. Accounts move only if the set of instances differs from the
 * previous generation's, or if loads have been uneven for too long.
 *
 * @param before The previous generation: the instance ids of its members (none if the leader does not know them), and whether the loads
 * have been uneven for too long.
 */
export function leaderAssignment(
  members: readonly Member[],
  before: { readonly instances: ReadonlySet<string>; readonly isImbalanced: boolean },
): ReadonlyMap<string, Buffer> {
  const all = readableMetadata(members);
  const apiKeyConflicts = apiKeyConflictsOf(all);
  const servable = withoutApiKeyConflicts(all, apiKeyConflicts);
  const isOther =
    servable.length !== before.instances.size ||
    servable.some(({ instance }) => !before.instances.has(instance));
  const assignment = assign({
    members: servable.map(candidateOf),
    weights: weightsOf(servable),
    mayMove: isOther || before.isImbalanced,
  });
  const packed = packFleetAssignment({
    members: servable,
    accounts: new Map(
      [...assignment].flatMap(([instance, accounts]) =>
        accounts.map((account) => [account, instance] as const),
      ),
    ),
    apiKeyConflicts,
  });
  return new Map(members.map(({ id }) => [id, packed]));
}

/**
 * Converts a member's metadata for the assignment. The candidate's id is the instance id, because the member id in Kafka's group changes
 * when the instance has to join again.
 */
export function candidateOf({ instance, configured, owned, warm }: MemberMetadata): Candidate {
  return {
    id: instance,
    configured: new Set(configured),
    ownedSince: new Map([...owned].map(([account, { generation }]) => [account, generation])),
    warm: new Set(warm),
  };
}

/** Returns the load of each account, as reported by the member to which the account was assigned in the newest generation. */
export function weightsOf(members: readonly MemberMetadata[]): ReadonlyMap<string, number> {
  const newest = new Map<string, { readonly generation: number; readonly weight: number }>();
  for (const { owned } of members) {
    for (const [account, mine] of owned) {
      const known = newest.get(account);
      if (!known || known.generation < mine.generation) newest.set(account, mine);
    }
  }
  return new Map([...newest].map(([account, { weight }]) => [account, weight]));
}

/** Returns the members' metadata without accounts that must not be served because another account has the same API key. */
export function servableMetadata(members: readonly Member[]): readonly MemberMetadata[] {
  const all = readableMetadata(members);
  return withoutApiKeyConflicts(all, apiKeyConflictsOf(all));
}

/**
 * Decodes the members' metadata. A member whose metadata this version can't decode is left out: it stays in the group but is assigned no
 * accounts.
 */
function readableMetadata(members: readonly Member[]): readonly MemberMetadata[] {
  return members.flatMap(({ metadata }) => {
    try {
      return [unpackMemberMetadata(metadata)];
    } catch {
      return []; // written by another version: it gets no accounts until all instances run one version
    }
  });
}
