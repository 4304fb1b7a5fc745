import type { SchedulerLike } from 'rxjs';
import type { Generation, Member } from '../kafka/membership/membership.ts';
import type { FleetAssignment, MemberMetadata } from './member-metadata.ts';
import type { Report } from './report.ts';
import { candidateOf, leaderAssignment, servableMetadata, weightsOf } from './leader-assignment.ts';
import { isImbalanced } from './imbalance.ts';

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
  /** Metadata of the members in the last assignment that this instance computed; empty while another member leads. */
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

  /** Returns each member's assignment in Kafka's binary form, by member id. */
  assign(members: readonly Member[]): ReadonlyMap<string, Buffer> {
    this.#members = servableMetadata(members);
    // After missing a generation (a network partition, for example), this instance does not know the previous members.
    const isUnknown = hasMissedGeneration(this.#members, this.#newest);
    const before = isUnknown ? [] : (this.#assignment?.members ?? []);
    const instances = new Set(before.map(({ instance }) => instance));
    return leaderAssignment(members, { instances, isImbalanced: this.#isDue });
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

  /** Whether the leader should start a rebalance, because the loads in the members' reports have been uneven for too long. */
  isRebalanceDue(reports: ReadonlyMap<string, Report>): boolean {
    const members = this.#presentMetadata(reports);
    if (!isImbalanced({ members: members.map(candidateOf), weights: weightsOf(members) })) {
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
   * Returns the members' metadata with the accounts currently assigned to each member. The load of each account comes from the member's
   * newest report.
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
 * Whether the leader has missed a generation: a member was assigned an account in a generation newer than `newest`, the newest that the
 * leader took part in.
 */
function hasMissedGeneration(members: readonly MemberMetadata[], newest: number): boolean {
  return members.some(({ owned }) =>
    [...owned.values()].some(({ generation }) => generation > newest),
  );
}
