import { exhaustMap, ignoreElements, interval } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { LedgerSideMessages } from '../account/ledger/ledger.ts';
import type { FleetLog } from './fleet-log.ts';
import { fleetMessage } from './fleet-record.ts';
import type { FleetRecord, Owner } from './fleet-record.ts';
import { isReportable, reportMessage } from './report.ts';
import type { Report } from './report.ts';

export interface ClaimDetails {
  /** Newest generation of the fleet's Kafka group when the message about the claim was created. */
  readonly generation: number;
  /** Times at which instances crashed shortly after they claimed the account, in epoch ms. */
  readonly crashTimes: readonly number[];
}

export interface FleetAnnouncementsOptions {
  readonly instance: string;
  /** Human-readable name of the instance. */
  readonly name: string;
  readonly topic: string;
  readonly log: FleetLog;
  readonly scheduler: SchedulerLike;
}

/** Interval at which the state of this instance's accounts is compared with the instance's last report in the fleet's topic, in ms. */
const CHECK_REPORT_EVERY_MS = 15_000;

/** Writes messages about accounts, and this instance's reports, to the fleet's topic. Promises reject if a message can't be written. */
export class FleetAnnouncements {
  readonly #options: FleetAnnouncementsOptions;

  constructor(options: FleetAnnouncementsOptions) {
    this.#options = options;
  }

  claiming(account: string, claim: ClaimDetails): Promise<void> {
    return this.#send({ type: 'takes', ...this.#common(account), ...claimFields(claim) });
  }

  requestRelease(account: string, generation: number, owner: Owner): Promise<void> {
    return this.#send({ type: 'asks', ...this.#common(account), generation, owner });
  }

  /** Announces that the account is released (has no owner now) or quarantined (not served for a while, after several crashes). */
  announce(account: string, type: 'released' | 'quarantined'): Promise<void> {
    return this.#send({ type, ...this.#common(account) });
  }

  /**
   * Returns functions that create this account's messages for the fleet's topic: `runs` for the transaction of the claim, and `released`
   * for the transaction of the release. The account's ledger writes these transactions.
   *
   * @param claim Returns the details of the claim for `runs`.
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

  /**
   * Compares the accounts with this instance's last report at regular intervals, and writes a new report to the fleet's topic after a
   * notable change. The observable emits nothing.
   *
   * @param report Returns the report that describes the accounts now.
   * @param onError Called when a report can't be written. The next attempt follows at the next interval.
   */
  reporting(
    report: () => Report['accounts'],
    onError: (error: unknown) => void,
  ): Observable<never> {
    return interval(CHECK_REPORT_EVERY_MS, this.#options.scheduler).pipe(
      exhaustMap(() => this.#reportIfChanged(report).catch(onError)),
      ignoreElements(),
    );
  }

  async #reportIfChanged(report: () => Report['accounts']): Promise<void> {
    const { instance, name, topic, log } = this.#options;
    const accounts = report();
    if (!isReportable(accounts, log.reports.get(instance)?.accounts)) return;
    const common = { instance, name, at: this.#time() };
    await log.send(reportMessage(topic, { type: 'reports', ...common, accounts }));
  }

  #common(account: string) {
    const { instance, name } = this.#options;
    return { account, instance, name, at: this.#time() };
  }

  #time(): string {
    return new Date(this.#options.scheduler.now()).toISOString();
  }

  #send(record: FleetRecord): Promise<void> {
    const { topic, log } = this.#options;
    return log.send(fleetMessage(topic, record));
  }
}

function claimFields({ generation, crashTimes }: ClaimDetails) {
  return { generation, losses: crashTimes.map((at) => new Date(at).toISOString()) };
}
