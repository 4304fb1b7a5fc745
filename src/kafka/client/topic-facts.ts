// Facts about topics that any broker knows, for readers: first and last offsets, partition counts, settings. A broker that is cut off from
// the others may report outdated ones; producers use `sinks/producer/coordinator.ts` instead.

import { singleFlight } from '../../core/single-flight.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { KAFKA_LIMITS } from '../../core/retries.ts';
import type { Isolation, Offsets, TopicBounds } from '../log.ts';
import { withBrokers } from './brokers.ts';
import type { Brokers, ClusterAccess } from './brokers.ts';
import {
  ERROR,
  errorAction,
  missingPartitionError,
  noLeaderError,
  partitionError,
  protocolError,
} from './protocol-errors.ts';
import {
  addressesIn,
  describeSettings,
  EARLIEST,
  LATEST,
  listOffsets,
  metadata,
} from './topic-calls.ts';
import type { Metadata } from './topic-calls.ts';

/** Calls {@link withBrokers} with the time limits of command-line commands and topic readers. `ask` may be called several times. */
export function queryBrokers<T>(
  cluster: ClusterAccess,
  ask: (brokers: Brokers) => Promise<T>,
): Promise<T> {
  return withBrokers(cluster, KAFKA_LIMITS.readerQuery, ask);
}

/** Returns the names in `topics` whose topic exists and is visible to this client's user. */
export function existing(
  cluster: ClusterAccess,
  topics: readonly string[],
): Promise<ReadonlySet<string>> {
  return queryBrokers(cluster, async (brokers) => {
    const answer = await brokers.sendToAny(metadata(topics));
    return existingIn(answer);
  });
}

/**
 * Returns the names of the topics in a Metadata response that exist and that this client's user may see. Topics without a partition
 * leader are included.
 */
export function existingIn({ topics }: Metadata): ReadonlySet<string> {
  const there = topics.filter(
    ({ errorCode }) => errorCode === 0 || errorCode === ERROR.LEADER_NOT_AVAILABLE,
  );
  return new Set(there.map(({ topic }) => topic));
}

export function missingTopicError(topic: string, remedy: string): CellarstreamError {
  return new CellarstreamError('POSITION', `there is no topic ${topic}: ${remedy}`, {
    context: { topic },
  });
}

/**
 * Requests the metadata of a topic. @param remedy Advice in the error for a missing topic; makes that error final. Without `remedy`, the
 * error can be retried, as the topic may be new.
 */
async function describedTopic(brokers: Brokers, topic: string, remedy?: string): Promise<Metadata> {
  const answer = await brokers.sendToAny(metadata([topic]));
  const { errorCode = 0 } = answer.topics[0] ?? {};
  const isAbsent =
    errorCode === ERROR.UNKNOWN_TOPIC_OR_PARTITION || errorCode === ERROR.INVALID_TOPIC_EXCEPTION;
  if (isAbsent && remedy !== undefined) throw missingTopicError(topic, remedy);
  if (errorCode !== 0) throw protocolError(errorCode, topic);
  return answer;
}

/**
 * Returns the number of partitions of a topic. @throws CellarstreamError `POSITION`, with the advice `remedy`, if the topic does not exist.
 */
export function partitionCount(
  cluster: ClusterAccess,
  topic: string,
  remedy: string,
): Promise<number> {
  return queryBrokers(cluster, async (brokers) => {
    const { topics } = await describedTopic(brokers, topic, remedy);
    return topics[0]!.partitions.length;
  });
}

/**
 * Returns the first offset and the end offset of each partition. The end offset is the last stable offset (isolation `committed`) or the
 * high watermark (`uncommitted`).
 *
 * @param remedy Advice in the error `POSITION` for a missing topic. Without it the error is `KAFKA_UNREACHABLE`, after retries.
 */
export function topicBounds(
  cluster: ClusterAccess,
  topic: string,
  remedy?: string,
  isolation: Isolation = 'committed',
): Promise<TopicBounds> {
  return queryBrokers(cluster, async (brokers) =>
    boundsIn(brokers, await describedTopic(brokers, topic, remedy), isolation),
  );
}

/**
 * Returns for each partition the offset of the first message or transaction marker with a timestamp of at least `time`, in epoch ms.
 * Partitions without such a message or marker before the last stable offset are left out.
 */
export function offsetsSince(
  cluster: ClusterAccess,
  topic: string,
  time: number,
): Promise<Offsets> {
  return queryBrokers(cluster, async (brokers) => {
    const described = await describedTopic(brokers, topic);
    const found = await offsetsIn(brokers, described, BigInt(Math.floor(time)), 'committed');
    return new Map([...found].filter(([, offset]) => offset >= 0n));
  });
}

export function topicSettings(
  cluster: ClusterAccess,
  topic: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  return queryBrokers(cluster, async (brokers) => {
    const [found] = await brokers.sendToAny(describeSettings([topic], names));
    if (found?.errorCode) throw protocolError(found.errorCode, `the settings of ${topic}`);
    return found?.settings ?? new Map<string, string>();
  });
}

/**
 * Requests the first and the end offset of each partition of a topic from the partition leaders.
 *
 * @param described Metadata of that topic alone.
 */
export async function boundsIn(
  brokers: Brokers,
  described: Metadata,
  isolation: Isolation,
): Promise<TopicBounds> {
  const [lows, highs] = await Promise.all([
    offsetsIn(brokers, described, EARLIEST, isolation),
    offsetsIn(brokers, described, LATEST, isolation),
  ]);
  return new Map([...lows].map(([at, low]) => [at, { low, high: highs.get(at)! }]));
}

async function offsetsIn(
  brokers: Brokers,
  described: Metadata,
  time: bigint,
  isolation: Isolation,
): Promise<Offsets> {
  const { topic, partitions } = described.topics[0]!;
  const addresses = addressesIn(described);
  const leaders = [...new Set(partitions.map(({ leader }) => leader))];
  const found = await Promise.all(
    leaders.map(async (leader) => {
      const led = partitions.filter((each) => each.leader === leader);
      const address = addresses.get(leader);
      if (!address) throw noLeaderError(topic, led[0]!.partition);
      const answers = await brokers.send(address, listOffsets(time, topic, led, isolation));
      return led.map(({ partition }) => {
        const answer = answers.find((each) => each.partition === partition);
        if (!answer) throw missingPartitionError(address, 'ListOffsets', topic, partition);
        const { errorCode, offset } = answer;
        if (errorAction(errorCode) !== 'done') throw partitionError(errorCode, topic, partition);
        return [partition, offset] as const;
      });
    }),
  );
  return new Map(found.flat().toSorted(([one], [other]) => one - other));
}

export type ClusterFacts = ReturnType<typeof clusterFacts>;

/**
 * Creates the functions that request a cluster's id and the bounds of its topics. Concurrent callers, such as lists that are opened
 * together, share requests.
 */
export function clusterFacts(cluster: ClusterAccess) {
  const query = <T>(ask: (brokers: Brokers) => Promise<T>) =>
    singleFlight(() => withBrokers(cluster, KAFKA_LIMITS.taskQuery, ask));
  const bounds = new Map<string, () => Promise<TopicBounds>>();
  return {
    id: query(async (brokers) => (await brokers.sendToAny(metadata([]))).clusterId),
    bounds: (topic: string, isolation: Isolation) => {
      const name = `${topic} ${isolation}`;
      const request = async (brokers: Brokers) =>
        boundsIn(brokers, await describedTopic(brokers, topic), isolation);
      const ask = bounds.get(name) ?? query(request);
      bounds.set(name, ask);
      return ask();
    },
  };
}
