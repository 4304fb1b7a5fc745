import type { ConfigWith } from '../config/config.ts';
import { RULES } from '../resources/resources.ts';
import { topicNames } from '../schemas/events/topics.ts';
import type { Links } from '../sinks/client/open-kafka.ts';
import { kafkaTransactionalLog } from '../sinks/kafka-transactional-log.ts';
import { openStore } from '../state/store.ts';
import { warmUp } from './checkpoint/warm-up.ts';
import { taskId } from './task.ts';
import { transactionalIds } from './transactional-id.ts';

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
  const { account, topics, resources, stateDir } = config;
  const names = topicNames(topics.prefix, topics.sharedPrefix);
  const log = kafkaTransactionalLog(links, { partitions: new Map() }); // nothing is written
  const store = openStore(stateDir);
  try {
    for (const resource of resources) {
      signal.throwIfAborted();
      const task = taskId(account, resource);
      await warmUp({
        ...{ log, instance, signal, registry: links.registry, rules: RULES[resource] },
        place: {
          task,
          topic: names.records(resource),
          cursorTopic: names.cursors,
          isShared: true,
          ...transactionalIds(topics.sharedPrefix, account, resource),
        },
        store: store.task(task),
      });
    }
  } finally {
    await store.close();
  }
}
