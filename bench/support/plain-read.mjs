// @ts-check
// A topic read by plain kafkajs, from its beginning to its end as of now, and nothing decoded: how fast
// that is, and how many bytes it takes.
import { randomUUID } from 'node:crypto';
import { withAdmin } from './with-admin.mjs';
import { now } from './clock.mjs';
import { connectKafka } from './topics.mjs';

/** Kafka's API to fetch. */
const FETCH = 1;

/**
 * @typedef {object} PlainRead
 * @property {number} events
 * @property {number} perSecond Events, from the time that the reader has its partitions.
 * @property {number} wireBytes Of all answers to fetches: batches as the broker has them, compressed.
 * @property {number} rawBytes Of keys and values, unpacked.
 */

/**
 * @param {Pick<import('./measure.mjs').Context, 'services'>} context
 * @param {string} topic
 * @returns {Promise<PlainRead>}
 */
export async function plainRead(context, topic) {
  const kafka = connectKafka(context);
  const ends = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic));
  const left = new Map(
    ends
      .filter(({ high, low }) => high !== low)
      .map(({ partition, high }) => [partition, BigInt(high)]),
  );
  if (left.size === 0) return { events: 0, perSecond: NaN, wireBytes: 0, rawBytes: 0 };

  const consumer = kafka.consumer({
    groupId: `bench-plain-${randomUUID()}`,
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: 250, // disconnecting waits for the fetch under way
  });
  let began = now();
  let ended = began;
  let events = 0;
  let rawBytes = 0;
  let wireBytes = 0;
  consumer.on(consumer.events.GROUP_JOIN, () => (began = now()));
  consumer.on(consumer.events.REQUEST, ({ payload }) => {
    if (payload.apiKey === FETCH) wireBytes += payload.size;
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (!payload.restart) reject(payload.error);
    });
    // Told of batches too in which there is nothing but the marker of a transaction.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      const end = left.get(payload.partition);
      if (end !== undefined && BigInt(payload.lastOffset) + 1n >= end)
        left.delete(payload.partition);
      if (left.size > 0) return;
      ended = now();
      resolve(undefined);
    });
    consumer
      .run({
        autoCommit: false,
        eachBatch: ({ batch }) => {
          events += batch.messages.length;
          for (const { key, value } of batch.messages) {
            rawBytes += (key?.length ?? 0) + (value?.length ?? 0);
          }
          return Promise.resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return { events, perSecond: events / ((ended - began) / 1_000), wireBytes, rawBytes };
}
