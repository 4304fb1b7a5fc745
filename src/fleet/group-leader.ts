import type { SchedulerLike } from 'rxjs';
import type { Generation, Member } from '../kafka/membership/membership.ts';
import type { FleetAssignment, MemberMetadata } from './member-metadata.ts';
import type { Report } from './report.ts';
import { candidateOf, leaderAssignment, servableMetadata, weightsOf } from './leader-assignment.ts';
import { isImbalanced } from './imbalance.ts';

/** The part of a fleet member that acts while Kafka has elected it group leader: it assigns accounts and triggers rebalances. */
export interface Leader {
  /** Returns each member's assignment in Kafka's binary form, by member id. */
  readonly assign: (members: readonly Member[]) => ReadonlyMap<string, Buffer>;
  /** Called by every member, leader or not, when a generation of the fleet's Kafka group begins. */
  readonly generationStarted: (generation: Generation, given: FleetAssignment) => void;
  /**
   * Whether the leader should start a rebalance because the loads in the members' reports have been uneven for too long. Called
   * periodically.
   */
  readonly isRebalanceDue: (reports: ReadonlyMap<string, Report>) => boolean;
}

/**
 * How long the members' loads must be uneven before accounts move for that reason alone, in ms. Shorter: a passing load moves accounts.
 * Longer: an overloaded member keeps its load.
 */
const IMBALANCE_GRACE_MS = 600_000;

/**
 * Creates the leader logic. Accounts move when members join or leave, and when the members' loads have been too unequal for longer than
 * {@link IMBALANCE_GRACE_MS}. Loads become unequal when the weight of an account changes, for example as its initial snapshot ends.
 */
export function leader(scheduler: SchedulerLike): Leader {
  /** Metadata of the members in the last assignment that this instance computed; empty while another member leads. */
  let sharedMembers: readonly MemberMetadata[] = [];
  let assignment: FleetAssignment | undefined;
  /** Number of the newest generation that this instance took part in. */
  let newest = 0;
  let unevenSince: number | undefined;
  let isDue = false;

  /**
   * Returns the members' metadata with the accounts that they are assigned, and with the loads of those accounts from the newest reports.
   */
  const toldNow = (reports: ReadonlyMap<string, Report>): readonly MemberMetadata[] => {
    const before = weightsOf(sharedMembers);
    return sharedMembers.map((member) => {
      const accounts = reports.get(member.instance)?.accounts ?? {};
      const own = [...(assignment?.accounts ?? [])].filter(([, to]) => to === member.instance);
      const owned = own.map(([account]) => {
        const weight = accounts[account]?.weight ?? before.get(account) ?? 1;
        return [account, { generation: 0, weight }] as const;
      });
      return { ...member, owned: new Map(owned) };
    });
  };

  return {
    assign: (members) => {
      sharedMembers = servableMetadata(members);
      // After missing a generation (a network partition, for example), this instance does not know the previous members.
      const before = hasMissedGeneration(sharedMembers, newest) ? [] : (assignment?.members ?? []);
      const instances = new Set(before.map(({ instance }) => instance));
      return leaderAssignment(members, { instances, isImbalanced: isDue });
    },
    generationStarted: ({ isLeader, number }, shared) => {
      assignment = shared;
      newest = number;
      isDue = false;
      if (!isLeader) sharedMembers = [];
    },
    isRebalanceDue: (reports) => {
      const now = toldNow(reports);
      if (!isImbalanced({ members: now.map(candidateOf), weights: weightsOf(now) })) {
        unevenSince = undefined;
        return false;
      }
      unevenSince ??= scheduler.now();
      if (scheduler.now() < unevenSince + IMBALANCE_GRACE_MS) return false;
      unevenSince = undefined;
      isDue = true;
      return true;
    },
  };
}

/** Whether any member was assigned an account in a generation newer than `newest`. */
function hasMissedGeneration(members: readonly MemberMetadata[], newest: number): boolean {
  return members.some(({ owned }) =>
    [...owned.values()].some(({ generation }) => generation > newest),
  );
}
