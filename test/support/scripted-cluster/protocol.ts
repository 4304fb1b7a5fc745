import Decoder from 'kafkajs/src/protocol/decoder.js';
import Encoder from 'kafkajs/src/protocol/encoder.js';

/**
 * The server's side of the calls of a producer, of a reader and of kafkajs' admin client, by kafkajs' decoder and encoder, so that
 * nothing of the product is held against itself: https://kafka.apache.org/protocol#protocol_messages
 */
export interface OfTopic<T> {
  readonly topic: string;
  readonly partitions: readonly T[];
}

export interface Identity {
  readonly producerId: string;
  readonly epoch: number;
}

export type Isolation = 'uncommitted' | 'committed';

export interface Bodies {
  ApiVersions: Record<never, never>;
  SaslHandshake: { readonly mechanism: string };
  SaslAuthenticate: Record<never, never>;
  Metadata: { readonly topics: readonly string[] };
  ListOffsets: {
    readonly topics: readonly OfTopic<{
      readonly partition: number;
      readonly leaderEpoch: number;
      /** -1 is the end, -2 the beginning. */
      readonly time: number;
    }>[];
    readonly isolation: Isolation;
  };
  DescribeConfigs: {
    readonly resources: readonly { readonly type: number; readonly name: string }[];
  };
  Fetch: {
    readonly waitMs: number;
    readonly isolation: Isolation;
    readonly topics: readonly OfTopic<{
      readonly partition: number;
      readonly offset: number;
      readonly maxBytes: number;
    }>[];
  };
  FindCoordinator: { readonly transactionalId: string };
  InitProducerId: { readonly transactionalId: string | null; readonly own: Identity };
  AddPartitionsToTxn: {
    readonly transactionalId: string;
    readonly own: Identity;
    readonly topics: readonly OfTopic<number>[];
  };
  Produce: {
    readonly transactionalId: string | null;
    readonly topics: readonly OfTopic<{ readonly partition: number; readonly batch: Buffer }>[];
  };
  EndTxn: {
    readonly transactionalId: string;
    readonly own: Identity;
    readonly outcome: 'commit' | 'abort';
  };
}

export type Api = keyof Bodies;

/** The versions that are spoken: where there are two, kafkajs' own clients use the older one. */
const KEYS: Readonly<Record<Api, readonly [key: number, newest: number, older?: number]>> = {
  Produce: [0, 7],
  Fetch: [1, 10],
  ListOffsets: [2, 4, 3],
  Metadata: [3, 8, 6],
  FindCoordinator: [10, 2],
  SaslHandshake: [17, 1],
  ApiVersions: [18, 2],
  InitProducerId: [22, 4],
  AddPartitionsToTxn: [24, 1],
  EndTxn: [26, 1],
  DescribeConfigs: [32, 2, 1],
  SaslAuthenticate: [36, 1],
};
const NAMES = new Map(Object.entries(KEYS).map(([name, [key]]) => [key, name as Api]));

export interface Request<A extends Api = Api> {
  readonly api: A;
  readonly version: number;
  readonly correlationId: number;
  readonly body: Bodies[A];
}

/** @param frame What stands behind its length. */
export function readRequest(frame: Buffer): Request {
  const decoder = new Decoder(frame);
  const key = decoder.readInt16();
  const version = decoder.readInt16();
  const api = NAMES.get(key);
  if (!api || !KEYS[api].slice(1).includes(version))
    throw new Error(`nobody speaks ${key} in version ${version}`);
  const correlationId = decoder.readInt32();
  decoder.readString(); // the client
  return { api, version, correlationId, body: READERS[api](decoder, version) };
}

const identityOf = (from: Decoder): Identity => ({
  producerId: from.readInt64().toString(),
  epoch: from.readInt16(),
});

const isolationOf = (from: Decoder): Isolation =>
  from.readInt8() === 1 ? 'committed' : 'uncommitted';
const int64 = (from: Decoder) => Number(from.readInt64().toString());

const READERS: { readonly [A in Api]: (from: Decoder, version: number) => Bodies[A] } = {
  ApiVersions: () => ({}),
  SaslHandshake: (from) => ({ mechanism: from.readString()! }),
  SaslAuthenticate: () => ({}),
  Metadata: (from) => ({ topics: from.readArray((each) => each.readString()!) }),
  ListOffsets: (from, version) => {
    from.readInt32(); // no replica
    const isolation = isolationOf(from);
    // The newer version is that of the producer, which must not count what is not committed.
    if (version >= 4 && isolation !== 'committed')
      throw new Error('what is not committed counts, too');
    return {
      isolation,
      topics: from.readArray((topic) => ({
        topic: topic.readString()!,
        partitions: topic.readArray((each) => ({
          partition: each.readInt32(),
          leaderEpoch: version >= 4 ? each.readInt32() : -1,
          time: int64(each),
        })),
      })),
    };
  },
  DescribeConfigs: (from) => ({
    resources: from.readArray((each) => {
      const resource = { type: each.readInt8(), name: each.readString()! };
      each.readArray((name) => name.readString()); // all are told
      return resource;
    }),
  }),
  Fetch: (from) => {
    from.readInt32(); // no replica
    const waitMs = from.readInt32();
    from.readInt32(); // bytes at least
    from.readInt32(); // and at most
    const isolation = isolationOf(from);
    from.readInt32(); // no session
    from.readInt32(); // nor its epoch
    const topics = from.readArray((topic) => ({
      topic: topic.readString()!,
      partitions: topic.readArray((each) => {
        const partition = each.readInt32();
        each.readInt32(); // the leader's epoch
        const offset = int64(each);
        each.readInt64(); // where a replica's log begins
        return { partition, offset, maxBytes: each.readInt32() };
      }),
    }));
    return { waitMs, isolation, topics };
  },
  FindCoordinator: (from) => ({ transactionalId: from.readString()! }),
  InitProducerId: (from) => {
    from.readInt8(); // tags of its header
    const transactionalId = from.readUVarIntString();
    from.readInt32(); // its time limit
    return { transactionalId, own: identityOf(from) };
  },
  AddPartitionsToTxn: (from) => ({
    transactionalId: from.readString()!,
    own: identityOf(from),
    topics: from.readArray((topic) => ({
      topic: topic.readString()!,
      partitions: topic.readArray((each) => each.readInt32()),
    })),
  }),
  Produce: (from) => {
    const transactionalId = from.readString();
    if (from.readInt16() !== -1) throw new Error('not all replicas must have it');
    from.readInt32(); // how long they may take
    const topics = from.readArray((topic) => ({
      topic: topic.readString()!,
      partitions: topic.readArray((each) => ({
        partition: each.readInt32(),
        batch: each.readBytes()!,
      })),
    }));
    return { transactionalId, topics };
  },
  EndTxn: (from) => ({
    transactionalId: from.readString()!,
    own: identityOf(from),
    outcome: from.readInt8() === 1 ? 'commit' : 'abort',
  }),
};

export interface PartitionAnswer {
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset?: number;
}

export interface FetchedPartition {
  readonly partition: number;
  readonly errorCode: number;
  readonly end: number;
  /** Where the first transaction that is open begins; the end without one. */
  readonly stableEnd: number;
  readonly aborted: readonly { readonly producerId: string; readonly firstOffset: number }[];
  readonly records: Buffer;
}

export interface Led {
  readonly partition: number;
  readonly leader: number;
  readonly leaderEpoch: number;
}

export interface BrokerAddress {
  readonly id: number;
  readonly host: string;
  readonly port: number;
}

export interface Answers {
  ApiVersions: Record<never, never>;
  SaslHandshake: Record<never, never>;
  SaslAuthenticate: { readonly lifetimeMs: number };
  Metadata: {
    readonly brokers: readonly BrokerAddress[];
    readonly topics: readonly (OfTopic<Led> & { readonly errorCode: number })[];
  };
  ListOffsets: {
    readonly topics: readonly OfTopic<PartitionAnswer & { readonly offset?: number }>[];
  };
  DescribeConfigs: {
    readonly resources: readonly {
      readonly type: number;
      readonly name: string;
      readonly settings: Readonly<Record<string, string>>;
    }[];
  };
  Fetch: { readonly errorCode: number; readonly topics: readonly OfTopic<FetchedPartition>[] };
  FindCoordinator: { readonly errorCode: number; readonly broker: BrokerAddress };
  InitProducerId: Identity & { readonly errorCode: number };
  AddPartitionsToTxn: { readonly topics: readonly OfTopic<PartitionAnswer>[] };
  Produce: { readonly topics: readonly OfTopic<PartitionAnswer>[] };
  EndTxn: { readonly errorCode: number };
}

/** An answer with its length. */
export function writeAnswer<A extends Api>(request: Request<A>, answer: Answers[A]): Buffer {
  return writeBytes(request, WRITERS[request.api](answer, request.version).buffer);
}

/** An answer whose body is `bytes`, whatever they say, with its length. */
export function writeBytes({ correlationId }: Request, bytes: Buffer): Buffer {
  const head = new Encoder().writeInt32(correlationId).buffer;
  return new Encoder().writeBytes(Buffer.concat([head, bytes])).buffer;
}

/** Puts into an answer to Metadata for how long nothing more is read, ms. */
export function sayThrottled(metadata: Buffer, ms: number): Buffer {
  metadata.writeInt32BE(ms, 4 + 4); // behind its length and which request it answers
  return metadata;
}

const enc = () => new Encoder();
const list = <T>(items: readonly T[], one: (item: T) => Encoder) =>
  enc().writeArray(items.map(one));
const NOT_THROTTLED = 0;

const WRITERS: { readonly [A in Api]: (answer: Answers[A], version: number) => Encoder } = {
  ApiVersions: () =>
    enc()
      .writeInt16(0)
      .writeEncoder(
        list(Object.values(KEYS), ([key, version]) =>
          enc().writeInt16(key).writeInt16(0).writeInt16(version),
        ),
      )
      .writeInt32(NOT_THROTTLED),
  SaslHandshake: () => enc().writeInt16(0).writeInt32(1).writeString('PLAIN'),
  SaslAuthenticate: ({ lifetimeMs }) =>
    enc().writeInt16(0).writeString(null).writeBytes(Buffer.alloc(0)).writeInt64(lifetimeMs),
  Metadata: ({ brokers, topics }, version) =>
    enc()
      .writeInt32(NOT_THROTTLED)
      .writeEncoder(
        list(brokers, ({ id, host, port }) =>
          enc().writeInt32(id).writeString(host).writeInt32(port).writeString(null),
        ),
      )
      .writeString('a cluster')
      .writeInt32(brokers[0]!.id)
      .writeEncoder(
        list(topics, ({ errorCode, topic, partitions }) =>
          enc()
            .writeInt16(errorCode)
            .writeString(topic)
            .writeInt8(0)
            .writeEncoder(list(partitions, (each) => metadataOf(each, version)))
            .writeEncoder(operationsOf(version)),
        ),
      )
      .writeEncoder(operationsOf(version)),
  ListOffsets: ({ topics }, version) =>
    enc()
      .writeInt32(NOT_THROTTLED)
      .writeEncoder(
        topicsOf(topics, ({ partition, errorCode, offset = -1 }) => {
          const found = enc()
            .writeInt32(partition)
            .writeInt16(errorCode)
            .writeInt64(-1)
            .writeInt64(offset);
          return version >= 4 ? found.writeInt32(0) : found;
        }),
      ),
  DescribeConfigs: ({ resources }) =>
    enc()
      .writeInt32(NOT_THROTTLED)
      .writeEncoder(
        list(resources, ({ type, name, settings }) =>
          enc()
            .writeInt16(0)
            .writeString(null)
            .writeInt8(type)
            .writeString(name)
            .writeEncoder(
              list(Object.entries(settings), ([key, value]) =>
                enc()
                  .writeString(key)
                  .writeString(value)
                  .writeInt8(0)
                  .writeInt8(1)
                  .writeInt8(0)
                  .writeArray([]),
              ),
            ),
        ),
      ),
  Fetch: ({ errorCode, topics }) =>
    enc()
      .writeInt32(NOT_THROTTLED)
      .writeInt16(errorCode)
      .writeInt32(0)
      .writeEncoder(
        topicsOf(
          topics,
          ({ partition, errorCode: ofPartition, end, stableEnd, aborted, records }) =>
            enc()
              .writeInt32(partition)
              .writeInt16(ofPartition)
              .writeInt64(end)
              .writeInt64(stableEnd)
              .writeInt64(0)
              .writeEncoder(
                list(aborted, ({ producerId, firstOffset }) =>
                  enc().writeInt64(producerId).writeInt64(firstOffset),
                ),
              )
              .writeBytes(records),
        ),
      ),
  FindCoordinator: ({ errorCode, broker: { id, host, port } }) =>
    enc()
      .writeInt32(NOT_THROTTLED)
      .writeInt16(errorCode)
      .writeString(null)
      .writeInt32(id)
      .writeString(host)
      .writeInt32(port),
  InitProducerId: ({ errorCode, producerId, epoch }) =>
    enc()
      .writeInt8(0) // tags of its header
      .writeInt32(NOT_THROTTLED)
      .writeInt16(errorCode)
      .writeInt64(producerId)
      .writeInt16(epoch)
      .writeInt8(0),
  AddPartitionsToTxn: ({ topics }) =>
    enc()
      .writeInt32(NOT_THROTTLED)
      .writeEncoder(
        topicsOf(topics, ({ partition, errorCode }) =>
          enc().writeInt32(partition).writeInt16(errorCode),
        ),
      ),
  Produce: ({ topics }) =>
    enc()
      .writeEncoder(
        topicsOf(topics, ({ partition, errorCode, baseOffset = -1 }) =>
          enc()
            .writeInt32(partition)
            .writeInt16(errorCode)
            .writeInt64(baseOffset)
            .writeInt64(-1)
            .writeInt64(0),
        ),
      )
      .writeInt32(NOT_THROTTLED),
  EndTxn: ({ errorCode }) => enc().writeInt32(NOT_THROTTLED).writeInt16(errorCode),
};

/** Nobody has asked for the operations that it may do. */
function operationsOf(version: number): Encoder {
  return version >= 8 ? enc().writeInt32(-(2 ** 31)) : enc();
}

function metadataOf({ partition, leader, leaderEpoch }: Led, version: number): Encoder {
  const LEADER_NOT_AVAILABLE = 5;
  const replicas = leader < 0 ? [] : [enc().writeInt32(leader)];
  const led = enc()
    .writeInt16(leader < 0 ? LEADER_NOT_AVAILABLE : 0)
    .writeInt32(partition)
    .writeInt32(leader);
  return (version >= 7 ? led.writeInt32(leaderEpoch) : led)
    .writeArray(replicas)
    .writeArray(replicas)
    .writeArray([]);
}

function topicsOf<T>(topics: readonly OfTopic<T>[], one: (partition: T) => Encoder): Encoder {
  return list(topics, ({ topic, partitions }) =>
    enc().writeString(topic).writeEncoder(list(partitions, one)),
  );
}
