// @ts-check
// The orders' topic without this library: kafkajs, avsc and fetch are all it takes.
//
//     npm run example:05         # with `npm start` in another terminal
//
// kafkajs reads only what is committed (read_committed) unless it is told otherwise.
import avsc from 'avsc';
import { Kafka, logLevel } from 'kafkajs';

const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX } = process.env;
const brokers = (KAFKA_BROKERS || '127.0.0.1:9092').split(',');
const registry = SCHEMA_REGISTRY_URL || 'http://127.0.0.1:8081/apis/ccompat/v7';

/** @type {Map<number, avsc.Type>} by the registry's id of their schema */
const types = new Map();

/** Confluent's frame: a zero byte, the schema's id in four more, then Avro. @param {Buffer} value */
async function decode(value) {
  const id = value.readInt32BE(1);
  const known = types.get(id);
  if (known) return known.fromBuffer(value.subarray(5));
  const answer = await fetch(`${registry}/schemas/ids/${id}`);
  if (!answer.ok) throw new Error(`the registry answered ${answer.status} for schema ${id}`);
  const { schema } = /** @type {{ schema: string }} */ (await answer.json());
  types.set(id, avsc.Type.forSchema(JSON.parse(schema)));
  return decode(value);
}

/** Avro's decimal: a big-endian whole number, here of ten-thousandths. @param {Buffer | null} bytes */
function money(bytes) {
  if (!bytes?.length) return '-';
  const whole = BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex')}`));
  return (Number(whole) / 10_000).toFixed(2);
}

const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry: { retries: 2 } });
const consumer = kafka.consumer({ groupId: 'plain-kafkajs' });
await consumer.connect().catch(() => {
  console.error(
    `no Kafka at ${brokers.join(',')}: start the demo first, in another terminal (npm start)`,
  );
  process.exit(1);
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void consumer.disconnect());

await consumer.subscribe({ topic: `${TOPIC_PREFIX || 'wine'}.orders`, fromBeginning: true });
await consumer.run({
  eachMessage: async ({ message }) => {
    const key = String(message.key);
    // Behind a deletion there is a message without a value, for compaction to forget the key.
    if (!message.value) return console.log(`${key} tombstone`);
    const { op, before, after, changed } = await decode(message.value);
    const status = `${before?.payment_status ?? '-'} -> ${after?.payment_status ?? '-'}`;
    console.log(`${key} ${op} ${status} ${money((after ?? before).total_price)} ${changed}`);
  },
});
