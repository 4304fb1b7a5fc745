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
 * The part of a fleet member that acts while Kafka has elected it group leader: it assigns accounts and triggers rebalances. Accounts move
 * when members join or leave, and when the members' loads have been too unequal for longer than {@link IMBALANCE_GRACE_MS}. Loads become
 * unequal when the weight of an account changes, for example as its initial snapshot ends.
 */
export class Leader {
  readonly #scheduler: SchedulerLike;
  /**
   * Metadata of the members in the last assignment that this instance computed. Accounts that are not served because another account has
   * the same API key are left out of `configured`. Empty while another member leads.
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
   * Assigns the accounts to the members. Returns the encoded {@link FleetAssignment}, the same for every member, by Kafka's member id. A
   * member whose metadata this version can't decode stays in the group but is assigned no accounts.
   *
   * An account stays with the member to which it was last assigned, if that member still has the account's file. It may move to even out
   * the loads only if the set of instances differs from the previous generation's, or if loads have been uneven for too long.
   */
  assign(members: readonly Member[]): ReadonlyMap<string, Buffer> {
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
   * Whether the set of instances differs from the previous generation's. Also true if this instance missed a generation (because of a
   * network partition, for example) and therefore does not know the previous members. A missed generation shows by an account that was
   * assigned to a member in a generation newer than any that this instance has seen.
   */
  #hasNewMembers(): boolean {
    const generations = this.#members.flatMap(({ owned }) => [...owned.values()]);
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
   * Whether the leader should start a rebalance. True if the loads in the members' reports have been uneven for longer than {@link
   * IMBALANCE_GRACE_MS}. That time is measured from call to call, so the leader must call this method at regular intervals.
   *
   * A call that returns true restarts the measurement, and allows accounts to move in the next {@link Leader.assign}.
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
   * Returns the members' metadata with an updated `owned`: the accounts that are assigned to each member now. The load of an account is
   * that in the member's newest report. If the report lacks the account, it is the load in the metadata; default 1.
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

/**
 * Converts the members' metadata to the input of {@link assign}. A candidate's id is the instance id, because the member id in Kafka's
 * group changes when the instance has to join again.
 */
function candidatesOf(members: readonly MemberMetadata[]): Omit<AssignmentOptions, 'mayMove'> {
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
 * Detects accounts with the same API key. If several of them were served at the same time, together they would exceed the API key's quota.
 * Such accounts exist for a while after a file was renamed, because instances see the new name at different times.
 *
 * Only one of the accounts with the same API key is served:
 *
 * - if a leaving instance still serves one of them: that account;
 * - otherwise, if one of them is assigned to a member: that account;
 * - otherwise: the first account by name.
 *
 * @returns the accounts that are not served, each mapped to the account that is served instead.
 */
function apiKeyConflictsOf(members: readonly MemberMetadata[]): ReadonlyMap<string, string> {
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
