import type { SchedulerLike } from 'rxjs';
import type { LedgerMessages } from '../account/ledger/ledger.ts';
import type { FleetLog } from './fleet-log.ts';
import { fleetMessage } from './fleet-record.ts';
import type { FleetRecord, Owner } from './fleet-record.ts';

/** As what an instance takes an account. */
export interface Tenure {
  /** In which the account was given to it. */
  readonly generation: number;
  /** When instances were lost that had just taken it. */
  readonly losses: readonly number[];
}

/** What an instance says of accounts in the fleet's topic. Promises reject when it can't be said. */
export interface OwnWords {
  readonly takes: (account: string, tenure: Tenure) => Promise<void>;
  readonly asks: (account: string, generation: number, owner: Owner) => Promise<void>;
  readonly released: (account: string) => Promise<void>;
  readonly quarantined: (account: string) => Promise<void>;
  /** What is said with the transactional id of its ledger: as things are by then. */
  readonly withLedger: (account: string, tenure: () => Tenure) => LedgerMessages;
}

export interface OwnWordsOptions {
  /** Names this process. */
  readonly instance: string;
  /** As people know it. */
  readonly name: string;
  /** The fleet's. */
  readonly topic: string;
  readonly log: Pick<FleetLog, 'send'>;
  readonly scheduler: SchedulerLike;
}

export function ownWords({ instance, name, topic, log, scheduler }: OwnWordsOptions): OwnWords {
  const own = (account: string) => ({
    ...{ account, instance, name },
    at: new Date(scheduler.now()).toISOString(),
  });
  const taken = ({ generation, losses }: Tenure) => ({
    generation,
    losses: losses.map((at) => new Date(at).toISOString()),
  });
  const say = (record: FleetRecord): Promise<void> => log.send(fleetMessage(topic, record));
  return {
    takes: (account, tenure) => say({ type: 'takes', ...own(account), ...taken(tenure) }),
    asks: (account, generation, { instance: asked, name: ofAsked, generation: since }) => {
      const owner = { instance: asked, name: ofAsked, generation: since };
      return say({ type: 'asks', ...own(account), generation, owner });
    },
    released: (account) => say({ type: 'released', ...own(account) }),
    quarantined: (account) => say({ type: 'quarantined', ...own(account) }),
    withLedger: (account, tenure) => ({
      claim: () => [fleetMessage(topic, { type: 'runs', ...own(account), ...taken(tenure()) })],
      settle: () => [fleetMessage(topic, { type: 'released', ...own(account) })],
    }),
  };
}
