// Requests about topics: partition leaders, first and last offsets, settings. kafkajs has them too, but fails for all topics if this user
// may not see one of them.

import type { Isolation } from '../log.ts';
import { array, createCall, int32, int64, int8, string } from './protocol.ts';
import type { Address, Call } from './protocol.ts';

export interface OfTopic<T> {
  readonly topic: string;
  readonly partitions: readonly T[];
}

export interface Metadata {
  /** Id of the cluster; empty if the broker reports none. */
  readonly clusterId: string;
  readonly controllerId: number;
  readonly brokers: readonly (Address & { readonly id: number })[];
  readonly topics: readonly DescribedTopic[];
}

interface DescribedTopic extends OfTopic<PartitionLeader> {
  readonly errorCode: number;
  /**
   * Bit set of the operations that this client's user may perform on the topic (KIP-430); undefined if the request did not ask for them, or
   * the broker does not report them.
   */
  readonly operations: number | undefined;
}

interface PartitionLeader {
  readonly partition: number;
  /** Broker id of the partition leader; -1 without one. */
  readonly leader: number;
  /**
   * Leader epoch of the partition, which rises with each change of its leader. If two brokers report different epochs, the lower one is
   * outdated.
   */
  readonly leaderEpoch: number;
  readonly replicas: number;
}

export function addressesIn({ brokers }: Metadata): ReadonlyMap<number, Address> {
  return new Map(brokers.map(({ id, host, port }) => [id, { host, port }]));
}

/** Value of the field for permitted operations in a Metadata response if the request did not ask for the operations. */
const OPERATIONS_NOT_RETURNED = -(2 ** 31);

/**
 * Creates a Metadata request for these topics. @param withOperations Whether to request the operations that this client's user may perform.
 */
export function metadata(topics: readonly string[], withOperations = false): Call<Metadata> {
  const NO_CREATION = 0;
  const NOT_OF_CLUSTER = 0;
  return createCall(
    'Metadata',
    [array(topics, string), int8(NO_CREATION), int8(NOT_OF_CLUSTER), int8(Number(withOperations))],
    (answer) => {
      const ids = () => answer.array(() => answer.int32());
      const brokers = answer.array(() => {
        const broker = { id: answer.int32(), host: answer.string()!, port: answer.int32() };
        answer.string(); // rack
        return broker;
      });
      const clusterId = answer.string() ?? '';
      const controllerId = answer.int32();
      const described = answer.array(() => {
        const head = { errorCode: answer.int16(), topic: answer.string()! };
        answer.int8(); // whether it is internal
        const partitions = answer.array(() => {
          answer.int16(); // error code: such a partition has no leader
          const led = {
            partition: answer.int32(),
            leader: answer.int32(),
            leaderEpoch: answer.int32(),
            replicas: ids().length,
          };
          ids(); // in-sync replicas
          ids(); // offline replicas
          return led;
        });
        const bits = answer.int32();
        const operations = bits === OPERATIONS_NOT_RETURNED ? undefined : bits;
        return { ...head, partitions, operations };
      });
      return { clusterId, controllerId, brokers, topics: described };
    },
  );
}

/** Kafka's numbers for the isolation levels `read_uncommitted` and `read_committed`. */
export const ISOLATION = { uncommitted: 0, committed: 1 } as const;

export const EARLIEST = -2n;
export const LATEST = -1n;

/**
 * Creates a ListOffsets request. `time` selects the offset that the response contains for each partition:
 *
 * - `EARLIEST`: the first offset;
 * - `LATEST`: the offset after the last message that a reader can see;
 * - a time in epoch ms: the offset of the first message with that timestamp or a later one; -1 without such a message.
 */
export function listOffsets(
  time: bigint,
  topic: string,
  led: readonly PartitionLeader[],
  isolation: Isolation,
) {
  const NO_REPLICA = -1;
  const partitions = array(led, ({ partition, leaderEpoch }) => [
    int32(partition),
    // A former leader refuses the request because of the epoch (KIP-320).
    int32(leaderEpoch),
    int64(time),
  ]);
  return createCall(
    'ListOffsets',
    [
      int32(NO_REPLICA),
      int8(ISOLATION[isolation]),
      array([topic], (name) => [string(name), partitions]),
    ],
    (answer) => {
      const topics = answer.array(() => {
        answer.string(); // topic
        return answer.array(() => {
          const head = { partition: answer.int32(), errorCode: answer.int16() };
          answer.int64(); // timestamp
          const offset = answer.int64();
          answer.int32(); // leader epoch
          return { ...head, offset };
        });
      });
      return topics.flat();
    },
  );
}

/** Settings of one topic, by the name of the setting. `errorCode`: Kafka's error code if the settings can't be read, otherwise 0. */
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
  return createCall(
    'DescribeConfigs',
    [
      array(topics, (topic) => [int8(TOPIC), string(topic), array(names, string)]),
      int8(NO_SYNONYMS),
    ],
    (answer) =>
      answer.array(() => {
        const errorCode = answer.int16();
        answer.string(); // error message
        answer.int8(); // resource type
        const topic = answer.string()!;
        const settings = new Map<string, string>();
        answer.array(() => {
          const name = answer.string()!;
          const value = answer.string();
          if (value !== null) settings.set(name, value);
          answer.int8(); // whether it is read-only
          answer.int8(); // source
          answer.int8(); // whether it is sensitive
          answer.array(() => [answer.string(), answer.string(), answer.int8()]); // synonyms
        });
        return { topic, errorCode, settings };
      }),
  );
}
