import type { Batch, Consumer, Kafka } from 'kafkajs';
import { defer, firstValueFrom, lastValueFrom, retry, takeUntil, throwError, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { isRetryable } from '../errors.ts';
import { kafkaError } from './kafka-error.ts';
import { crashOf } from './kafka-group-start.ts';

export interface ReaderMemberOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /** A group of nobody else's. */
  readonly groupId: string;
  /** Waits for a Kafka that has been there and goes away; else that is an error. */
  readonly isPatient: boolean;
  /** How long a broker may wait for something new, ms. */
  readonly mostWaitMs: number;
  /** Its first value ends it. It must replay that value. */
  readonly leave$: Observable<unknown>;
  /** The group was joined: kafkajs knows of no position, nor of what is paused. */
  readonly onJoin: (consumer: Consumer) => void;
  /** What was given to `onJoin` is of no more use: it throws at whatever is asked of it. */
  readonly onLeft: () => void;
  readonly onBatch: (batch: Batch) => void;
  /** Everything up to this offset is behind: markers and aborted messages, too. */
  readonly onPassed: (partition: number, lastOffset: string) => void;
  /** A broker has answered a fetch, of so many bytes. */
  readonly onAnswered: (broker: string, tookMs: number, bytes: number) => void;
}

/** Between two tries to reach Kafka again, ms: the first pause, which doubles, and the longest. */
const PAUSE_MS = { first: 250, most: 5_000 } as const;

/**
 * The only member of a group that commits nothing, for as long as it takes; resolves when it has left.
 * Where it is patient a Kafka that goes away is waited for, by one consumer after the other.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, when it is patient only at first; `KAFKA_REFUSED`;
 * and what `onBatch` throws.
 */
export async function readAsMember(options: ReaderMemberOptions): Promise<void> {
  const { kafka, topic, groupId, mostWaitMs, leave$, onJoin, onLeft, onBatch } = options;
  let hasConnected = false;

  const listen = (consumer: Consumer) => {
    const { GROUP_JOIN, END_BATCH_PROCESS, REQUEST, STOP } = consumer.events;
    consumer.on(GROUP_JOIN, () => onJoin(consumer));
    consumer.on(STOP, onLeft); // long before a crash comes out, perhaps
    // Of batches that hold no message only this event tells.
    consumer.on(END_BATCH_PROCESS, ({ payload: { partition, lastOffset } }) =>
      options.onPassed(partition, lastOffset),
    );
    consumer.on(REQUEST, ({ payload: { apiName, broker, duration, size } }) => {
      if (apiName === 'Fetch') options.onAnswered(broker, duration, size);
    });
  };
  const member = async (): Promise<void> => {
    const consumer = kafka.consumer({
      groupId,
      allowAutoTopicCreation: false,
      maxWaitTimeInMs: mostWaitMs,
      // Else kafkajs begins again by itself, behind a timer that stopping it does not always reach.
      retry: { retries: 5, restartOnFailure: () => Promise.resolve(false) },
    });
    const crash = crashOf(consumer);
    listen(consumer);
    let refuse!: (error: unknown) => void;
    const refused = new Promise<never>((_, reject) => (refuse = reject));
    refused.catch(() => undefined);
    try {
      await consumer.connect();
      hasConnected = true;
      await consumer.subscribe({ topic, fromBeginning: true });
      await consumer.run({
        autoCommit: false,
        eachBatch: ({ batch, ...payload }) => {
          try {
            onBatch(batch);
          } catch (error) {
            refuse(error); // kafkajs would try it again for ever
            payload.pause();
          }
          return Promise.resolve();
        },
      });
      await Promise.race([crash, refused, firstValueFrom(leave$)]);
    } catch (error) {
      throw kafkaError(error);
    } finally {
      onLeft();
      await consumer.disconnect();
    }
  };
  const { first, most } = PAUSE_MS;
  const members$ = defer(member).pipe(
    retry({
      delay: (error: unknown, count) =>
        options.isPatient && hasConnected && isRetryable(error)
          ? timer(Math.min(most, first * 2 ** (count - 1))).pipe(takeUntil(leave$))
          : throwError(() => error),
    }),
  );
  await lastValueFrom(members$, { defaultValue: undefined });
}
