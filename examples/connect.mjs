// @ts-check
// Where the examples find Kafka and the registry: where `npm start` has put them, unless KAFKA_BROKERS,
// SCHEMA_REGISTRY_URL and TOPIC_PREFIX say otherwise. Ends the process with one line if they aren't there.
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { fromEvent, merge } from 'rxjs';
import { describeError } from 'cellarstream';
import { topicsUnder } from 'cellarstream/consume';
import { createRegistry } from 'cellarstream/schemas';

const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX } = process.env;
const brokers = (KAFKA_BROKERS || '127.0.0.1:9092').split(',');

export const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING });
export const registry = createRegistry({
  url: SCHEMA_REGISTRY_URL || 'http://127.0.0.1:8081/apis/ccompat/v7',
});
export const topics = topicsUnder(TOPIC_PREFIX || 'wine');

/** Ctrl-C, or a SIGTERM. */
export const stop$ = merge(fromEvent(process, 'SIGINT'), fromEvent(process, 'SIGTERM'));

process.stdout.on('error', () => process.exit()); // nobody reads on, as behind `| head`

/** Ends an example: one line, exit code 1. @param {unknown} error @returns {never} */
export function failed(error) {
  console.error(describeError(error));
  process.exit(1);
}

/**
 * A folder that is still there when an example is started again; another one for another Kafka: the
 * demo's is new each time it starts, and what was kept of the last one would not fit it.
 *
 * @param {string} name
 */
export function folder(name) {
  const path = join(tmpdir(), 'cellarstream-examples', clusterId, name);
  mkdirSync(path, { recursive: true });
  return path;
}

const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry: { retries: 0 } }).admin();
const clusterId = await admin
  .connect()
  .then(async () => (await admin.describeCluster()).clusterId)
  .finally(() => admin.disconnect())
  .catch(() =>
    failed(
      `no Kafka at ${brokers.join(',')}: start the demo first, in another terminal (npm start)`,
    ),
  );
