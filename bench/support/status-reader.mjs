// @ts-check
// Who waits for status changes: a consumer of the topic, which sees what is committed.
import { randomUUID } from 'node:crypto';
import { orderStatusChangeCodec, unframe } from 'cellarstream/schemas';
import { now } from './clock.mjs';
import { connectKafka } from './topics.mjs';

/** @typedef {import('cellarstream/schemas').OrderStatusChange & { readonly key: string, readonly at: number }} Seen `at`: when it was there. */

/**
 * Reads status changes as they come, from now on; resolves when it has its partitions.
 *
 * @param {Pick<import('./measure.mjs').Context, 'services'>} context
 * @param {import('./scope.mjs').Scope} scope Ends it.
 * @param {string} prefix Of the topics, which are there.
 * @param {(change: Seen) => void} onSeen
 */
export async function readStatusChanges(context, scope, prefix, onSeen) {
  const consumer = connectKafka(context).consumer({
    groupId: `bench-status-${randomUUID()}`,
    allowAutoTopicCreation: false,
    readUncommitted: false,
    maxWaitTimeInMs: 500, // an answer comes as soon as there is something; ending waits for one
  });
  scope.add(() => consumer.disconnect());
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}.order-status-changes`, fromBeginning: true });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  await consumer.run({
    autoCommit: false,
    eachMessage: ({ message: { key, value } }) => {
      const at = now();
      if (key !== null && value !== null) {
        const change = orderStatusChangeCodec.decode(unframe(value).payload);
        onSeen({ ...change, key: key.toString(), at });
      }
      return Promise.resolve();
    },
  });
  await joined;
}
