import { randomUUID } from 'node:crypto';
import avro from 'avsc';
import { Kafka, logLevel } from 'kafkajs';
import { onCrash } from '../../support/crash.ts';
import type { AvroSchemaObject } from './rebuild.ts';

/** A committed event with the schema that it is written in. */
export interface ReadEvent {
  readonly topic: string;
  readonly key: string | null;
  /** As avsc decodes it: logical types as the numbers and bytes underneath, longs as bigints. */
  readonly value: Record<string, unknown> | null;
  readonly schema: AvroSchemaObject | null;
}

/**
 * Reads topics as a stranger would: kafkajs, avsc and the registry, and nothing of the product. Only
 * what is committed, from the beginning to the end as of now. Unlike `readTopic` it rounds nothing:
 * longs are exact, and what a logical type means is left to the schema, which comes along.
 */
export async function readEvents(
  services: { readonly brokers: readonly string[]; readonly registryUrl: string },
  topics: readonly string[],
  onEvent: (event: ReadEvent) => void,
): Promise<void> {
  const kafka = new Kafka({ brokers: [...services.brokers], logLevel: logLevel.NOTHING });
  const ends = await endsOf(kafka, topics);
  if (ends.size === 0) return;

  const decoders = new Map<number, Promise<Decoder>>();
  const decoderOf = (bytes: Buffer): Promise<Decoder> => {
    if (bytes[0] !== 0) throw new Error('no Confluent frame');
    const id = bytes.readUInt32BE(1);
    if (!decoders.has(id)) decoders.set(id, fetchDecoder(services.registryUrl, id));
    return decoders.get(id)!;
  };

  const consumer = kafka.consumer({ groupId: `test-events-${randomUUID()}` });
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  const done = new Promise<void>((resolve, reject) => {
    onCrash(consumer, reject);
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      const name = `${payload.topic} ${payload.partition}`;
      if (BigInt(payload.lastOffset) + 1n >= (ends.get(name) ?? Infinity)) ends.delete(name);
      if (ends.size === 0) resolve();
    });
  });
  await consumer.run({
    eachBatch: async ({ batch }) => {
      for (const { key, value } of batch.messages) {
        const decoder = value && (await decoderOf(value));
        onEvent({
          topic: batch.topic,
          key: key?.toString() ?? null,
          value: decoder && (decoder.type.fromBuffer(value.subarray(5)) as Record<string, unknown>),
          schema: decoder?.schema ?? null,
        });
      }
    },
  });
  try {
    await done;
  } finally {
    await consumer.disconnect();
  }
}

/** Where each partition that holds anything ends, by `topic partition`. */
export async function endsOf(
  kafka: Kafka,
  topics: readonly string[],
): Promise<Map<string, bigint>> {
  const admin = kafka.admin();
  await admin.connect();
  const ends = new Map<string, bigint>();
  for (const topic of topics) {
    for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
      if (high !== '0') ends.set(`${topic} ${partition}`, BigInt(high));
    }
  }
  await admin.disconnect();
  return ends;
}

interface Decoder {
  readonly type: avro.Type;
  readonly schema: AvroSchemaObject;
}

async function fetchDecoder(registryUrl: string, id: number): Promise<Decoder> {
  const answer = await fetch(`${registryUrl}/schemas/ids/${id}`);
  const { schema: text } = (await answer.json()) as { schema: string };
  const schema = JSON.parse(text) as AvroSchemaObject;
  const type = avro.Type.forSchema(schema as avro.Schema, {
    omitRecordMethods: true,
    typeHook: (part) => (isLong(part) ? EXACT_LONG : undefined),
  });
  return { type, schema };
}

const isLong = (part: unknown): boolean =>
  part === 'long' || (part as { type?: unknown } | null)?.type === 'long';

/** avsc counts in doubles unless it is told otherwise. */
const EXACT_LONG = avro.types.LongType.__with({
  fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    return bytes;
  },
  fromJSON: BigInt,
  toJSON: String,
  isValid: (value: unknown) => typeof value === 'bigint',
  compare: (a: bigint, b: bigint) => (a === b ? 0 : a < b ? -1 : 1),
});
