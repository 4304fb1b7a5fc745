// What any broker is asked about topics: who leads their partitions, where these begin and end, how they are set. kafkajs asks it too, but
// refuses all topics where one may not be seen. All brokers from Kafka 2.7 on know these versions.

import type { Isolation } from '../sink.ts';
import { array, int32, int64, int8, string } from './protocol.ts';
import type { Address, Call } from './protocol.ts';

/** Some partitions of a topic. */
export interface OfTopic<T> {
  readonly topic: string;
  readonly partitions: readonly T[];
}

export interface Metadata {
  /** Names the cluster. */
  readonly clusterId: string;
  readonly controllerId: number;
  readonly brokers: readonly (Address & { readonly id: number })[];
  readonly topics: readonly DescribedTopic[];
}

interface DescribedTopic extends OfTopic<Led> {
  readonly errorCode: number;
  /** Bits of the operations that this user may do with it (KIP-430); undefined where the broker does not say. */
  readonly operations: number | undefined;
}

/** A partition, and the broker that leads it. */
interface Led {
  readonly partition: number;
  /** -1 where there is none. */
  readonly leader: number;
  /** How often the leader has changed: who says less has not heard of it. */
  readonly leaderEpoch: number;
  /** Number of copies. */
  readonly replicas: number;
}

/** Where each broker is, by its id. */
export function addressesIn({ brokers }: Metadata): ReadonlyMap<number, Address> {
  return new Map(brokers.map(({ id, host, port }) => [id, { host, port }]));
}

/** Number of operations that were not asked for. */
const NOT_SAID = -(2 ** 31);

/** @param withOperations Whether to ask for what this user may do. Default false. */
export function metadata(topics: readonly string[], withOperations = false): Call<Metadata> {
  const NO_CREATION = 0;
  const NOT_OF_CLUSTER = 0;
  return {
    name: 'Metadata',
    key: 3,
    version: 8,
    body: Buffer.concat([
      array(topics, string),
      int8(NO_CREATION),
      int8(NOT_OF_CLUSTER),
      int8(Number(withOperations)),
    ]),
    read: (answer) => {
      const ids = () => answer.array(() => answer.int32());
      const brokers = answer.array(() => {
        const broker = { id: answer.int32(), host: answer.string()!, port: answer.int32() };
        answer.string(); // its rack
        return broker;
      });
      const clusterId = answer.string() ?? '';
      const controllerId = answer.int32();
      const described = answer.array(() => {
        const head = { errorCode: answer.int16(), topic: answer.string()! };
        answer.int8(); // whether it is internal
        const partitions = answer.array(() => {
          answer.int16(); // an error: then it has no leader
          const led = {
            partition: answer.int32(),
            leader: answer.int32(),
            leaderEpoch: answer.int32(),
            replicas: ids().length,
          };
          ids(); // in sync
          ids(); // offline
          return led;
        });
        const bits = answer.int32();
        return { ...head, partitions, operations: bits === NOT_SAID ? undefined : bits };
      });
      return { clusterId, controllerId, brokers, topics: described };
    },
  };
}

/** What a leader says of one of its partitions. */
interface Listed {
  readonly partition: number;
  readonly errorCode: number;
  readonly offset: bigint;
}

/** By the protocol. */
export const ISOLATION = { uncommitted: 0, committed: 1 } as const;

/** Times that stand for the ends of a partition. */
export const EARLIEST = -2n;
export const LATEST = -1n;

/**
 * Where partitions begin, where what is to be read ends, or where the first message of a time or later is (-1 where there is none), in ms
 * since 1970. A leader that is none any more, and has not heard of it, refuses who knows of a newer one (KIP-320).
 */
export function listOffsets(
  time: bigint,
  of: { readonly topic: string; readonly led: readonly Led[]; readonly isolation: Isolation },
): Call<readonly Listed[]> {
  const { topic, led, isolation } = of;
  const NO_REPLICA = -1;
  return {
    name: 'ListOffsets',
    key: 2,
    version: 4,
    body: Buffer.concat([
      int32(NO_REPLICA),
      int8(ISOLATION[isolation]),
      array([topic], (name) =>
        Buffer.concat([
          string(name),
          array(led, ({ partition, leaderEpoch }) =>
            Buffer.concat([int32(partition), int32(leaderEpoch), int64(time)]),
          ),
        ]),
      ),
    ]),
    read: (answer) =>
      answer
        .array(() => {
          answer.string(); // the topic
          return answer.array(() => {
            const head = { partition: answer.int32(), errorCode: answer.int16() };
            answer.int64(); // its time
            const offset = answer.int64();
            answer.int32(); // the epoch of the leader that wrote it
            return { ...head, offset };
          });
        })
        .flat(),
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
