import { applyRecord, parseFleetRecord } from './fleet-record.ts';
import type { AccountTopicState } from './fleet-record.ts';
import { applyReport } from './report.ts';
import type { Report } from './report.ts';

/** State of a fleet according to the messages of its topic. */
export interface FleetTopicState {
  /** State of each account, by its name. */
  readonly accounts: ReadonlyMap<string, AccountTopicState>;
  /** Newest report of each instance, by instance id; departed instances are included until their report is deleted. */
  readonly reports: ReadonlyMap<string, Report>;
}

/** Builds up the {@link FleetTopicState} from the messages of the fleet's topic. */
export class FleetTopicTable implements FleetTopicState {
  readonly accounts = new Map<string, AccountTopicState>();
  readonly reports = new Map<string, Report>();

  /** Applies messages of the fleet's topic in order. Messages that this version does not understand are ignored. */
  apply(messages: readonly { readonly key: Buffer | null; readonly value: Buffer | null }[]): void {
    for (const message of messages) {
      applyReport(this.reports, message);
      const record = parseFleetRecord(message.value);
      if (record)
        this.accounts.set(record.account, applyRecord(this.accounts.get(record.account), record));
    }
  }

  /** Empties the state, after the topic was recreated. */
  clear(): void {
    this.accounts.clear();
    this.reports.clear();
  }
}
