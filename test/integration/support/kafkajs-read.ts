import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { onCrash } from '../../support/crash.ts';
import type { StoredRecord } from './stored-record.ts';

/** What kafkajs' consumer reads of what is committed in a topic, until `isAll` of what it has and nothing more comes. */
export async function kafkajsRead(
  broker: string,
  topic: string,
  isAll: (records: readonly StoredRecord[]) => boolean,
): Promise<StoredRecord[]> {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: `test-${randomUUID()}`, maxWaitTimeInMs: 250 });
  const records: StoredRecord[] = [];
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const done = new Promise<void>((resolve, reject) => {
    onCrash(consumer, reject);
    consumer.on(consumer.events.FETCH, ({ payload }) => {
      if (payload.numberOfBatches === 0 && isAll(records)) resolve();
    });
  });
  await consumer.run({
    eachBatch: ({ batch }) => {
      for (const { key, value, headers, offset, timestamp } of batch.messages) {
        records.push({
          partition: batch.partition,
          offset: Number(offset),
          timestamp: Number(timestamp),
          key,
          value,
          headers: Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)]),
        });
      }
      return Promise.resolve();
    },
  });
  try {
    await done;
  } finally {
    await consumer.disconnect();
  }
  return records;
}
