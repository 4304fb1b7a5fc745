// @ts-check
// Topics: made, and thrown away when they are no longer needed.
import { Kafka, logLevel } from 'kafkajs';

/** Of each topic, as the service makes them. */
export const PARTITIONS = 6;

/** @param {Pick<import('./measure.mjs').Context, 'services'>} context */
export const connectKafka = ({ services }) =>
  new Kafka({ brokers: services.brokers, logLevel: logLevel.NOTHING });

/**
 * @template T
 * @param {Pick<import('./measure.mjs').Context, 'services'>} context
 * @param {(admin: import('kafkajs').Admin) => Promise<T>} work
 */
async function withAdmin(context, work) {
  const admin = connectKafka(context).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/** @param {Pick<import('./measure.mjs').Context, 'services'>} context @param {string} topic */
export const createTopic = (context, topic) =>
  withAdmin(context, (admin) =>
    admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: PARTITIONS }] }),
  );

/**
 * What the runs before have written must not fill the disk.
 *
 * @param {Pick<import('./measure.mjs').Context, 'services'>} context
 * @param {string} prefix
 */
export const deleteTopics = (context, prefix) =>
  withAdmin(context, async (admin) => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (topics.length > 0) await admin.deleteTopics({ topics });
  });
