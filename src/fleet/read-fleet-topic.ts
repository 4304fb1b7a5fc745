import type { Kafka } from 'kafkajs';
import { EMPTY, lastValueFrom } from 'rxjs';
import { readBatches } from '../kafka/fetch/read-batches.ts';
import { topicBounds } from '../kafka/client/topic-facts.ts';
import type { Bounds } from '../kafka/log.ts';
import { FleetTopicTable } from './fleet-topic-state.ts';
import type { FleetTopicState } from './fleet-topic-state.ts';

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
 * Reads the fleet's topic once from its beginning to its current end, uncommitted messages included, as instances do.
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
