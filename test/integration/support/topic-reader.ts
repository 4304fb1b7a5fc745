import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import avro from 'avsc';
import { Kafka, KafkaJSProtocolError, logLevel } from 'kafkajs';
import { onCrash } from '../../support/crash.ts';

/** A committed message with its Avro value decoded; null is a tombstone. */
export interface Read {
  readonly partition: number;
  readonly offset: bigint;
  readonly key: string | null;
  readonly value: Record<string, unknown> | null;
  readonly headers: Readonly<Record<string, string>>;
  /** When the broker got it, ms since the epoch. */
  readonly timestamp: number;
}

/**
 * Reads a topic as a stranger would: kafkajs, avsc and the registry, and nothing of the product. Only
 * what is committed, from the beginning to the end as of now, in the order of each partition.
 */
export async function readTopic(
  brokers: readonly string[],
  registryUrl: string,
  topic: string,
): Promise<Read[]> {
  return (await readTopics(brokers, registryUrl, [topic])).get(topic)!;
}

/** The same of many topics at once, by their names. */
export async function readTopics(
  brokers: readonly string[],
  registryUrl: string,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Read[]>> {
  const read = new Map(topics.map((topic) => [topic, [] as Read[]]));
  const onRead = (message: Read, topic: string) => void read.get(topic)!.push(message);
  await followTopics(brokers, registryUrl, topics, onRead, 'end');
  return read;
}

/** A topic as it comes; until the end as of now, or until it is told to stop. */
export async function followTopic(
  brokers: readonly string[],
  registryUrl: string,
  topic: string,
  onRead: (message: Read) => void,
  until: 'end' | AbortSignal,
): Promise<void> {
  await followTopics(brokers, registryUrl, [topic], onRead, until);
}

/** Where partitions with messages end. Who is told that a leader has moved looks again, with metadata of that time. */
async function endsOf(kafka: Kafka, topics: readonly string[]): Promise<Map<string, bigint>> {
  const ends = new Map<string, bigint>();
  const admin = kafka.admin();
  await admin.connect();
  try {
    for (const topic of topics) {
      for (const { partition, high, low } of await admin.fetchTopicOffsets(topic)) {
        if (high !== low) ends.set(`${topic} ${partition}`, BigInt(high));
      }
    }
    return ends;
  } catch (error) {
    if (!hasMoved(error)) throw error;
    await sleep(LOOK_AGAIN_MS);
  } finally {
    await admin.disconnect();
  }
  return endsOf(kafka, topics);
}

const LOOK_AGAIN_MS = 250;

function hasMoved(error: unknown): boolean {
  return (
    error instanceof KafkaJSProtocolError &&
    ['NOT_LEADER_FOR_PARTITION', 'LEADER_NOT_AVAILABLE'].includes(error.type)
  );
}

async function followTopics(
  brokers: readonly string[],
  registryUrl: string,
  topics: readonly string[],
  onRead: (message: Read, topic: string) => void,
  until: 'end' | AbortSignal,
): Promise<void> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const ends = await endsOf(kafka, topics);
  const left = new Set(ends.keys());
  if (until === 'end' && left.size === 0) return;

  const decode = avroDecoder(registryUrl);
  // Stopping waits for the fetch under way: by default up to 5 s.
  const consumer = kafka.consumer({
    groupId: `test-reader-${randomUUID()}`,
    maxWaitTimeInMs: 250,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  const done = new Promise<void>((resolve, reject) => {
    if (until !== 'end') until.addEventListener('abort', () => resolve());
    onCrash(consumer, reject);
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      const id = `${payload.topic} ${payload.partition}`;
      const end = ends.get(id);
      if (end !== undefined && BigInt(payload.lastOffset) + 1n >= end) left.delete(id);
      if (until === 'end' && left.size === 0) resolve();
    });
  });
  // A reader that was too slow for its group begins again where it last committed.
  const seen = new Map<string, bigint>();
  await consumer.run({
    eachBatch: async ({ batch }) => {
      const id = `${batch.topic} ${batch.partition}`;
      for (const { key, value, headers, offset, timestamp } of batch.messages) {
        if (BigInt(offset) <= (seen.get(id) ?? -1n)) continue;
        seen.set(id, BigInt(offset));
        const message = {
          partition: batch.partition,
          offset: BigInt(offset),
          key: key?.toString() ?? null,
          value: await decode(value),
          headers: Object.fromEntries(
            Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)]),
          ),
          timestamp: Number(timestamp),
        };
        onRead(message, batch.topic);
      }
    },
  });
  try {
    await done;
  } finally {
    await consumer.disconnect();
  }
}

/** What JSON begins with. */
const BRACE = 0x7b;

/** Decodes values as the registry says they are written, or as JSON; null stays null. */
export function avroDecoder(
  registryUrl: string,
): (bytes: Buffer | null) => Promise<Record<string, unknown> | null> {
  const types = new Map<number, Promise<avro.Type>>();
  return async (bytes) => {
    if (bytes === null) return null;
    if (bytes[0] === BRACE) return JSON.parse(bytes.toString()) as Record<string, unknown>;
    if (bytes[0] !== 0) throw new Error('no Confluent frame');
    const id = bytes.readUInt32BE(1);
    if (!types.has(id)) types.set(id, typeOf(registryUrl, id));
    return (await types.get(id)!).fromBuffer(bytes.subarray(5)) as Record<string, unknown>;
  };
}

async function typeOf(registryUrl: string, id: number): Promise<avro.Type> {
  const answer = await fetch(`${registryUrl}/schemas/ids/${id}`);
  const { schema } = (await answer.json()) as { schema: string };
  return avro.Type.forSchema(JSON.parse(schema) as avro.Schema, { logicalTypes: READABLE });
}

/** Money as numbers, times and dates as the texts that an API sends. */
const READABLE = {
  decimal: logical((bytes: Buffer) => Number(unscaled(bytes)) / 10_000),
  'timestamp-millis': logical((ms: number) => new Date(ms).toISOString()),
  date: logical((days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10)),
};

function unscaled(bytes: Buffer): bigint {
  return bytes.length === 0
    ? 0n
    : BigInt.asIntN(8 * bytes.length, BigInt(`0x${bytes.toString('hex')}`));
}

function logical<T>(read: (value: T) => unknown) {
  return class extends avro.types.LogicalType {
    override _fromValue(value: unknown): unknown {
      return read(value as T);
    }
  };
}
