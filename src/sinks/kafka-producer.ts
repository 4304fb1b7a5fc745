import { CompressionTypes, Partitioners } from 'kafkajs';
import type { Kafka, Message as KafkaMessage, Producer, TopicMessages } from 'kafkajs';
import { kafkaError } from './kafka-error.ts';
import type { Ends, Message, TransactionalSink } from './sink.ts';

/** What {@link openKafkaProducer} needs. */
export interface KafkaProducerOptions {
  readonly kafka: Kafka;
  /** One producer a task: a second one with this id fences the first. */
  readonly transactionalId: string;
  /** Partitions of each topic that is written to. */
  readonly partitions: ReadonlyMap<string, number>;
}

/** Most bytes of messages in one batch for one partition: brokers take 1 MiB, unless told otherwise. */
const MOST_BATCH_BYTES = 900_000;
/** Most bytes of one message's value, so that a batch can hold it with its key and headers. */
export const MOST_EVENT_BYTES = MOST_BATCH_BYTES - 10_000;
/** After this long the broker gives up a transaction that was left open. */
const TRANSACTION_TIMEOUT_MS = 60_000;
/** What a message adds to a batch beside its key, value and headers, at most. */
const MESSAGE_OVERHEAD = 64;

/**
 * A transactional sink on Kafka. Opening it fences every older producer of the same id and ends
 * whatever transaction that one had open, so that what is read back afterwards is final.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`.
 */
export async function openKafkaProducer(options: KafkaProducerOptions): Promise<TransactionalSink> {
  const { kafka, transactionalId, partitions } = options;
  const producer = kafka.producer({
    transactionalId,
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    transactionTimeout: TRANSACTION_TIMEOUT_MS,
    createPartitioner: Partitioners.DefaultPartitioner, // murmur2, as the Java client's
  });
  try {
    await producer.connect();
    await fence(producer);
  } catch (error) {
    await producer.disconnect().catch(() => undefined); // the first error says more
    throw kafkaError(error);
  }

  const partition = partitioner(partitions);
  return {
    commit: async (messages) => {
      try {
        return await commit(producer, batches(messages, partition));
      } catch (error) {
        throw kafkaError(error, 'COMMIT_FAILED');
      }
    },
    close: () => producer.disconnect(),
  };
}

/** `connect()` does not fence; the first `transaction()` does. Nothing was sent, so nothing is aborted. */
async function fence(producer: Producer): Promise<void> {
  const transaction = await producer.transaction();
  await transaction.abort();
}

async function commit(producer: Producer, batches: readonly TopicMessages[][]): Promise<Ends> {
  const transaction = await producer.transaction();
  const ends = new Map<string, Map<number, bigint>>();
  for (const topicMessages of batches) {
    const sent = await transaction.sendBatch({
      topicMessages,
      acks: -1,
      compression: CompressionTypes.GZIP,
    });
    for (const { topicName, partition, baseOffset } of sent) {
      const topic = topicMessages.find(({ topic }) => topic === topicName);
      const count = topic?.messages.filter((message) => message.partition === partition).length;
      const ofTopic = ends.get(topicName) ?? new Map<number, bigint>();
      ends.set(topicName, ofTopic);
      // Behind the messages stands the transaction's marker.
      ofTopic.set(partition, BigInt(baseOffset ?? 0) + BigInt(count ?? 0) + 1n);
    }
  }
  await transaction.commit();
  return ends;
}

/**
 * Splits messages into requests in which no partition gets more bytes than a batch may have:
 * kafkajs makes one batch a partition of whatever it is given, and the broker refuses large ones.
 * The order within a partition is kept.
 */
function batches(
  messages: readonly Message[],
  partition: (message: Message) => number,
): TopicMessages[][] {
  const requests: Map<string, KafkaMessage[]>[] = [];
  const filled = new Map<string, { request: number; bytes: number }>();
  for (const message of messages) {
    const { topic, key, value, headers } = message;
    const place = partition(message);
    const bytes = sizeOf(message);
    const id = `${topic}:${place}`;
    const at = filled.get(id) ?? { request: 0, bytes: 0 };
    if (at.bytes > 0 && at.bytes + bytes > MOST_BATCH_BYTES) {
      at.request += 1;
      at.bytes = 0;
    }
    at.bytes += bytes;
    filled.set(id, at);
    const request = (requests[at.request] ??= new Map<string, KafkaMessage[]>());
    const ofTopic = request.get(topic) ?? [];
    request.set(topic, ofTopic);
    ofTopic.push({ key, value, partition: place, ...(headers && { headers: { ...headers } }) });
  }
  return requests.map((request) => [...request].map(([topic, messages]) => ({ topic, messages })));
}

function sizeOf({ key, value, headers }: Message): number {
  const text = Object.entries(headers ?? {}).reduce(
    (sum, [k, v]) => sum + k.length + 3 * v.length,
    0,
  );
  return MESSAGE_OVERHEAD + 3 * (key?.length ?? 0) + (value?.length ?? 0) + text;
}

function partitioner(partitions: ReadonlyMap<string, number>): (message: Message) => number {
  const hash = Partitioners.DefaultPartitioner();
  const metadata = new Map(
    [...partitions].map(([topic, count]) => [
      topic,
      Array.from({ length: count }, (_, partitionId) => ({
        partitionId,
        leader: 0,
        replicas: [],
        isr: [],
        partitionErrorCode: 0,
        offlineReplicas: [],
      })),
    ]),
  );
  return ({ topic, key, value }) => {
    const partitionMetadata = metadata.get(topic);
    if (!partitionMetadata) {
      throw new Error(`nothing is known of the topic ${topic}`); // a bug: it was not made
    }
    return hash({ topic, partitionMetadata, message: { key, value } });
  };
}
