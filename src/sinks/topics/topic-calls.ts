import type { Address, Call } from '../client/protocol.ts';
import { array, int16, int32, int8, string } from '../client/protocol.ts';

// Requests about topics. kafkajs has them too, but leaves out the brokers' own message to a refused topic, and refuses all topics
// where one may not be seen. Each version is the newest that has no tagged fields; all brokers from Kafka 2.7 on know it.

/** A topic as the cluster's metadata describe it. */
export interface DescribedTopic {
  readonly topic: string;
  readonly errorCode: number;
  readonly partitions: readonly {
    readonly partition: number;
    /** -1 where there is none. */
    readonly leader: number;
    /** Number of copies. */
    readonly replicas: number;
  }[];
  /** Bits of the operations that this user may do with it (KIP-430); undefined where the broker does not say. */
  readonly operations: number | undefined;
}

export interface DescribedTopics {
  readonly brokers: readonly (Address & { readonly id: number })[];
  readonly controllerId: number;
  readonly topics: readonly DescribedTopic[];
  /** The same of the cluster. */
  readonly operations: number | undefined;
}

/** How a broker says that operations were not asked for. */
const NOT_SAID = -(2 ** 31);

/** @param withOperations Whether to ask for what this user may do. */
export function describeTopics(
  names: readonly string[],
  withOperations: boolean,
): Call<DescribedTopics> {
  const NO_CREATION = 0;
  const asked = withOperations ? 1 : 0;
  return {
    name: 'Metadata',
    key: 3,
    version: 8,
    body: Buffer.concat([array(names, string), int8(NO_CREATION), int8(asked), int8(asked)]),
    read: (answer) => {
      const operations = () => {
        const bits = answer.int32();
        return bits === NOT_SAID ? undefined : bits;
      };
      const ids = () => answer.array(() => answer.int32());
      const brokers = answer.array(() => {
        const broker = { id: answer.int32(), host: answer.string()!, port: answer.int32() };
        answer.string(); // its rack
        return broker;
      });
      answer.string(); // the cluster's id
      const controllerId = answer.int32();
      const topics = answer.array(() => {
        const head = { errorCode: answer.int16(), topic: answer.string()! };
        answer.int8(); // whether it is internal
        const partitions = answer.array(() => {
          answer.int16(); // an error: then it has no leader
          const led = { partition: answer.int32(), leader: answer.int32() };
          answer.int32(); // the leader's epoch
          const replicas = ids().length;
          ids(); // in sync
          ids(); // offline
          return { ...led, replicas };
        });
        return { ...head, partitions, operations: operations() };
      });
      return { brokers, controllerId, topics, operations: operations() };
    },
  };
}

/** A topic to be created. */
export interface NewTopic {
  readonly topic: string;
  readonly numPartitions: number;
  /** {@link BROKER_DEFAULT}: as many as the brokers give by default. */
  readonly replicationFactor: number;
  readonly configEntries: readonly { readonly name: string; readonly value: string }[];
}

/** Error code of topics that the user may not see, make or use. */
export const TOPIC_AUTHORIZATION_FAILED = 29;
/** Lets the brokers choose the replication factor (KIP-464). */
export const BROKER_DEFAULT = -1;

/** Result of the request to create one topic. */
export interface TopicAnswer {
  readonly topic: string;
  readonly errorCode: number;
  /** The broker's words. */
  readonly message: string | null;
}

/** For the controller. @param isDryRun Whether it only says what would come of it. */
export function createTopicsCall(
  topics: readonly NewTopic[],
  isDryRun: boolean,
): Call<readonly TopicAnswer[]> {
  const WITHIN_MS = 8_000; // less than the answer may take
  return {
    name: 'CreateTopics',
    key: 19,
    version: 4,
    body: Buffer.concat([
      array(topics, ({ topic, numPartitions, replicationFactor, configEntries }) =>
        Buffer.concat([
          string(topic),
          int32(numPartitions),
          int16(replicationFactor),
          array([], int32), // brokers by partition: they choose
          array(configEntries, ({ name, value }) => Buffer.concat([string(name), string(value)])),
        ]),
      ),
      int32(WITHIN_MS),
      int8(isDryRun ? 1 : 0),
    ]),
    read: (answer) =>
      answer.array(() => ({
        topic: answer.string()!,
        errorCode: answer.int16(),
        message: answer.string(),
      })),
  };
}

/** A topic's settings, or why they are not told. */
export interface TopicSettings {
  readonly topic: string;
  readonly errorCode: number;
  readonly settings: ReadonlyMap<string, string>;
}

export function describeSettings(
  topics: readonly string[],
  names: readonly string[],
): Call<readonly TopicSettings[]> {
  const TOPIC = 2;
  const NO_SYNONYMS = 0;
  return {
    name: 'DescribeConfigs',
    key: 32,
    version: 1,
    body: Buffer.concat([
      array(topics, (topic) => Buffer.concat([int8(TOPIC), string(topic), array(names, string)])),
      int8(NO_SYNONYMS),
    ]),
    read: (answer) =>
      answer.array(() => {
        const errorCode = answer.int16();
        answer.string(); // the error in words
        answer.int8(); // it is a topic
        const topic = answer.string()!;
        const entries = answer.array(() => {
          const entry = [answer.string()!, answer.string()] as const;
          answer.int8(); // whether it can be set
          answer.int8(); // where it comes from
          answer.int8(); // whether it is secret
          answer.array(() => [answer.string(), answer.string(), answer.int8()]); // synonyms
          return entry;
        });
        const known = entries.flatMap(([name, value]) =>
          value === null ? [] : [[name, value] as const],
        );
        return { topic, errorCode, settings: new Map(known) };
      }),
  };
}
