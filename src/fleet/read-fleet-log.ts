import type { Kafka } from 'kafkajs';
import { EMPTY, lastValueFrom } from 'rxjs';
import { readBatches } from '../sinks/fetch/read-batches.ts';
import { topicBounds } from '../sinks/client/topic-facts.ts';
import type { Bounds } from '../sinks/sink.ts';
import { HeardWords } from './fleet-words.ts';
import type { FleetWords } from './fleet-words.ts';

const RUN_FIRST =
  '`cellarstream run` with ACCOUNTS_DIR makes it when it starts; is TOPIC_PREFIX that of the fleet?';

/** Where the fleet's topic begins and ends. @throws CellarstreamError `POSITION` where there is none. */
export async function fleetLogBounds(kafka: Kafka, topic: string): Promise<Bounds> {
  return (await topicBounds({ kafka }, topic, RUN_FIRST)).get(0)!;
}

/**
 * What the fleet's topic says, as of now: read once, to the end of the log, as instances read it.
 *
 * @throws CellarstreamError `POSITION` where there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function readFleetLog(kafka: Kafka, topic: string): Promise<FleetWords> {
  const { low, high } = await fleetLogBounds(kafka, topic);
  const heard = new HeardWords();
  const range = { from: new Map([[0, low]]), ends: new Map([[0, high]]) };
  const read$ = readBatches(
    { kafka, topic, range, isolation: 'uncommitted', isPatient: false },
    ({ messages }) => {
      heard.hear(messages);
      return EMPTY;
    },
  );
  await lastValueFrom(read$, { defaultValue: undefined });
  return heard;
}
