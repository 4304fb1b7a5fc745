// Reads a range of a topic once: to restore what was committed before a claim, and for compacted topics that all tasks of a process share.

import type { Kafka } from 'kafkajs';
import { lastValueFrom, EMPTY } from 'rxjs';
import type { ObservableInput } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TailRange, Isolation } from '../log.ts';
import type { PartitionBatch } from './kafka-reader.ts';
import { readBatches } from './read-batches.ts';
import type { ReadBatchesOptions } from './read-batches.ts';
import { offsetsSince } from '../client/topic-facts.ts';
import { CompactedView } from './compacted-view.ts';
import type { LogMessage } from './record-batches.ts';

/**
 * Whether a topic has a message or a transaction marker with this timestamp or a later one, before the last stable offset. Messages of
 * aborted transactions count too. @param at Timestamp in epoch ms.
 */
export async function hasMessageSince(kafka: Kafka, topic: string, at: number): Promise<boolean> {
  return (await offsetsSince({ kafka }, topic, at)).size > 0;
}

/**
 * Reads the committed messages of a topic in a range of offsets. Resolves when all messages have been handled.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE` after an outage, or if part of the range was deleted while it was read; `KAFKA_REFUSED` or
 * `TLS_REFUSED` if no retry can succeed. A retry has to request the topic's first and end offsets again.
 */
export function readTail(options: TailRange & { readonly kafka: Kafka }): Promise<void> {
  const { kafka, topic, from, to, onMessages } = options;
  const starts = new Map([...to.keys()].map((partition) => [partition, from.get(partition) ?? 0n]));
  return readToEnd({ kafka, topic, range: { from: starts, ends: to } }, ({ partition, messages }) =>
    onMessages(messages.map(({ offset, key, value }) => ({ partition, offset, key, value }))),
  );
}

/** Reads a range of a topic's offsets. Resolves when all batches have been handled. @throws as {@link readTail}. */
async function readToEnd(
  options: Pick<ReadBatchesOptions, 'kafka' | 'topic' | 'range' | 'isolation'>,
  handle: (batch: PartitionBatch) => ObservableInput<unknown>,
): Promise<void> {
  // Outages are an error: the caller reports them and starts over.
  const read$ = readBatches({ ...options, retriesOutages: false }, handle);
  try {
    await lastValueFrom(read$, { defaultValue: undefined });
  } catch (error) {
    const isTopicChanged = error instanceof CellarstreamError && error.code === 'POSITION';
    throw isTopicChanged ? topicChangedError(options.topic, error) : error;
  }
}

function topicChangedError(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `topic ${topic} was deleted, recreated or truncated while this process read it: the process reads the topic again`,
    { cause, context: { topic } },
  );
}

/**
 * Returns the {@link CompactedView} of a topic with one partition, as a reader with this isolation sees the topic. All calls with the same
 * topic and isolation return the same view.
 */
export type CompactedTopics = (topic: string, isolation: Isolation) => CompactedView<LogMessage>;

export function compactedTopics(kafka: Kafka): CompactedTopics {
  const known = new Map<string, CompactedView<LogMessage>>();
  return (topic, isolation) => {
    const name = `${topic} ${isolation}`;
    const view =
      known.get(name) ??
      new CompactedView<LogMessage>(({ low, high }, onMessages) => {
        const range = { from: new Map([[0, low]]), ends: new Map([[0, high]]) };
        return readToEnd({ kafka, topic, isolation, range }, ({ messages }) => {
          onMessages(messages);
          return EMPTY;
        });
      });
    known.set(name, view);
    return view;
  };
}
