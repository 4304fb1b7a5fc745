import type { SchedulerLike } from 'rxjs';
import type { LedgerSideMessages } from '../account/ledger/ledger.ts';
import type { FleetLog } from './fleet-log.ts';
import { fleetMessage } from './fleet-record.ts';
import type { FleetRecord, Owner } from './fleet-record.ts';

/** Details of an account's claim, for the messages about it in the fleet's topic. */
export interface ClaimDetails {
  /** Generation in which the account was assigned to the instance. */
  readonly generation: number;
  /** Times at which instances crashed shortly after they claimed the account, in epoch ms. */
  readonly crashTimes: readonly number[];
}

/** Writes messages about accounts to the fleet's topic. Promises reject if a message can't be written. */
export interface FleetAnnouncements {
  readonly claiming: (account: string, tenure: ClaimDetails) => Promise<void>;
  readonly requestRelease: (account: string, generation: number, owner: Owner) => Promise<void>;
  readonly released: (account: string) => Promise<void>;
  readonly quarantined: (account: string) => Promise<void>;
  /**
   * Returns messages to commit in the same transactions as the account's claim and release, under the transactional id of the account's
   * ledger. `tenure` returns the claim's details and is called when the messages are written.
   */
  readonly ledgerMessages: (account: string, tenure: () => ClaimDetails) => LedgerSideMessages;
}

export interface FleetAnnouncementsOptions {
  /** Unique id of this process. */
  readonly instance: string;
  /** Human-readable name of the instance. */
  readonly name: string;
  /** Name of the fleet's topic. */
  readonly topic: string;
  readonly log: Pick<FleetLog, 'send'>;
  readonly scheduler: SchedulerLike;
}

export function fleetAnnouncements({
  instance,
  name,
  topic,
  log,
  scheduler,
}: FleetAnnouncementsOptions): FleetAnnouncements {
  const own = (account: string) => ({
    ...{ account, instance, name },
    at: new Date(scheduler.now()).toISOString(),
  });
  const claimFields = ({ generation, crashTimes }: ClaimDetails) => ({
    generation,
    losses: crashTimes.map((at) => new Date(at).toISOString()),
  });
  const say = (record: FleetRecord): Promise<void> => log.send(fleetMessage(topic, record));
  return {
    claiming: (account, tenure) => say({ type: 'takes', ...own(account), ...claimFields(tenure) }),
    requestRelease: (
      account,
      generation,
      { instance: asked, name: ofAsked, generation: since },
    ) => {
      const owner = { instance: asked, name: ofAsked, generation: since };
      return say({ type: 'asks', ...own(account), generation, owner });
    },
    released: (account) => say({ type: 'released', ...own(account) }),
    quarantined: (account) => say({ type: 'quarantined', ...own(account) }),
    ledgerMessages: (account, tenure) => ({
      claimMessages: () => [
        fleetMessage(topic, { type: 'runs', ...own(account), ...claimFields(tenure()) }),
      ],
      releaseMessages: () => [fleetMessage(topic, { type: 'released', ...own(account) })],
    }),
  };
}
