import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import type { Consumer } from 'kafkajs';
import { avroDecoder } from '../integration/support/topic-reader.ts';
import type { Read } from '../integration/support/topic-reader.ts';
import { readTail } from '../../src/kafka/fetch/kafka-tail.ts';
import { withAdmin } from '../support/with-admin.ts';
import { onCrash } from '../support/crash.ts';

/** How long the ends may take to be reached: an open transaction keeps readers waiting for a minute. */
const PATIENCE_MS = 180_000;
/** A consumer that reads nothing for so long is given up for another one: its coordinator may be gone. */
const STALLED_MS = 15_000;
/** Leaving a group is a courtesy, which a dead coordinator must not make us wait for. */
const LEAVING_MS = 3_000;

/** A message of a topic of JSON. */
export interface Note {
  readonly key: string;
  readonly value: Record<string, unknown>;
}

/**
 * What is committed to some topics, read on from where the last look ended. A stranger's eyes:
 * kafkajs, avsc and the registry, and nothing of the product. Brokers may come and go meanwhile: it tries
 * again, from behind the last message that was taken, until all is read.
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
  #group = '';

  constructor(
    services: { readonly brokers: readonly string[]; readonly registryUrl: string },
    topics: { readonly avro: readonly string[]; readonly json: readonly string[] },
  ) {
    this.#kafka = new Kafka({
      brokers: [...services.brokers],
      logLevel: logLevel.NOTHING,
      connectionTimeout: 15_000, // of a machine that is busy
      requestTimeout: 10_000, // of a broker that says nothing
      retry: { retries: 15, initialRetryTime: 100, maxRetryTime: 2_000 },
    });
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

  /** The group that reads at this moment, or read last. */
  get group(): string {
    return this.#group;
  }

  /**
   * Reads on to the ends as of now: never to less, however often that takes another consumer.
   *
   * @throws Error when they are not reached in three minutes, with what the last consumer died of.
   */
  async update(): Promise<void> {
    const left = await this.#behind();
    const ends = [...left];
    const until = performance.now() + PATIENCE_MS;
    let cause: unknown;
    while (left.size > 0) {
      if (performance.now() > until) {
        const places = [...left].map(([place, end]) => `${place} up to ${end}`).join(', ');
        throw new Error(`the topics can't be read to their ends: ${places}`, { cause });
      }
      try {
        await this.#readNotes(left);
        if (left.size > 0) await this.#read(left);
      } catch (error) {
        cause = error; // another consumer goes on from where this one came to
        await sleep(500);
      }
    }
    for (const [place, end] of ends) this.#ends.set(place, end);
  }

  /**
   * The topics that several producers write to. Brokers list aborted transactions by where they end; kafkajs takes them for
   * listed by where they begin, and gives a message of one that began before another, and ended behind it.
   */
  async #readNotes(left: Map<string, bigint>): Promise<void> {
    for (const [place, end] of left) {
      const [topic, number] = place.split(' ') as [string, string];
      if (!this.#json.includes(topic)) continue;
      const partition = Number(number);
      await readTail({
        kafka: this.#kafka,
        topic,
        from: new Map([[partition, this.#next.get(place) ?? 0n]]),
        to: new Map([[partition, end]]),
        onMessages: (messages) => {
          for (const { key, value, offset } of messages) {
            const note = JSON.parse(String(value)) as Note['value'];
            addTo(this.#notes, topic, { key: String(key), value: note });
            this.#next.set(place, BigInt(offset) + 1n);
          }
          return Promise.resolve();
        },
      });
      this.#next.set(place, end);
      left.delete(place);
    }
  }

  /** One consumer's work: takes the places that it reads to their ends out of `left`. */
  async #read(left: Map<string, bigint>): Promise<void> {
    const names = this.#avro.filter((topic) => hasAny(left, topic));
    this.#group = `chaos-${randomUUID()}`;
    const consumer = this.#kafka.consumer({ groupId: this.#group, maxWaitTimeInMs: 100 });
    const over = new AbortController();
    try {
      await withinMs(STALLED_MS * 2, this.#join(consumer, names), 'no group was joined');
      await this.#follow(consumer, names, left, over.signal);
    } finally {
      over.abort();
      await withinMs(LEAVING_MS, consumer.disconnect(), 'left to itself').catch(() => undefined);
    }
  }

  async #join(consumer: Consumer, topics: string[]): Promise<void> {
    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning: true });
  }

  /** Resolves when nothing is left; rejects when the consumer ends for good, or reads nothing for long. */
  async #follow(
    consumer: Consumer,
    names: readonly string[],
    left: Map<string, bigint>,
    over: AbortSignal,
  ): Promise<void> {
    let stalled: NodeJS.Timeout | undefined;
    const done = new Promise<void>((resolve, reject) => {
      const goOn = () => {
        clearTimeout(stalled);
        stalled = setTimeout(() => reject(new Error('nothing was read for long')), STALLED_MS);
      };
      goOn();
      onCrash(consumer, reject);
      consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
        if (over.aborted) return;
        const place = `${payload.topic} ${payload.partition}`;
        const end = left.get(place);
        if (end !== undefined && BigInt(payload.lastOffset) + 1n >= end) left.delete(place);
        goOn();
        if (left.size === 0) resolve();
      });
    });
    // It may be rejected before anybody waits for it.
    done.catch(() => undefined);
    try {
      const running = consumer.run({
        eachBatch: async ({ batch: { topic, partition, messages } }) => {
          const place = `${topic} ${partition}`;
          for (const message of messages) {
            const take = await this.#reading(topic, partition, message);
            if (over.aborted) throw new Error('another consumer has taken over');
            const offset = BigInt(message.offset);
            if (offset < (this.#next.get(place) ?? 0n)) continue;
            take();
            this.#next.set(place, offset + 1n);
          }
        },
      });
      await Promise.race([running, done]);
      for (const [place, offset] of this.#next) {
        const [topic, partition] = place.split(' ') as [string, string];
        if (names.includes(topic))
          consumer.seek({ topic, partition: Number(partition), offset: String(offset) });
      }
      await done;
    } finally {
      clearTimeout(stalled);
    }
  }

  /** By `topic partition`: the ends that are not reached yet. */
  async #behind(): Promise<Map<string, bigint>> {
    return withAdmin(this.#kafka, async (admin) => {
      const left = new Map<string, bigint>();
      for (const topic of [...this.#avro, ...this.#json]) {
        for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
          const place = `${topic} ${partition}`;
          const end = BigInt(high);
          if (end > (this.#ends.get(place) ?? 0n)) left.set(place, end);
        }
      }
      return left;
    });
  }

  /** A message, decoded: what is returned takes it. */
  async #reading(
    topic: string,
    partition: number,
    { key, value, headers, offset, timestamp }: Message,
  ): Promise<() => void> {
    const event: Read = {
      partition,
      offset: BigInt(offset),
      key: key?.toString() ?? null,
      value: await this.#decode(value),
      headers: Object.fromEntries(
        Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)]),
      ),
      timestamp: Number(timestamp),
    };
    return () => addTo(this.#events, topic, event);
  }
}

function addTo<T>(lists: Map<string, T[]>, name: string, one: T): void {
  const list = lists.get(name) ?? [];
  lists.set(name, list);
  list.push(one);
}

async function withinMs<T>(ms: number, work: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
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
