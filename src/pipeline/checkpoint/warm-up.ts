import { valueSubject } from '../../schemas/events/topics.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import type { ResourceRules } from '../../resources/resources.ts';
import type { TaskStore } from '../../state/store.ts';
import { openSchemaEvolution } from '../codec/schema-evolution.ts';
import { readCursor } from './ownership.ts';
import type { PlacedTask } from './ownership.ts';
import { restore } from './restore.ts';

export interface WarmUpOptions extends PlacedTask {
  readonly rules: Pick<ResourceRules, 'resource' | 'described'>;
  readonly registry: Registry;
  readonly store: TaskStore;
  /** Names this process. */
  readonly instance: string;
  /** Ends it early, with its reason as the error. What was read until then stays. */
  readonly signal: AbortSignal;
}

/**
 * Brings a task's store up to its topic while another process still has the task, so that little is left to be read back
 * when it is taken over. Nothing is written to Kafka.
 */
export async function warmUp(options: WarmUpOptions): Promise<void> {
  const { log, place, rules, registry, store, instance, signal } = options;
  // The cursor first: all that it tells of is in the topic by then, whatever is published meanwhile.
  const found = await readCursor(options, store.memory());
  if (found.cursor === null) return; // nothing was ever published
  const evolution = await openSchemaEvolution({
    registry,
    subject: valueSubject(place.topic),
    resource: rules.resource,
    described: rules.described,
  });
  const readTail: typeof log.readTail = (tail) =>
    log.readTail({
      ...tail,
      onMessages: (messages) => {
        signal.throwIfAborted();
        return tail.onMessages(messages);
      },
    });
  const { known, lost } = await restore(
    { log: { ...log, readTail }, place, store, instance, readImage: evolution.imageIn },
    found,
  );
  // What was lost is for whoever takes the task over to say, and to see to.
  if (!lost) await store.put([], known);
}
