import type { ConfigWith } from '../config/config.ts';
import { listNamed } from '../description/description.ts';
import { topicNames } from '../schemas/events/topics.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import { kafkaTransactionalLog } from '../sinks/open-kafka.ts';
import { openStore } from '../state/store.ts';
import { warmUp } from './checkpoint/warm-up.ts';
import { taskNames } from './task-names.ts';

/**
 * Restores the images (last published records) of an account's lists from Kafka, one list after another, while another process may own the
 * account. No other process may have the account's state folder open.
 */
export async function warmAccount(options: {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly clients: KafkaClients;
  readonly instance: string;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { config, clients, instance, signal } = options;
  const { topics, resources, stateDir } = config;
  const names = topicNames(topics.prefix, topics.sharedPrefix);
  const log = kafkaTransactionalLog(clients, { partitions: new Map() }); // nothing is written
  const store = openStore(stateDir);
  try {
    for (const resource of resources) {
      signal.throwIfAborted();
      const place = taskNames(config, resource, names);
      await warmUp({
        ...{
          log,
          instance,
          signal,
          registry: clients.registry,
          list: listNamed(config.description, resource),
        },
        names: place,
        store: store.task(place.task),
      });
    }
  } finally {
    await store.close();
  }
}
