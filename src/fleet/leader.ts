import type { SchedulerLike } from 'rxjs';
import type { Generation, Member } from '../sinks/membership/membership.ts';
import type { SharedOut, Told } from './member-data.ts';
import type { Report } from './report.ts';
import { candidateOf, shareOut, toldBy, weightsOf } from './share-out.ts';
import { isUneven } from './unevenness.ts';

/** The leader's part in the group; what another member makes of it is asked of nobody. */
export interface Leader {
  /** What each member is given. */
  readonly share: (members: readonly Member[]) => ReadonlyMap<string, Buffer>;
  /** A generation has begun. */
  readonly begin: (generation: Generation, given: SharedOut) => void;
  /** Whether the group is to be shared out anew, by what members have told since. To be asked now and then. */
  readonly isDue: (reports: ReadonlyMap<string, Report>) => boolean;
}

/** Accounts move for their weight alone when it has been uneven for so long, and not before it has been so again, ms. */
const UNEVEN_FOR_MS = 600_000;

/**
 * Has accounts moved when members came or went, and when the members have had too different loads for ten minutes: the weight
 * of an account changes, as when its initial snapshot ends.
 */
export function leader(scheduler: SchedulerLike): Leader {
  /** What members told as they were shared out last; nothing where another one leads. */
  let told: readonly Told[] = [];
  let given: SharedOut | undefined;
  /** The newest generation that this instance took part in. */
  let newest = 0;
  let unevenSince: number | undefined;
  let isDue = false;

  /** As they are now: with what each was given, at what that weighs since. */
  const toldNow = (reports: ReadonlyMap<string, Report>): readonly Told[] => {
    const before = weightsOf(told);
    return told.map((member) => {
      const accounts = reports.get(member.instance)?.accounts ?? {};
      const own = [...(given?.accounts ?? [])].filter(([, to]) => to === member.instance);
      const held = own.map(([account]) => {
        const weight = accounts[account]?.weight ?? before.get(account) ?? 1;
        return [account, { generation: 0, weight }] as const;
      });
      return { ...member, held: new Map(held) };
    });
  };

  return {
    share: (members) => {
      told = toldBy(members);
      // Of a generation that it missed, as one that was cut off does, it knows no members.
      const before = hasMissed(told, newest) ? [] : (given?.members ?? []);
      const instances = new Set(before.map(({ instance }) => instance));
      return shareOut(members, { instances, isUneven: isDue });
    },
    begin: ({ isLeader, number }, shared) => {
      given = shared;
      newest = number;
      isDue = false;
      if (!isLeader) told = [];
    },
    isDue: (reports) => {
      const now = toldNow(reports);
      if (!isUneven({ members: now.map(candidateOf), weights: weightsOf(now) })) {
        unevenSince = undefined;
        return false;
      }
      unevenSince ??= scheduler.now();
      if (scheduler.now() < unevenSince + UNEVEN_FOR_MS) return false;
      unevenSince = undefined;
      isDue = true;
      return true;
    },
  };
}

/** Whether accounts were given in a later generation than this. */
function hasMissed(told: readonly Told[], newest: number): boolean {
  return told.some(({ held }) => [...held.values()].some(({ generation }) => generation > newest));
}
