// @ts-check
import { startChild } from '../support/child.mjs';
import { NO_QUOTA, startSandbox } from '../support/sandbox.mjs';
import { connectKafka, createTopic, deleteTopics } from '../support/topics.mjs';

const PAGES = 10;

/**
 * What a sink costs, a record.
 *
 * @param {import('../support/measure.mjs').Context} context
 * @param {import('../support/sink-process.mjs').SinkOptions['which']} which
 * @returns {Promise<import('../support/passes.mjs').Cost>}
 */
async function sinkCost(context, which) {
  const scope = context.scope.inner();
  const prefix = context.prefix();
  const topic = `${prefix}.${which}`;
  try {
    context.tell(`transactions of ready events: ${which}`);
    const { url, apiKey } = await startSandbox(scope, {
      records: { orders: PAGES * 1_000 },
      quotaPerMinute: NO_QUOTA,
    });
    await createTopic(connectKafka(context), { topic });
    const { brokers } = context.services;
    const options = { which, sandbox: { url, apiKey }, brokers, topic, pages: PAGES };
    const child = await startChild(scope, './sink-process.mjs', [JSON.stringify(options)]);
    return /** @type {import('../support/passes.mjs').Cost} */ (child.first);
  } finally {
    await scope.close();
    await deleteTopics(context, prefix);
  }
}

/** @type {import('../support/measure.mjs').Measure} */
export const platformatic = {
  name: 'platformatic',
  what: '@platformatic/kafka in place of kafkajs: a transaction for each 1,000 ready events',
  limit: 'the same through the sink of the service',
  form: 'named',
  figures: [
    { name: 'cpu', what: "CPU, of kafkajs'", unit: 'x', digits: 2 },
    { name: 'time', what: "time, of kafkajs'", unit: 'x', digits: 2 },
    { name: 'kafkajs', what: 'kafkajs, CPU an event', unit: 'µs', digits: 1 },
    { name: 'other', what: '@platformatic/kafka, CPU an event', unit: 'µs', digits: 1 },
  ],
  run: async (context) => {
    const other = await sinkCost(context, 'platformatic'); // first: it may not be there
    const kafkajs = await sinkCost(context, 'kafkajs');
    return {
      cpu: other.cpuMicros / kafkajs.cpuMicros,
      time: other.wallMicros / kafkajs.wallMicros,
      kafkajs: kafkajs.cpuMicros,
      other: other.cpuMicros,
    };
  },
};
