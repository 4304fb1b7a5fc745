import type { ConfigWith } from '../config/config.ts';
import { RULES } from '../resources/resources.ts';
import { topicNames } from '../schemas/events/topics.ts';
import type { Links } from '../sinks/client/open-kafka.ts';
import { kafkaTransactionalLog } from '../sinks/client/open-kafka.ts';
import { openStore } from '../state/store.ts';
import { warmUp } from './checkpoint/warm-up.ts';
import { taskPlace } from './task-place.ts';

export interface WarmAccountOptions {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly links: Links;
  /** Names this process. */
  readonly instance: string;
  readonly signal: AbortSignal;
}

/** {@link warmUp} of all lists of an account, one after the other; in its state folder, which nobody else has open. */
export async function warmAccount(options: WarmAccountOptions): Promise<void> {
  const { config, links, instance, signal } = options;
  const { topics, resources, stateDir } = config;
  const names = topicNames(topics.prefix, topics.sharedPrefix);
  const log = kafkaTransactionalLog(links, { partitions: new Map() }); // nothing is written
  const store = openStore(stateDir);
  try {
    for (const resource of resources) {
      signal.throwIfAborted();
      const place = taskPlace(config, resource, names);
      await warmUp({
        ...{ log, instance, signal, registry: links.registry, rules: RULES[resource] },
        place,
        store: store.task(place.task),
      });
    }
  } finally {
    await store.close();
  }
}
