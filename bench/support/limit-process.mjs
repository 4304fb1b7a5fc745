// @ts-check
// What the parts of the work cost at the least, each alone in a process of its own: `limits.mjs` starts
// it for one of them.
import { createEnvelopeCodec, orderSchema } from 'cellarstream/schemas';
import { Kafka, logLevel } from 'kafkajs';
import { KafkajsBatches } from './kafkajs-batches.mjs';
import { fetchPages } from './pages.mjs';
import { costOf } from './passes.mjs';
import { readyEvents, recordsIn } from './ready-events.mjs';
import { PARTITIONS } from './topics.mjs';

/** @typedef {import('./limits.mjs').LimitOptions} LimitOptions */

/** @param {readonly string[]} pages */
async function parse(pages) {
  const records = pages.flatMap(recordsIn).length;
  let read = 0;
  const cost = await costOf(records, () => {
    for (const page of pages) read += recordsIn(page).length;
  });
  if (read % records !== 0) throw new Error('a pass has read too little');
  return { ...cost, bytes: Buffer.byteLength(pages.join('')) / records };
}

/** Both of avsc's ways to write; the quicker one is the limit. @param {readonly string[]} pages */
async function encode(pages) {
  const codec = createEnvelopeCodec(orderSchema, 'orders').values;
  const { type } = codec;
  // As avsc likes values best: made by itself.
  const values = pages
    .flatMap(recordsIn)
    .map((record) => /** @type {unknown} */ (type.fromBuffer(codec.encode(record))));
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
  const batches = pages.map((page) =>
    readyEvents(page).map((event, place) => ({ ...event, partition: place % PARTITIONS })),
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

const options = /** @type {LimitOptions} */ (JSON.parse(process.argv[2] ?? '{}'));
const pages = await fetchPages(options.sandbox, options.resource, options.pages);
const result = await { parse, encode, send }[options.what](pages, options);
process.send?.({ id: 0, result });
process.on('disconnect', () => process.exit());
