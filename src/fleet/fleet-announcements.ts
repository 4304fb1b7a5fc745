import type { SchedulerLike } from 'rxjs';
import type { LedgerSideMessages } from '../account/ledger/ledger.ts';
import type { FleetLog } from './fleet-log.ts';
import { fleetMessage } from './fleet-record.ts';
import type { FleetRecord, Owner } from './fleet-record.ts';

export interface ClaimDetails {
  /**
   * Generation of the fleet's Kafka group in which the account is assigned to the claiming instance: the newest at the time of the claim.
   */
  readonly generation: number;
  /** Times at which instances crashed shortly after they claimed the account, in epoch ms. */
  readonly crashTimes: readonly number[];
}

export interface FleetAnnouncementsOptions {
  readonly instance: string;
  /** Human-readable name of the instance. */
  readonly name: string;
  readonly topic: string;
  readonly log: Pick<FleetLog, 'send'>;
  readonly scheduler: SchedulerLike;
}

/** Writes messages about accounts to the fleet's topic. Promises reject if a message can't be written. */
export class FleetAnnouncements {
  readonly #options: FleetAnnouncementsOptions;

  constructor(options: FleetAnnouncementsOptions) {
    this.#options = options;
  }

  claiming(account: string, claim: ClaimDetails): Promise<void> {
    return this.#send({ type: 'takes', ...this.#common(account), ...claimFields(claim) });
  }

  requestRelease(account: string, generation: number, asked: Owner): Promise<void> {
    const { instance, name } = asked;
    const owner = { instance, name, generation: asked.generation };
    return this.#send({ type: 'asks', ...this.#common(account), generation, owner });
  }

  released(account: string): Promise<void> {
    return this.#send({ type: 'released', ...this.#common(account) });
  }

  quarantined(account: string): Promise<void> {
    return this.#send({ type: 'quarantined', ...this.#common(account) });
  }

  /**
   * Returns functions that create messages for the fleet's topic: `claimMessages` announces that the account is claimed (`runs`), and
   * `releaseMessages` that it is released (`released`). The account's ledger writes these messages in the transactions of the claim and of
   * the release.
   *
   * @param claim Called by `claimMessages`; returns the details of the claim.
   */
  ledgerMessages(account: string, claim: () => ClaimDetails): LedgerSideMessages {
    const { topic } = this.#options;
    return {
      claimMessages: () => [
        fleetMessage(topic, { type: 'runs', ...this.#common(account), ...claimFields(claim()) }),
      ],
      releaseMessages: () => [fleetMessage(topic, { type: 'released', ...this.#common(account) })],
    };
  }

  #common(account: string) {
    const { instance, name, scheduler } = this.#options;
    return { account, instance, name, at: new Date(scheduler.now()).toISOString() };
  }

  #send(record: FleetRecord): Promise<void> {
    const { topic, log } = this.#options;
    return log.send(fleetMessage(topic, record));
  }
}

function claimFields({ generation, crashTimes }: ClaimDetails) {
  return { generation, losses: crashTimes.map((at) => new Date(at).toISOString()) };
}
