import type { Kafka } from 'kafkajs';
import { EMPTY } from 'rxjs';
import { newestByKey } from '../newest-by-key.ts';
import type { NewestByKey } from '../newest-by-key.ts';
import type { Isolation } from '../sink.ts';
import { readToEnd } from './kafka-tail.ts';
import type { LogMessage } from './record-batches.ts';

/** What a process knows of topics of one partition, each as it is read once for all. */
export type NewestOfTopics = (topic: string, isolation: Isolation) => NewestByKey<LogMessage>;

export function newestOfTopics(kafka: Kafka): NewestOfTopics {
  const known = new Map<string, NewestByKey<LogMessage>>();
  return (topic, isolation) => {
    const name = `${topic} ${isolation}`;
    const found =
      known.get(name) ??
      newestByKey<LogMessage>({
        read: ({ low, high }, onMessages) =>
          readToEnd({
            ...{ kafka, topic, isolation },
            range: { from: new Map([[0, low]]), ends: new Map([[0, high]]) },
            onBatch: ({ messages }) => {
              onMessages(messages);
              return EMPTY;
            },
          }),
      });
    known.set(name, found);
    return found;
  };
}
