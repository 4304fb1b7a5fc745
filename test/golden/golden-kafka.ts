import { gunzipSync } from 'node:zlib';
import kafkajs from 'kafkajs';
import Decoder from 'kafkajs/src/protocol/decoder.js';
import decodeBatch from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import type { Connections } from '../../src/kafka/client/connections.ts';
import {
  array,
  bodyOf,
  CallUnanswered,
  compactString,
  int16,
  int32,
  int64,
  int8,
  NO_TAGS,
  readAnswer,
  string,
} from '../../src/kafka/client/protocol.ts';
import type { Call } from '../../src/kafka/client/protocol.ts';
import type { LogMessage } from '../../src/kafka/fetch/record-batches.ts';
import type { Isolation } from '../../src/kafka/log.ts';
import { readRequest, writeAnswer } from '../support/scripted-cluster/protocol.ts';
import { answerTo } from '../support/scripted-cluster/serve.ts';
import type { ClusterState } from '../support/scripted-cluster/serve.ts';
import { Transactions } from '../support/scripted-cluster/transactions.ts';
import type { Transaction } from '../support/scripted-cluster/transactions.ts';

/** A message in a partition's log, as kafkajs decodes it. */
export interface GoldenMessage {
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: string, value: Buffer])[];
  /** Timestamp that the producer set, in epoch ms. */
  readonly timestamp: string;
  /** When the batch was appended, in epoch ms. */
  readonly appendedAt: number;
  readonly transaction: Transaction;
}

/** A batch as the producer sent it, or the marker at the end of a transaction. */
export interface GoldenBatch {
  readonly offset: number;
  readonly transaction: Transaction;
  /**
   * The batch without its offset. A compressed one, which differs by the version of zlib, is decompressed and lacks its length and
   * checksum. Undefined for a marker.
   */
  readonly content: Buffer | undefined;
  readonly messages: readonly GoldenMessage[];
}

/** A topic as it was created: the settings of the CreateTopics request. */
export interface GoldenTopic {
  readonly partitions: number;
  readonly replication: number;
  readonly settings: readonly (readonly [name: string, value: string])[];
}

/** Fault of the request that commits a transaction. */
export type CommitFault = 'lose request' | 'lose answer';

const LIST_OFFSETS = 2;
const CREATE_TOPICS = 19;
const END_TXN = 26;
const DESCRIBE_CONFIGS = 32;
const DESCRIBE_TRANSACTIONS = 65;
const COMMITTED = 1;
const EARLIEST = '-2';
/** Places in a batch: https://kafka.apache.org/documentation/#recordbatch */
const LENGTH_AT = 8;
const RECORDS_AT = 61;
const ATTRIBUTES_AT = 21;
const GZIP = 1;
const APPEND_TIME = 'message.timestamp.type';
/** Limit of a batch in each topic, in bytes: near the smallest that the service accepts, so that large records become dead letters. */
export const MAX_MESSAGE_BYTES = 70_000;

/**
 * A Kafka cluster in memory that receives the requests of the service's own producer, as bytes, and answers at once. Batches are decoded
 * by kafkajs, independently of the code that encodes them.
 */
export class GoldenKafka implements ClusterState {
  readonly addresses;
  readonly partitions = new Map<string, number>();
  readonly topics = new Map<string, GoldenTopic>();
  readonly loginMs = 0;
  readonly coordinator = 0;
  readonly settings = {};
  readonly transactions = new Transactions((ended) => {
    for (const name of ended.partitions) this.#append(name, ended, undefined, []);
  });
  /** Decides what happens to a commit of a transactional id. */
  commitFault: (transactionalId: string) => CommitFault | undefined = () => undefined;
  readonly #logs = new Map<string, GoldenBatch[]>();
  readonly #now: () => number;

  constructor(brokers: number, now: () => number) {
    this.addresses = Array.from({ length: brokers }, (_, id) => ({
      id,
      host: 'k',
      port: 9092 + id,
    }));
    this.#now = now;
  }

  /** Connections of one process. */
  connections(): Connections {
    const connections: Pick<Connections, 'send' | 'seeds' | 'setAdvertised' | 'close'> = {
      send: (_, call) => this.#answer(call),
      seeds: () => Promise.resolve(this.addresses),
      setAdvertised: () => undefined,
      close: () => undefined,
    };
    return connections as Connections;
  }

  /** Batches and markers of a partition, in order. */
  log(topic: string, partition: number): readonly GoldenBatch[] {
    return this.#logs.get(`${topic} ${partition}`) ?? [];
  }

  /** Messages of a partition that a reader can see, from one offset up to another. */
  read(
    topic: string,
    partition: number,
    range: { readonly from: number; readonly to: number; readonly isolation: Isolation },
  ): LogMessage[] {
    const isAppendTime = this.topics.get(topic)!.settings.some(([name]) => name === APPEND_TIME);
    return this.log(topic, partition)
      .filter(
        ({ transaction }) => range.isolation === 'uncommitted' || transaction.outcome === 'commit',
      )
      .flatMap(({ messages }) => messages)
      .filter(({ offset }) => offset >= range.from && offset < range.to)
      .map(({ offset, key, value, headers, timestamp, appendedAt }) => ({
        ...{ key, value, attributes: 0, leaderEpoch: 0, isAppendTime, isControlRecord: false },
        headers: Object.fromEntries(headers),
        offset: String(offset),
        timestamp: isAppendTime ? String(appendedAt) : timestamp,
      }));
  }

  leader(): number {
    return 0;
  }

  known(_: number, topic: string, partition: number) {
    const log = this.log(topic, partition);
    const end = endOf(log);
    const open = log.find(({ transaction }) => transaction.outcome === 'open');
    return { leader: 0, leaderEpoch: 0, end, stableEnd: open?.offset ?? end };
  }

  async append(
    topic: string,
    partition: number,
    sent: Buffer,
    transaction: Transaction | undefined,
  ) {
    const bytes = Buffer.from(sent);
    if (!transaction) throw new Error(`a batch for ${topic} is in no transaction`);
    const { records } = await decodeBatch(new Decoder(Buffer.from(bytes)));
    const isCompressed = (bytes.readInt16BE(ATTRIBUTES_AT) & 7) === GZIP;
    const content = isCompressed
      ? Buffer.concat([
          bytes.subarray(ATTRIBUTES_AT, RECORDS_AT),
          gunzipSync(bytes.subarray(RECORDS_AT)),
        ])
      : bytes.subarray(LENGTH_AT);
    const name = `${topic} ${partition}`;
    const baseOffset = endOf(this.log(topic, partition));
    const appendedAt = this.#now();
    const messages = records.map(({ key, value, timestamp, headers }, n) => ({
      ...{ offset: baseOffset + n, key, value, timestamp, appendedAt, transaction },
      headers: Object.entries(headers).flatMap(([header, text]) =>
        [text ?? []].flat().map((each) => [header, each] as const),
      ),
    }));
    this.#append(name, transaction, content, messages);
    return { errorCode: 0, baseOffset };
  }

  /** Appends a message to a topic as a process beside the service does, in a transaction of its own. */
  put(
    topic: string,
    message: { readonly key: string | null; readonly value: Buffer | null },
  ): void {
    const transaction: Transaction = { outcome: 'commit', partitions: new Set([`${topic} 0`]) };
    const offset = endOf(this.log(topic, 0));
    const at = this.#now();
    const stamps = { timestamp: String(at), appendedAt: at, headers: [], transaction };
    const key = message.key === null ? null : Buffer.from(message.key);
    this.#append(`${topic} 0`, transaction, undefined, [
      { offset, key, value: message.value, ...stamps },
    ]);
  }

  fetch(): never {
    throw new Error('readers do not fetch here');
  }

  nextWrite(): never {
    throw new Error('readers do not fetch here');
  }

  #append(
    name: string,
    transaction: Transaction,
    content: Buffer | undefined,
    messages: readonly GoldenMessage[],
  ): void {
    const log = this.#logs.get(name) ?? [];
    this.#logs.set(name, log);
    log.push({ offset: endOf(log), transaction, content, messages });
  }

  async #answer<T>(call: Call<T>): Promise<T> {
    const fault = call.key === END_TXN ? this.#commitFaultOf(call.body) : undefined;
    if (fault === 'lose request') throw unanswered();
    const own = this.#ownAnswer(call);
    const head = Buffer.concat([call.isFlexible ? NO_TAGS : Buffer.of(), int32(0)]); // not throttled
    const bytes = own ? Buffer.concat([head, own]) : await this.#scriptedAnswer(call);
    if (fault === 'lose answer') throw unanswered();
    return readAnswer(call, bytes).value;
  }

  #commitFaultOf(body: Buffer): CommitFault | undefined {
    const isCommit = body.at(-1) === 1;
    return isCommit ? this.commitFault(new Decoder(body).readString()!) : undefined;
  }

  /** Answers as the scripted cluster of the tests does. */
  async #scriptedAnswer(call: Call<unknown>): Promise<Buffer> {
    const head = [int16(call.key), int16(call.version), int32(0), string('golden')];
    const request = readRequest(Buffer.concat([...head, bodyOf(call)]));
    const received = { ...request, broker: 0, connection: 0 };
    const answer = await answerTo(this, received, 'do as asked');
    return writeAnswer(request, answer).subarray(4 + 4); // behind its length and which request it answers
  }

  /** Answers requests that the scripted cluster does not know, or refuses from producers. */
  #ownAnswer({ key, body }: Call<unknown>): Buffer | undefined {
    const from = new Decoder(body);
    switch (key) {
      case LIST_OFFSETS:
        return this.#offsets(from);
      case CREATE_TOPICS:
        return this.#create(from);
      case DESCRIBE_CONFIGS:
        return this.#describe(from);
      case DESCRIBE_TRANSACTIONS:
        return transactionState(body);
    }
    return undefined;
  }

  #offsets(from: Decoder): Buffer {
    from.readInt32(); // no replica
    const isCommitted = from.readInt8() === COMMITTED;
    const asked = from.readArray((each) => ({
      topic: each.readString()!,
      partitions: each.readArray((one) => {
        const partition = one.readInt32();
        one.readInt32(); // leader epoch
        return { partition, isEarliest: one.readInt64().toString() === EARLIEST };
      }),
    }));
    return array(asked, ({ topic, partitions }) =>
      Buffer.concat([
        string(topic),
        array(partitions, ({ partition, isEarliest }) => {
          const { end, stableEnd } = this.known(0, topic, partition);
          const offset = isEarliest ? 0 : isCommitted ? stableEnd : end;
          return Buffer.concat([
            ...[int32(partition), int16(0), int64(-1n), int64(BigInt(offset)), int32(0)],
          ]);
        }),
      ]),
    );
  }

  #create(from: Decoder): Buffer {
    const asked = from.readArray((each) => {
      const topic = each.readString()!;
      const partitions = each.readInt32();
      const replication = each.readInt16();
      each.readArray((one) => one.readInt32()); // no replica assignment
      const settings = each.readArray((one) => [one.readString()!, one.readString()!] as const);
      return { topic, created: { partitions, replication, settings } };
    });
    for (const { topic, created } of asked) {
      this.topics.set(topic, created);
      this.partitions.set(topic, created.partitions);
    }
    return array(asked, ({ topic }) => Buffer.concat([string(topic), int16(0), string(null)]));
  }

  #describe(from: Decoder): Buffer {
    const names = from.readArray((each) => {
      each.readInt8(); // the type of a topic
      const topic = each.readString()!;
      each.readArray((one) => one.readString());
      return topic;
    });
    return array(names, (topic) => {
      const limit = ['max.message.bytes', String(MAX_MESSAGE_BYTES)] as const;
      const settings = [...(this.topics.get(topic)?.settings ?? []), limit];
      const entries = array(settings, ([name, value]) =>
        Buffer.concat([string(name), string(value), int8(0), int8(1), int8(0), array([], int32)]),
      );
      return Buffer.concat([int16(0), string(null), int8(2), string(topic), entries]);
    });
  }
}

function unanswered(): CallUnanswered {
  return new CallUnanswered('no answer', {
    cause: new kafkajs.KafkaJSConnectionError('closed'),
  });
}

/** Answers that a transaction has ended. */
function transactionState(body: Buffer): Buffer {
  const id = body.subarray(1, -1); // the array with its one id, without the tags
  const ONE = 1;
  const state = compactString('CompleteCommit');
  return Buffer.concat([int8(ONE + 1), int16(0), id, state]);
}

function endOf(log: readonly GoldenBatch[]): number {
  const last = log.at(-1);
  return last ? last.offset + Math.max(1, last.messages.length) : 0;
}
