// A member of a group, to be killed: writes down what it has handled, and has an effect of each event.
//
//   node group-worker.mjs '{"brokers":[...],"registryUrl":"...","prefix":"...","groupId":"...","folder":"..."}'
//
// `journal` in the folder gets a line for every event that was handled: partition, offset, key, event_id.
// `effects` gets a file for every event_id, which only the first to come can make.
import { appendFileSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { fromEvent } from 'rxjs';
import { subscribeGroup, topicsUnder } from '../../../dist/exports/consume.js';
import { createRegistry } from '../../../dist/exports/schemas.js';

/** @type {{ brokers: string[], registryUrl: string, prefix: string, groupId: string, folder: string }} */
const args = JSON.parse(process.argv[2] ?? '{}');
const { brokers, registryUrl, prefix, groupId, folder } = args;
const registry = createRegistry({ url: registryUrl });

subscribeGroup(
  {
    kafka: new Kafka({ brokers, logLevel: logLevel.NOTHING }),
    registry,
    topic: topicsUnder(prefix).orderStatusChanges,
    groupId,
    concurrency: 8,
    sessionTimeoutMs: 6_000, // the least that brokers take
    stop$: fromEvent(process, 'SIGTERM'),
  },
  async ({ partition, offset, key, value }) => {
    if (!value) throw new Error('no tombstones are expected');
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
    try {
      closeSync(openSync(join(folder, 'effects', value.event_id), 'wx'));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    appendFileSync(join(folder, 'journal'), `${partition} ${offset} ${key} ${value.event_id}\n`);
  },
).subscribe({
  error: (error) => {
    console.error(error);
    process.exit(1);
  },
  complete: () => void registry.close(),
});
