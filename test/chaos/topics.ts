import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { avroDecoder } from '../integration/support/topic-reader.ts';
import type { Read } from '../integration/support/topic-reader.ts';
import { onCrash } from '../support/crash.ts';

/** A message of a topic of JSON. */
export interface Note {
  readonly key: string;
  readonly value: Record<string, unknown>;
}

/**
 * What is committed to some topics, read on from where the last look ended. A stranger's eyes:
 * kafkajs, avsc and the registry, and nothing of the product.
 */
export class Topics {
  readonly #kafka: Kafka;
  readonly #avro: readonly string[];
  readonly #json: readonly string[];
  readonly #decode: ReturnType<typeof avroDecoder>;
  /** By `topic partition`: behind the last message that was read, and the last marker. */
  readonly #next = new Map<string, bigint>();
  readonly #ends = new Map<string, bigint>();
  readonly #events = new Map<string, Read[]>();
  readonly #notes = new Map<string, Note[]>();

  constructor(
    services: { readonly brokers: readonly string[]; readonly registryUrl: string },
    topics: { readonly avro: readonly string[]; readonly json: readonly string[] },
  ) {
    this.#kafka = new Kafka({ brokers: [...services.brokers], logLevel: logLevel.NOTHING });
    this.#decode = avroDecoder(services.registryUrl);
    this.#avro = topics.avro;
    this.#json = topics.json;
  }

  events(topic: string): readonly Read[] {
    return this.#events.get(topic) ?? [];
  }

  notes(topic: string): readonly Note[] {
    return this.#notes.get(topic) ?? [];
  }

  /** Reads on to the ends as of now. */
  async update(): Promise<void> {
    const left = await this.#behind();
    const ends = [...left];
    if (ends.length === 0) return;
    const names = [...this.#avro, ...this.#json].filter((topic) => hasAny(left, topic));
    const consumer = this.#kafka.consumer({
      groupId: `chaos-${randomUUID()}`,
      maxWaitTimeInMs: 100,
    });
    await consumer.connect();
    await consumer.subscribe({ topics: names, fromBeginning: true });
    const done = new Promise<void>((resolve, reject) => {
      onCrash(consumer, reject);
      consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
        const place = `${payload.topic} ${payload.partition}`;
        const end = left.get(place);
        if (end !== undefined && BigInt(payload.lastOffset) + 1n >= end) left.delete(place);
        if (left.size === 0) resolve();
      });
    });
    await consumer.run({
      eachBatch: async ({ batch: { topic, partition, messages } }) => {
        const place = `${topic} ${partition}`;
        for (const message of messages) {
          const offset = BigInt(message.offset);
          if (offset < (this.#next.get(place) ?? 0n)) continue;
          await this.#take(topic, partition, message);
          this.#next.set(place, offset + 1n);
        }
      },
    });
    for (const [place, offset] of this.#next) {
      const [topic, partition] = place.split(' ') as [string, string];
      if (names.includes(topic))
        consumer.seek({ topic, partition: Number(partition), offset: String(offset) });
    }
    try {
      await done;
    } finally {
      await consumer.disconnect();
    }
    for (const [place, end] of ends) this.#ends.set(place, end);
  }

  /** By `topic partition`: the ends that are not reached yet. */
  async #behind(): Promise<Map<string, bigint>> {
    const admin = this.#kafka.admin();
    await admin.connect();
    try {
      const left = new Map<string, bigint>();
      for (const topic of [...this.#avro, ...this.#json]) {
        for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
          const place = `${topic} ${partition}`;
          const end = BigInt(high);
          if (end > (this.#ends.get(place) ?? 0n)) left.set(place, end);
        }
      }
      return left;
    } finally {
      await admin.disconnect();
    }
  }

  async #take(
    topic: string,
    partition: number,
    { key, value, headers, offset, timestamp }: Message,
  ): Promise<void> {
    if (this.#json.includes(topic)) {
      const notes = this.#notes.get(topic) ?? [];
      this.#notes.set(topic, notes);
      notes.push({
        key: String(key),
        value: JSON.parse(String(value)) as Record<string, unknown>,
      });
      return;
    }
    const events = this.#events.get(topic) ?? [];
    this.#events.set(topic, events);
    events.push({
      partition,
      offset: BigInt(offset),
      key: key?.toString() ?? null,
      value: await this.#decode(value),
      headers: Object.fromEntries(
        Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)]),
      ),
      timestamp: Number(timestamp),
    });
  }
}

interface Message {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly offset: string;
  readonly timestamp: string;
}

function hasAny(left: ReadonlyMap<string, bigint>, topic: string): boolean {
  return [...left.keys()].some((place) => place.startsWith(`${topic} `));
}
