// @ts-check
// What the parts of the work cost at the least: parsing, encoding and sending, each alone.
import { startChild } from './child.mjs';
import { NO_QUOTA, startSandbox } from './sandbox.mjs';
import { connectKafka, createTopic, deleteTopics } from './topics.mjs';

/** @typedef {import('./measure.mjs').Context} Context */
/** @typedef {import('./passes.mjs').Cost} Cost */

/**
 * @typedef {object} LimitOptions What the process of a limit is started with.
 * @property {'parse' | 'encode' | 'send'} what
 * @property {{ readonly url: string, readonly apiKey: string }} sandbox
 * @property {'orders' | 'wine-club-members'} resource
 * @property {number} pages
 * @property {readonly string[]} brokers
 * @property {string} topic
 */

/** Records whose cost is measured; more of them tell nothing new. */
const PAGES = { short: 5, full: 10 };

/**
 * One of them, in a process that does nothing else.
 *
 * @param {Context} context
 * @param {LimitOptions['what']} what
 * @param {LimitOptions['resource']} [resource] Default orders.
 * @returns {Promise<Cost & Readonly<Record<string, number>>>}
 */
async function limit(context, what, resource = 'orders') {
  const scope = context.scope.inner();
  const pages = context.isShort ? PAGES.short : PAGES.full;
  const topic = `${context.prefix()}.limit`;
  try {
    context.tell(`the limit: ${what} ${resource}`);
    const sandbox = await startSandbox(scope, {
      records: { [resource]: pages * 1_000 },
      quotaPerMinute: NO_QUOTA,
    });
    if (what === 'send') await createTopic(connectKafka(context), { topic });
    /** @type {LimitOptions} */
    const options = {
      what,
      sandbox: { url: sandbox.url, apiKey: sandbox.apiKey },
      resource,
      pages,
      brokers: context.services.brokers,
      topic,
    };
    const child = await startChild(scope, './limit-process.mjs', [JSON.stringify(options)]);
    const result = /** @type {Cost & Record<string, number>} */ (child.first);
    context.keep(`limit: ${what} ${resource}`, result);
    return result;
  } finally {
    await scope.close();
    if (what === 'send') await deleteTopics(context, topic);
  }
}

/** JSON.parse of pages of orders. @param {Context} context */
export const parseLimit = (context) => limit(context, 'parse');

/** JSON.parse of pages of memberships. @param {Context} context */
export const parseMembersLimit = (context) => limit(context, 'parse', 'wine-club-members');

/** avsc alone, from values as it likes them. @param {Context} context */
export const encodeLimit = (context) => limit(context, 'encode');

/** kafkajs alone, of ready bytes. @param {Context} context */
export const sendLimit = (context) => limit(context, 'send');

/** The three added up: a new record's. @param {Context} context @returns {Promise<Cost>} */
export async function newRecordLimit(context) {
  const parts = [];
  for (const part of [parseLimit, encodeLimit, sendLimit]) parts.push(await context.once(part));
  return {
    cpuMicros: parts.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0),
    wallMicros: parts.reduce((sum, { wallMicros }) => sum + wallMicros, 0),
  };
}
