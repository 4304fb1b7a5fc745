import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';

/** Of each committed cursor, oldest first, the process that wrote it. */
export async function cursorWriters(
  brokers: readonly string[],
  topic: string,
): Promise<readonly string[]> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const [end] = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const consumer = kafka.consumer({
    groupId: `test-cursors-${randomUUID()}`,
    maxWaitTimeInMs: 250,
  });
  const writers: string[] = [];
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const atEnd = new Promise<void>((resolve) => {
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      if (BigInt(payload.lastOffset) + 1n >= BigInt(end!.high)) resolve();
    });
  });
  await consumer.run({
    eachMessage: ({ message }) => {
      const { instance } = JSON.parse(message.value!.toString()) as { instance: string };
      writers.push(instance);
      return Promise.resolve();
    },
  });
  await atEnd;
  await consumer.disconnect();
  return writers;
}
