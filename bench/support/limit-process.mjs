// @ts-check
// What the parts of the work cost at the least, each alone in a process of its own: started with
// `limits.mjs` for one of them.
import { Buffer } from 'node:buffer';
import { createEnvelopeCodec, createRecordCodec, frame, orderSchema } from 'cellarstream';
import { Kafka, logLevel } from 'kafkajs';
import { KafkajsBatches } from './kafkajs-batches.mjs';
import { fetchPages } from './pages.mjs';
import { costOf } from './passes.mjs';
import { PARTITIONS } from './topics.mjs';

/** @typedef {import('cellarstream').JsonObject} JsonObject */
/** @typedef {import('./limits.mjs').LimitOptions} LimitOptions */

/** As the service's events: what is around an image. */
const FACTS = {
  op: /** @type {const} */ ('r'),
  ts_ms: Date.UTC(2026, 0, 31, 12),
  changed: [],
  source: {
    connector: 'cellarstream',
    version: '0.1.0',
    name: 'default',
    resource: 'orders',
    ts_ms: Date.UTC(2026, 0, 31, 11),
    snapshot: /** @type {const} */ ('true'),
    sequence: 1,
  },
};

/** @param {string} text */
const parsed = (text) => /** @type {{ data: JsonObject[] }} */ (JSON.parse(text)).data;

/** @param {readonly string[]} pages */
const recordsOf = (pages) => pages.flatMap(parsed);

/** @param {readonly string[]} pages */
async function parse(pages) {
  const records = recordsOf(pages).length;
  let seen = 0;
  const cost = await costOf(records, () => {
    for (const page of pages) seen += parsed(page).length;
  });
  return { ...cost, seen, bytes: Buffer.byteLength(pages.join('')) / records };
}

/** Both of avsc's ways to write; the quicker one is the limit. @param {readonly string[]} pages */
async function encode(pages) {
  const codec = createRecordCodec(orderSchema);
  const { type } = codec;
  // As avsc likes values best: made by itself.
  const values = recordsOf(pages).map(
    (record) => /** @type {unknown} */ (type.fromBuffer(codec.encode(record))),
  );
  const toBuffer = await costOf(values.length, () => {
    for (const value of values) type.toBuffer(value);
  });
  const kept = Buffer.allocUnsafe(1_048_576);
  const intoKept = await costOf(values.length, () => {
    for (const value of values) {
      if (type.encode(value, kept) < 0) throw new Error('the buffer is too small');
    }
  });
  const best = toBuffer.cpuMicros < intoKept.cpuMicros ? toBuffer : intoKept;
  return { ...best, toBufferMicros: toBuffer.cpuMicros, encodeMicros: intoKept.cpuMicros };
}

/** @param {readonly string[]} pages @param {LimitOptions} options */
async function send(pages, { brokers, topic }) {
  const images = createRecordCodec(orderSchema);
  const events = createEnvelopeCodec(orderSchema, 'orders');
  const batches = pages.map((page) =>
    recordsOf([page]).map((record, place) => ({
      key: JSON.stringify(record.order_number),
      value: frame(1, events.encode({ ...FACTS, before: null, after: images.encode(record) })),
      partition: place % PARTITIONS,
    })),
  );
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const sink = await KafkajsBatches.open(kafka, topic);
  const messages = batches.flat();
  const cost = await costOf(messages.length, async () => {
    for (const batch of batches) await sink.send(batch);
  });
  await sink.close();
  const bytes = messages.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  return { ...cost, bytes: bytes / messages.length };
}

const options = /** @type {LimitOptions} */ (JSON.parse(/** @type {string} */ (process.argv[2])));
const pages = await fetchPages(options.sandbox, options.resource, options.pages);
const result = await { parse, encode, send }[options.what](pages, options);
process.send?.({ id: 0, result });
process.on('disconnect', () => process.exit());
