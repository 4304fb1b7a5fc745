// @ts-check
// What it costs to verify a topic: a million orders and the certificate of them, by `cellarstream verify`, beside a replay that
// does nothing with them, each in a process of its own; and what the hashing of an event takes.
//
//     npm run bench:verify            # ORDERS=100000 for a quick one
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Kafka, logLevel } from 'kafkajs';
import { count, lastValueFrom } from 'rxjs';
import { replay } from 'cellarstream/consume';
import {
  createEnvelopeCodec,
  createRegistry,
  frame,
  orderSchema,
  valueSubject,
} from 'cellarstream/schemas';
import { startSandbox } from 'cellarstream/sandbox';
import { startServices } from '../dist/devstack/start-services.js';
import { KeyTally } from '../dist/schemas/events/key-tally.js';
import { topicBounds } from '../dist/kafka/client/topic-facts.js';
import { anonymousBytes } from './support/process-usage.mjs';
import { connectKafka, createTopic, PARTITIONS } from './support/topics.mjs';

const ORDERS = Number(process.env.ORDERS ?? 1_000_000);
const BATCH = 500;
const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

if (process.argv[2] === 'replay') {
  await replayAll();
  process.exit();
}
hashing();
const services = await startServices({ onProgress: (line) => console.error(line) });
try {
  const began = performance.now();
  await write();
  console.log(`${ORDERS} orders written in ${((performance.now() - began) / 1_000).toFixed(0)} s`);
  for (let round = 1; round <= 2; round++) {
    const replayed = await measured([fileURLToPath(import.meta.url), 'replay']);
    const verified = await measured([CLI, 'verify', 'orders']);
    console.log(lineOf('replay', replayed));
    console.log(lineOf('verify', verified), verified.output.trim());
    console.log(`verify takes ${(verified.seconds / replayed.seconds).toFixed(2)} x of replay`);
  }
} finally {
  await services.stop();
}

/** The topic as {@link measured} says where it is. */
async function replayAll() {
  const { KAFKA_BROKERS = '', SCHEMA_REGISTRY_URL = '' } = process.env;
  const kafka = new Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: logLevel.NOTHING });
  const registry = createRegistry({ url: SCHEMA_REGISTRY_URL });
  const replayed$ = replay({ kafka, registry, topic: 'bench.orders' });
  console.log(`${await lastValueFrom(replayed$.pipe(count()))} events`);
}

/** What each event adds to the count and digest of its partition, with what it takes away. */
function hashing() {
  const events = 1_000_000;
  for (let round = 1; round <= 3; round++) {
    const tally = new KeyTally();
    const began = performance.now();
    for (let n = 0; n < events; n++) {
      const key = String(100_000 + n);
      tally.add(key, n + events);
      tally.remove(key, n + events);
    }
    const us = ((performance.now() - began) * 1_000) / events;
    console.log(`hashing of an event that replaces another: ${us.toFixed(2)} us (${tally.digest})`);
  }
}

/** Orders of the sandbox over and over, each with a number of its own; then their certificate. */
async function write() {
  const sandbox = await startSandbox({ records: { orders: BATCH } });
  const records = /** @type {import('cellarstream/schemas').JsonObject[]} */ ([
    ...sandbox.truth.records('orders'),
  ]);
  await sandbox.close();
  const kafka = connectKafka({ services });
  const registry = createRegistry({ url: services.registryUrl });
  const codec = createEnvelopeCodec(orderSchema, 'orders');
  const configEntries = [
    { name: 'cleanup.policy', value: 'compact' },
    { name: 'min.compaction.lag.ms', value: '2592000000' },
  ];
  await createTopic(kafka, { topic: 'bench.orders', configEntries });
  await createTopic(kafka, { topic: 'bench.certificates' });
  const schemaId = await registry.register(valueSubject('bench.orders'), codec.schema);
  await registry.close();
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const tallies = Array.from({ length: PARTITIONS }, () => new KeyTally());
  for (let first = 1; first <= ORDERS; first += BATCH) {
    const messages = records.slice(0, ORDERS - first + 1).map((record, nth) => {
      const number = first + nth;
      const partition = number % PARTITIONS;
      const key = String(number);
      tallies[partition]?.add(key, number);
      const after = codec.values.encode({ ...record, order_number: number });
      const event = { op: /** @type {const} */ ('r'), ts_ms: Date.now(), changed: [] };
      const source = {
        ...{ connector: 'cellarstream', version: '0', name: 'default', resource: 'orders' },
        ...{ ts_ms: null, snapshot: /** @type {const} */ ('true'), sequence: number },
        ...{ db: 'bench', table: 'orders' },
      };
      return {
        key,
        partition,
        value: frame(schemaId, codec.encode({ ...event, before: null, after, source })),
      };
    });
    await producer.send({ topic: 'bench.orders', messages });
  }
  const bounds = await topicBounds({ kafka }, 'bench.orders');
  const all = new KeyTally();
  for (const tally of tallies) all.merge(tally);
  const partitions = tallies.map((tally, partition) => {
    const position = Number(bounds.get(partition)?.high ?? 0);
    return [partition, { position, ...tally.toJSON() }];
  });
  const certificate = {
    ...{ account: 'default', resource: 'orders', number: 1, sequence: ORDERS },
    ...{ began_at: Date.now(), ended_at: Date.now(), total_records: ORDERS, read: ORDERS },
    ...{ rejected: 0, unpublished: 0, left_out: 0, held: 0, undecided: 0, undecided_keys: [] },
    ...{ proof: 'exact', ...all.toJSON(), partitions: Object.fromEntries(partitions) },
  };
  const message = { key: 'default/orders', value: JSON.stringify(certificate), partition: 0 };
  await producer.send({ topic: 'bench.certificates', messages: [message] });
  await producer.disconnect();
}

/**
 * A program from its beginning to its end.
 *
 * @param {string[]} args
 */
async function measured(args) {
  const env = {
    PATH: process.env.PATH,
    KAFKA_BROKERS: services.brokers.join(','),
    SCHEMA_REGISTRY_URL: services.registryUrl,
    TOPIC_PREFIX: 'bench',
  };
  const began = performance.now();
  const child = spawn(process.execPath, args, {
    env,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, anonymousBytes(child.pid ?? 0) ?? 0)), 50);
  const [code] = await once(child, 'close');
  clearInterval(watch);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${output}`);
  return { seconds: (performance.now() - began) / 1_000, most, output };
}

/**
 * @param {string} what
 * @param {{ seconds: number, most: number }} run
 */
function lineOf(what, { seconds, most }) {
  return `${what}: ${seconds.toFixed(1)} s, RssAnon at most ${(most / 2 ** 20).toFixed(0)} MB`;
}
