// Reads a stretch of a topic back, once: for takeovers, and for topics whose newest messages all tasks share.

import type { Kafka } from 'kafkajs';
import { catchError, lastValueFrom, EMPTY } from 'rxjs';
import type { ObservableInput } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { Tail, TailMessage, Isolation } from '../sink.ts';
import type { PartitionBatch, ReaderOptions } from './kafka-reader.ts';
import { readBatches } from './read-batches.ts';
import { offsetsSince, topicBounds } from '../client/topic-facts.ts';
import { newestByKey } from '../newest-by-key.ts';
import type { NewestByKey } from '../newest-by-key.ts';
import type { LogMessage } from './record-batches.ts';

interface TailOptions extends Tail {
  readonly kafka: Kafka;
}

interface ReadToEndOptions extends Pick<ReaderOptions, 'kafka' | 'topic' | 'range' | 'isolation'> {
  /** The next batch waits until what it gives has completed. */
  readonly onBatch: (batch: PartitionBatch) => ObservableInput<unknown>;
}

/** Whether a topic has a message that was written at this time or later, ms since the epoch. */
export async function writtenSince(kafka: Kafka, topic: string, at: number): Promise<boolean> {
  const bounds = await topicBounds({ kafka }, topic);
  const since = await offsetsSince({ kafka }, topic, at);
  return [...since].some(([partition, offset]) => offset < (bounds.get(partition)?.high ?? 0n));
}

/** What is committed, as a log has it read: @throws as {@link readToEnd}. */
export function readTail(options: TailOptions): Promise<void> {
  const { kafka, topic, from, to, onMessages } = options;
  const starts = new Map([...to.keys()].map((partition) => [partition, from.get(partition) ?? 0n]));
  return readToEnd({
    ...{ kafka, topic, range: { from: starts, ends: to } },
    onBatch: (batch) => onMessages(tailMessages(batch)),
  });
}

/**
 * Reads a topic from one set of offsets to another, and resolves when all of it has been handed over. Partitions that
 * have nothing to read are done at once; when that is all of them nothing is asked of the broker.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE` also where something of it is gone by now: whoever asks anew
 * where the topic begins and ends finds out.
 */
async function readToEnd(options: ReadToEndOptions): Promise<void> {
  const { topic, onBatch, ...reading } = options;
  // Who asked says that Kafka is away, and begins again.
  const read$ = readBatches({ topic, ...reading, isPatient: false }, onBatch);
  const refused$ = catchError((error: unknown) => {
    throw isGone(error) ? changed(topic, error) : error;
  });
  await lastValueFrom(read$.pipe(refused$), { defaultValue: undefined });
}

function isGone(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'POSITION';
}

function changed(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `${topic} was deleted, made anew or truncated while it was read back: it is read back again`,
    { cause, context: { topic } },
  );
}

function tailMessages({ partition, messages }: PartitionBatch): TailMessage[] {
  return messages.map(({ offset, key, value }) => ({ partition, offset, key, value }));
}

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
