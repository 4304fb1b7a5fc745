import type { Kafka } from 'kafkajs';
import { EMPTY, lastValueFrom } from 'rxjs';
import { readBatches } from '../kafka/fetch/read-batches.ts';
import { topicBounds } from '../kafka/client/topic-facts.ts';
import type { Bounds } from '../kafka/log.ts';
import { applyRecord, parseFleetRecord } from './fleet-record.ts';
import type { AccountTopicState } from './fleet-record.ts';
import { applyReport } from './report.ts';
import type { Report } from './report.ts';

/** State of a fleet according to the messages of its topic. */
export interface FleetTopicState {
  /** State of each account, by its name. */
  readonly accounts: ReadonlyMap<string, AccountTopicState>;
  /** Newest report of each instance, by instance id. The report of a departed instance is included until it is deleted. */
  readonly reports: ReadonlyMap<string, Report>;
}

/** Builds the {@link FleetTopicState} from the messages of the fleet's topic. */
export class FleetTopicTable implements FleetTopicState {
  readonly accounts = new Map<string, AccountTopicState>();
  readonly reports = new Map<string, Report>();

  /** Applies messages of the fleet's topic in their order. Messages that this version can't decode are ignored. */
  apply(messages: readonly { readonly key: Buffer | null; readonly value: Buffer | null }[]): void {
    for (const message of messages) {
      applyReport(this.reports, message);
      const record = parseFleetRecord(message.value);
      if (record)
        this.accounts.set(record.account, applyRecord(this.accounts.get(record.account), record));
    }
  }

  /** Forgets all accounts and reports. Called when the topic was deleted and made again under the same name. */
  clear(): void {
    this.accounts.clear();
    this.reports.clear();
  }
}

const MISSING_TOPIC_ADVICE =
  '`cellarstream run` with ACCOUNTS_DIR creates it at its start: check that TOPIC_PREFIX is the prefix of the fleet';

/**
 * Returns the first and the end offset of the fleet's topic, which has one partition.
 *
 * @throws CellarstreamError `POSITION` if there is no such topic.
 */
export async function fleetLogBounds(kafka: Kafka, topic: string): Promise<Bounds> {
  return (await topicBounds({ kafka }, topic, MISSING_TOPIC_ADVICE)).get(0)!;
}

/**
 * Reads the fleet's topic once from its beginning to its current end. Like the instances of the fleet, reads uncommitted messages too.
 *
 * @throws CellarstreamError `POSITION` if there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function readFleetTopic(kafka: Kafka, topic: string): Promise<FleetTopicState> {
  const { low, high } = await fleetLogBounds(kafka, topic);
  const state = new FleetTopicTable();
  const range = { from: new Map([[0, low]]), ends: new Map([[0, high]]) };
  const read$ = readBatches(
    { kafka, topic, range, isolation: 'uncommitted', retriesOutages: false },
    ({ messages }) => {
      state.apply(messages);
      return EMPTY;
    },
  );
  await lastValueFrom(read$, { defaultValue: undefined });
  return state;
}
