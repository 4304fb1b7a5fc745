import type { ConfigWith } from '../config/config.ts';
import { listNamed } from '../description/description.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import { kafkaTransactionalLog } from '../sinks/open-kafka.ts';
import { openStore } from '../state/store.ts';
import { restore } from './checkpoint/restore.ts';
import type { RestoreOptions } from './checkpoint/restore.ts';
import { readCursor } from './checkpoint/task-claim.ts';
import { SchemaEvolution } from './codec/schema-evolution.ts';
import type { SchemaEvolutionOptions } from './codec/schema-evolution.ts';
import { taskNames } from './task.ts';

/**
 * Restores the images (last published records) of an account's lists from Kafka, while another process may own the account. No other
 * process may have the account's state folder open.
 */
export async function warmAccount(options: {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly clients: KafkaClients;
  readonly instance: string;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { config, clients, instance, signal } = options;
  const { topics, resources, stateDir, description } = config;
  const { registry } = clients;
  const destination = topicNames(topics.prefix, topics.sharedPrefix);
  const log = kafkaTransactionalLog(clients, { partitions: new Map() }); // nothing is written
  const images = openStore(stateDir);
  try {
    for (const resource of resources) {
      signal.throwIfAborted();
      const names = taskNames(config, resource, destination);
      const [list, store] = [listNamed(description, resource), images.task(names.task)];
      await warmUp({ log, names, list, registry, store, instance, signal });
    }
  } finally {
    await images.close();
  }
}

interface WarmUpOptions
  extends
    Pick<RestoreOptions, 'log' | 'names' | 'store' | 'instance'>,
    Pick<SchemaEvolutionOptions, 'registry' | 'list'> {
  /** Aborts the restore, which then throws the reason of the signal. Images that were restored before remain stored. */
  readonly signal: AbortSignal;
}

/**
 * Restores a list's images (last published records) into the store while another process still owns the list, so that a later claim has
 * little left to restore. Writes nothing to Kafka.
 */
export async function warmUp(options: WarmUpOptions): Promise<void> {
  const { log, names, list, registry, store, instance, signal } = options;
  // Read before the topic: then the topic contains every event that the cursor covers.
  const found = await readCursor(options, store.memory());
  if (found.cursor === null) return; // nothing was ever published
  const subject = valueSubject(names.topic);
  const evolution = await SchemaEvolution.open({ registry, subject, list });
  const readTail: typeof log.readTail = (tail) =>
    log.readTail({
      ...tail,
      onMessages: (messages) => {
        signal.throwIfAborted();
        return tail.onMessages(messages);
      },
    });
  const readImage = (event: Buffer) => evolution.imageIn(event);
  const { memory, lostEvents } = await restore(
    { log: { ...log, readTail }, names, store, instance, readImage },
    found,
  );
  // Lost events are reported and handled by the process that claims the task.
  if (!lostEvents) await store.put([], memory);
}
