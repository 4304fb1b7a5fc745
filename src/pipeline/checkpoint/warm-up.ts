import { valueSubject } from '../../schemas/events/topics.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import type { ListDescription } from '../../description/description.ts';
import type { TaskStore } from '../../state/store.ts';
import { openSchemaEvolution } from '../codec/schema-evolution.ts';
import { readCursor } from './task-claim.ts';
import type { TaskLog } from './task-claim.ts';
import { restore } from './restore.ts';

export interface WarmUpOptions extends TaskLog {
  readonly list: Pick<ListDescription, 'name' | 'namespace' | 'types'>;
  readonly registry: Registry;
  readonly store: TaskStore;
  readonly instance: string;
  /** Aborts the restore, which then throws the reason of the signal. Images that were restored before remain stored. */
  readonly signal: AbortSignal;
}

/**
 * Restores a task's images into the store while another process still owns the task, so that little is left to restore when the task is
 * claimed. Writes nothing to Kafka.
 */
export async function warmUp(options: WarmUpOptions): Promise<void> {
  const { log, names, list, registry, store, instance, signal } = options;
  // Read before the topic: then the topic contains every event that the cursor covers.
  const found = await readCursor(options, store.memory());
  if (found.cursor === null) return; // nothing was ever published
  const evolution = await openSchemaEvolution({
    registry,
    subject: valueSubject(names.topic),
    resource: list.name,
    namespace: list.namespace,
    described: list.types,
  });
  const readTail: typeof log.readTail = (tail) =>
    log.readTail({
      ...tail,
      onMessages: (messages) => {
        signal.throwIfAborted();
        return tail.onMessages(messages);
      },
    });
  const { memory, lostEvents } = await restore(
    {
      log: { ...log, readTail },
      names,
      store,
      instance,
      readImage: (event) => evolution.imageIn(event),
    },
    found,
  );
  // Lost events are reported and handled by the process that claims the task.
  if (!lostEvents) await store.put([], memory);
}
