// @ts-check
// How fast replay is beside what it stands on, and whether memory stays flat: a million events, read by
// plain kafkajs without decoding anything, then by replay, from several places, each checked whole.
//
//     npm run bench:replay            # EVENTS=100000 for a quick one
import { lastValueFrom } from 'rxjs';
import { replay, topicsUnder } from 'cellarstream/consume';
import { createRegistry, frame, orderStatusChangeCodec } from 'cellarstream/schemas';
import { startServices } from '../dist/devstack/start-services.js';
import { connectKafka, createTopic, PARTITIONS } from './support/topics.mjs';

const EVENTS = Number(process.env.EVENTS ?? 1_000_000);
const BATCH = 2_000;
const NOON = Date.UTC(2026, 0, 31, 12);

const services = await startServices({ onProgress: (line) => console.error(line) });
const kafka = connectKafka({ services });
const registry = createRegistry({ url: services.registryUrl });
const topic = topicsUnder('bench').orderStatusChanges;

/** Event n is the (n / 6)th of partition n % 6, published n ms after noon. */
async function write() {
  // What is published here is months old: no retention is to take it away.
  const configEntries = [{ name: 'retention.ms', value: '-1' }];
  await createTopic(kafka, { topic: topic.name, configEntries });
  const schemaId = await registry.register(`${topic.name}-value`, orderStatusChangeCodec.schema);
  const producer = kafka.producer({
    allowAutoTopicCreation: false,
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  for (let first = 0; first < EVENTS; first += BATCH) {
    const numbers = Array.from(
      { length: Math.min(BATCH, EVENTS - first) },
      (_, nth) => first + nth,
    );
    await producer.send({
      topic: topic.name,
      messages: numbers.map((number) => ({
        key: String(number),
        value: frame(schemaId, orderStatusChangeCodec.encode(change(number))),
        partition: number % PARTITIONS,
        timestamp: String(NOON + number),
      })),
    });
  }
  await producer.disconnect();
}

/** @param {number} number */
function change(number) {
  return {
    event_id: `event-${number}`,
    order_number: number,
    subject: /** @type {const} */ ('fulfillment'),
    subject_id: `F-${number}`,
    field: 'shipment_status',
    from: 'Label Created',
    to: 'Shipped',
    changed_at: NOON + number,
    observed_at: NOON + number + 500,
  };
}

/** The limit: the same bytes through kafkajs, and nothing done with them. */
async function plain() {
  const consumer = kafka.consumer({ groupId: 'bench-plain', allowAutoTopicCreation: false });
  await consumer.connect();
  await consumer.subscribe({ topic: topic.name, fromBeginning: true });
  let count = 0;
  const began = performance.now();
  await new Promise((resolve, reject) => {
    consumer
      .run({
        autoCommit: false,
        eachBatch: ({ batch }) => {
          count += batch.messages.length;
          if (count === EVENTS) resolve(undefined);
          return Promise.resolve();
        },
      })
      .catch(reject);
  });
  const seconds = (performance.now() - began) / 1_000;
  await consumer.disconnect();
  return EVENTS / seconds;
}

/**
 * Reads, and holds every event against what was written.
 *
 * @param {string} what
 * @param {Partial<import('cellarstream/consume').ReplayOptions<import('cellarstream/schemas').OrderStatusChange>>} options
 * @param {number} from The number of the first event.
 */
async function measured(what, options, from) {
  const first = (/** @type {number} */ partition) =>
    partition + PARTITIONS * Math.ceil((from - partition) / PARTITIONS);
  const next = new Map(Array.from({ length: PARTITIONS }, (_, nth) => [nth, first(nth)]));
  let count = 0;
  let most = 0;
  let least = Infinity;
  const began = performance.now();
  await lastValueFrom(
    replay({ kafka, registry, topic, ...options }, ({ partition, key, value }) => {
      const number = next.get(partition) ?? NaN;
      next.set(partition, number + PARTITIONS);
      const { event_id, order_number, subject_id, observed_at } = value ?? {};
      const isRight =
        key === String(number) &&
        event_id === `event-${number}` &&
        order_number === number &&
        subject_id === `F-${number}` &&
        observed_at === NOON + number + 500;
      if (!isRight) throw new Error(`${what}: expected event ${number}, got ${key}`);
      if (++count % 50_000 === 0) {
        const { rss } = process.memoryUsage();
        if (count > 200_000) least = Math.min(least, rss);
        most = Math.max(most, rss);
      }
      return [];
    }),
    { defaultValue: undefined },
  );
  const seconds = (performance.now() - began) / 1_000;
  if (count !== EVENTS - from)
    throw new Error(`${what}: ${count} events instead of ${EVENTS - from}`);
  return { what, events: count, perSecond: count / seconds, most, least };
}

try {
  const began = performance.now();
  await write();
  console.log(`${EVENTS} events written in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
  const limit = await plain();
  console.log(`plain kafkajs, nothing decoded: ${limit.toFixed(0)} events/s`);
  const middle = Math.floor(EVENTS / 2 / PARTITIONS) * PARTITIONS;
  const offset = String(middle / PARTITIONS);
  const from = Object.fromEntries(
    Array.from({ length: PARTITIONS }, (_, partition) => [partition, offset]),
  );
  for (const run of [
    () => measured('from the beginning', {}, 0),
    () => measured('the same, by time', { order: 'time' }, 0),
    () =>
      measured(
        'from the middle, by offset',
        { from },
        Math.floor(middle / PARTITIONS) * PARTITIONS,
      ),
    () => measured('from the middle, by instant', { from: new Date(NOON + middle) }, middle),
  ]) {
    const { what, events, perSecond, most, least } = await run();
    const memory = `RSS ${(least / 2 ** 20).toFixed(0)} to ${(most / 2 ** 20).toFixed(0)} MB`;
    const ratio = `${((100 * perSecond) / limit).toFixed(0)} % of it`;
    console.log(`${what}: ${events} events, ${perSecond.toFixed(0)} events/s, ${ratio}, ${memory}`);
  }
} finally {
  await registry.close();
  await services.stop();
}
