import { heard, parseFleetRecord } from './fleet-record.ts';
import type { AccountWord } from './fleet-record.ts';
import { hearReport } from './report.ts';
import type { Report } from './report.ts';

/** What the fleet's topic says. */
export interface FleetWords {
  /** By account. */
  readonly words: ReadonlyMap<string, AccountWord>;
  /** By instance; also of those that are gone. */
  readonly reports: ReadonlyMap<string, Report>;
}

/** The same, as it is read. */
export class HeardWords implements FleetWords {
  readonly words = new Map<string, AccountWord>();
  readonly reports = new Map<string, Report>();

  /** Takes up what messages say; what a later version says in its own way is passed over. */
  hear(messages: readonly { readonly key: Buffer | null; readonly value: Buffer | null }[]): void {
    for (const message of messages) {
      hearReport(this.reports, message);
      const record = parseFleetRecord(message.value);
      if (record) this.words.set(record.account, heard(this.words.get(record.account), record));
    }
  }

  /** The topic was made anew. */
  clear(): void {
    this.words.clear();
    this.reports.clear();
  }
}
