// @ts-check
// What a sink costs, alone in a process of its own: a transaction for each page of ready events.
import { Kafka, logLevel } from 'kafkajs';
import { openKafkaProducer } from '../../dist/sinks/producer/kafka-producer.js';
import { fetchPages } from './pages.mjs';
import { costOf } from './passes.mjs';
import { openPlatformaticSink } from './platformatic-sink.mjs';
import { readyEvents } from './ready-events.mjs';
import { PARTITIONS } from './topics.mjs';

/** @typedef {{ readonly which: 'kafkajs' | 'platformatic', readonly sandbox: { readonly url: string, readonly apiKey: string }, readonly brokers: string[], readonly topic: string, readonly pages: number }} SinkOptions */

const options = /** @type {SinkOptions} */ (JSON.parse(process.argv[2] ?? '{}'));
const { which, brokers, topic } = options;
const transactionalId = `bench-${which}-${topic}`;

const open = {
  kafkajs: () =>
    openKafkaProducer({
      kafka: new Kafka({ brokers, logLevel: logLevel.NOTHING }),
      transactionalId,
      partitions: new Map([[topic, PARTITIONS]]),
    }),
  platformatic: () => openPlatformaticSink(brokers, transactionalId),
}[which];

process.on('disconnect', () => process.exit());
try {
  const sink = await open();
  const texts = await fetchPages(options.sandbox, 'orders', options.pages);
  const pages = texts.map((text) => readyEvents(text).map((event) => ({ topic, ...event })));
  const cost = await costOf(pages.flat().length, async () => {
    for (const page of pages) {
      await sink.commit(page);
      await sink.awaitVisible();
    }
  });
  await sink.close();
  process.send?.({ id: 0, result: cost });
} catch (error) {
  process.send?.({ id: 0, failure: error instanceof Error ? error.message : String(error) });
}
