import type { SchedulerLike } from 'rxjs';
import type { Generation, Member } from '../kafka/membership/membership.ts';
import { assign, isImbalanced } from './assignment.ts';
import type { AssignmentOptions } from './assignment.ts';
import { decodeIfPossible, packFleetAssignment, unpackMemberMetadata } from './member-metadata.ts';
import type { FleetAssignment, MemberMetadata, OwnedAccount } from './member-metadata.ts';
import type { Report } from './report.ts';

/**
 * How long loads must be uneven before accounts move, in ms. Shorter: a passing change of load moves accounts. Longer: a member stays
 * overloaded.
 */
const IMBALANCE_GRACE_MS = 600_000;

/**
 * Assigns accounts and triggers rebalances while Kafka has elected this instance group leader. Accounts move when members join or leave,
 * and when the members' loads have been uneven for too long.
 */
export class Leader {
  readonly #scheduler: SchedulerLike;
  /**
   * Metadata of the members to which this instance last assigned accounts; `configured` contains only the accounts that may be served.
   * Empty while another member leads.
   */
  #members: readonly MemberMetadata[] = [];
  #assignment: FleetAssignment | undefined;
  /** Number of the newest generation that this instance took part in. */
  #newest = 0;
  #unevenSince: number | undefined;
  /**
   * Whether the loads of the fleet's members have been uneven for too long, so that accounts should move. Cleared when a generation begins.
   */
  #isDue = false;

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
  }

  /**
   * Assigns the accounts to the members. Returns the encoded {@link FleetAssignment}, the same for every member, by Kafka's member id.
   * Accounts move to even out the loads only if the set of instances has changed, or if loads have been uneven for too long.
   */
  assign(members: readonly Member[]): ReadonlyMap<string, Buffer> {
    // A member whose metadata this version can't decode stays in the group but is assigned no accounts.
    const all = members.flatMap(({ metadata }) => decodeIfPossible(unpackMemberMetadata, metadata));
    const apiKeyConflicts = apiKeyConflictsOf(all);
    this.#members = all.map((member) => ({
      ...member,
      configured: member.configured.filter((account) => !apiKeyConflicts.has(account)),
    }));
    const mayMove = this.#isDue || this.#hasNewMembers();
    const assignment = assign({ ...candidatesOf(this.#members), mayMove });
    const accounts = [...assignment].flatMap(([instance, assigned]) =>
      assigned.map((account) => [account, instance] as const),
    );
    const packed = packFleetAssignment({
      members: this.#members,
      accounts: new Map(accounts),
      apiKeyConflicts,
    });
    return new Map(members.map(({ id }) => [id, packed]));
  }

  /**
   * Whether the set of instances differs from the previous generation's. Also true if this instance missed a generation and does not know
   * the previous members.
   */
  #hasNewMembers(): boolean {
    const generations = this.#members.flatMap(({ owned }) => [...owned.values()]);
    // An account was assigned in a generation that this instance has not seen.
    if (generations.some(({ generation }) => generation > this.#newest)) return true;
    const before = new Set(this.#assignment?.members.map(({ instance }) => instance));
    return (
      this.#members.length !== before.size ||
      this.#members.some(({ instance }) => !before.has(instance))
    );
  }

  /**
   * Called by every member when a generation of the fleet's Kafka group begins, whether or not it leads the group. Stores the generation's
   * assignment.
   */
  generationStarted({ isLeader, number }: Generation, assignment: FleetAssignment): void {
    this.#assignment = assignment;
    this.#newest = number;
    this.#isDue = false;
    if (!isLeader) this.#members = [];
  }

  /**
   * Whether the leader should start a rebalance, because the loads in the members' reports have been uneven for too long. Must be called at
   * regular intervals. After a call that returns true, accounts may move in the next {@link Leader.assign}.
   */
  isRebalanceDue(reports: ReadonlyMap<string, Report>): boolean {
    if (!isImbalanced(candidatesOf(this.#presentMetadata(reports)))) {
      this.#unevenSince = undefined;
      return false;
    }
    this.#unevenSince ??= this.#scheduler.now();
    if (this.#scheduler.now() < this.#unevenSince + IMBALANCE_GRACE_MS) return false;
    this.#unevenSince = undefined;
    this.#isDue = true;
    return true;
  }

  /**
   * Returns the members' metadata with up-to-date `owned`: the accounts assigned to each member now, with their loads in the newest
   * reports.
   */
  #presentMetadata(reports: ReadonlyMap<string, Report>): readonly MemberMetadata[] {
    const before = weightsOf(this.#members);
    return this.#members.map((member) => {
      const accounts = reports.get(member.instance)?.accounts ?? {};
      const owned = [...(this.#assignment?.accounts ?? [])]
        .filter(([, to]) => to === member.instance)
        .map(([account]) => {
          const weight = accounts[account]?.weight ?? before.get(account) ?? 1;
          return [account, { generation: 0, weight }] as const;
        });
      return { ...member, owned: new Map(owned) };
    });
  }
}

/** Converts the members' metadata to the input of {@link assign}. */
function candidatesOf(members: readonly MemberMetadata[]): Omit<AssignmentOptions, 'mayMove'> {
  // The id is the instance id: the member id in Kafka's group changes when the instance has to join again.
  const candidates = members.map(({ instance, configured, owned, warm }) => ({
    id: instance,
    configured: new Set(configured),
    ownedSince: new Map([...owned].map(([account, { generation }]) => [account, generation])),
    warm: new Set(warm),
  }));
  return { members: candidates, weights: weightsOf(members) };
}

/** Returns the load of each account, as reported by the member to which the account was assigned in the newest generation. */
function weightsOf(members: readonly MemberMetadata[]): ReadonlyMap<string, number> {
  const newest = new Map<string, OwnedAccount>();
  for (const [account, mine] of members.flatMap(({ owned }) => [...owned])) {
    const known = newest.get(account);
    if (!known || known.generation < mine.generation) newest.set(account, mine);
  }
  return new Map([...newest].map(([account, { weight }]) => [account, weight]));
}

/**
 * Returns the accounts that must not be served because another account with the same API key is served, each mapped to that account. Both
 * together would exceed the API key's quota. Of the accounts with the same API key, this one is served:
 *
 * - if a leaving instance still serves one of them: that account;
 * - otherwise, if one of them is assigned to a member: that account;
 * - otherwise: the first account by name.
 */
function apiKeyConflictsOf(members: readonly MemberMetadata[]): ReadonlyMap<string, string> {
  // After a file was renamed, instances see the new name at different times.
  const byKey = new Map<string, Set<string>>();
  for (const [account, key] of members.flatMap(({ apiKeyDigests }) => [...apiKeyDigests]))
    byKey.set(key, (byKey.get(key) ?? new Set()).add(account));
  const isLeft = (account: string) =>
    members.some(
      ({ configured, apiKeyDigests }) =>
        apiKeyDigests.has(account) && !configured.includes(account),
    );
  const isHeld = (account: string) => members.some(({ owned }) => owned.has(account));
  return new Map(
    [...byKey.values()].flatMap((accounts) => {
      const byName = [...accounts].sort();
      const served = byName.find(isLeft) ?? byName.find(isHeld) ?? byName[0]!;
      return byName.filter((each) => each !== served).map((each) => [each, served] as const);
    }),
  );
}
