import { connect } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import type { Producer } from 'kafkajs';
import { inject, vi } from 'vitest';
import { orderStatusChangeCodec } from '../../../src/description/wine/order-status.ts';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { createRegistry } from '../../../src/schemas/registry/registry.ts';
import type { Registry } from '../../../src/schemas/registry/registry.ts';
import { valueSubject } from '../../../src/schemas/events/topics.ts';
import { frame } from '../../../src/schemas/registry/wire.ts';
import { withAdmin } from '../../support/with-admin.ts';
import { createTopic } from './created-topic.ts';
import { atEnd } from './running-test.ts';

/** The services of the tests, as clients use them. */
export interface Clients {
  readonly kafka: Kafka;
  readonly registry: Registry;
}

export function clientsForTest(): Clients {
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  const registry = createRegistry({ url: inject('registryUrl') });
  atEnd(() => registry.close());
  return { kafka, registry };
}

/** A topic of status changes that a test writes by itself; `order_number` counts them. */
export interface WrittenTopic {
  readonly name: string;
  /** Status changes of these numbers to a partition, in one transaction. */
  write(partition: number, numbers: readonly number[], how?: WriteOptions): Promise<void>;
  /** Messages of any kind, committed. */
  send(partition: number, messages: readonly Raw[]): Promise<void>;
}

export interface WriteOptions {
  /** Default commit. */
  readonly end?: 'commit' | 'abort';
  /** Of the first, ms since 1970; each further one is a ms later. Default now, of all. */
  readonly at?: number;
  /** Of the message of a number. Default its text. */
  readonly key?: (number: number) => string;
}

export interface Raw {
  readonly key: string | null;
  readonly value: Buffer | null;
}

export async function writtenTopic(
  { kafka, registry }: Clients,
  name: string,
  partitions: number,
  settings: Readonly<Record<string, string>> = {},
  schema: RecordSchema = orderStatusChangeCodec.schema,
): Promise<WrittenTopic> {
  // What tests publish may be of any time.
  const configEntries = Object.entries({ 'retention.ms': '-1', ...settings });
  await createTopic(kafka, {
    topic: name,
    numPartitions: partitions,
    configEntries: configEntries.map(([key, value]) => ({ name: key, value })),
  });
  const schemaId = await registry.register(valueSubject(name), schema);
  const producer: Producer = kafka.producer({
    transactionalId: `test-${name}`,
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    // Soon, as transactions follow each other; and for long, as a coordinator may have just been made.
    retry: { initialRetryTime: 20, maxRetryTime: 1_000, retries: 30 },
  });
  await producer.connect();
  atEnd(() => producer.disconnect());

  const value = (number: number) => frame(schemaId, orderStatusChangeCodec.encode(change(number)));
  const commit = async (
    messages: readonly {
      key: string | null;
      value: Buffer | null;
      partition: number;
      timestamp?: string;
    }[],
    end: 'commit' | 'abort' = 'commit',
  ) => {
    const transaction = await producer.transaction();
    const written = await transaction.send({ topic: name, messages: [...messages] });
    await transaction[end]();
    // What is committed can be read a moment later: when the last stable offset has passed the marker.
    const [{ partition, baseOffset } = { partition: 0, baseOffset: '' }] = written;
    const marker = BigInt(baseOffset!) + BigInt(messages.length);
    await withAdmin(kafka, (admin) =>
      vi.waitUntil(
        async () => {
          const ends = await admin.fetchTopicOffsets(name);
          return ends.some((at) => at.partition === partition && BigInt(at.high) > marker);
        },
        { timeout: 30_000, interval: 5 },
      ),
    );
  };
  return {
    name,
    write: (partition, numbers, { end, at, key = String } = {}) =>
      commit(
        numbers.map((number, nth) => ({
          key: key(number),
          value: value(number),
          partition,
          ...(at !== undefined && { timestamp: String(at + nth) }),
        })),
        end,
      ),
    send: (partition, messages) => commit(messages.map((message) => ({ ...message, partition }))),
  };
}

export function change(number: number) {
  return {
    event_id: `event-${number}`,
    order_number: number,
    subject: 'order',
    subject_id: null,
    field: number % 2 === 0 ? 'payment_status' : 'shipment_status',
    from: number % 3 === 0 ? null : 'Pending',
    to: number % 5 === 0 ? null : 'Shipped',
    changed_at: null,
    observed_at: 1_700_000_000_000 + number,
  } as const;
}

/** Numbers from one to another, this included. */
export function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, nth) => from + nth);
}

/** A client of the tests' Kafka that notes the consumer groups that it joins. */
export function notingKafka(): { readonly kafka: Kafka; readonly joined: ReadonlySet<string> } {
  const joined = new Set<string>();
  const kafka = new Kafka({
    brokers: inject('brokers'),
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => {
      const { groupId } = entry.log as { readonly groupId?: string };
      if (groupId !== undefined) joined.add(groupId);
    },
  });
  return { kafka, joined };
}

/** A client of the tests' Kafka, and the bytes that it has received. */
export function countingKafka(): { readonly kafka: Kafka; readonly received: () => number } {
  let received = 0;
  const kafka = new Kafka({
    brokers: inject('brokers'),
    logLevel: logLevel.NOTHING,
    socketFactory: ({ host, port, onConnect }) => {
      const socket = connect({ host, port }, onConnect);
      socket.on('data', ({ length }) => (received += length));
      return socket;
    },
  });
  return { kafka, received: () => received };
}
