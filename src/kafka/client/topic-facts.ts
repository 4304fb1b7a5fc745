// Facts about topics that any broker knows, for readers: first and last offsets, partition counts, settings. A broker that is cut off from
// the others may report outdated ones; producers use `sinks/producer/coordinator.ts` instead.

import { singleFlight } from '../../core/single-flight.ts';
import { CellarstreamError } from '../../core/errors.ts';
import type { Bounds, Isolation, Offsets } from '../log.ts';
import { withBrokers } from './brokers.ts';
import type { Asked, Brokers } from './brokers.ts';
import {
  ERROR,
  errorAction,
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

/**
 * How long a request about a topic is retried, in ms. Too small: a new topic or a new partition leader, known after a moment, is an error.
 */
const ASKED_MS = 10_000;
/**
 * How long a request about a topic is retried while no broker responds at all, in ms. Too large: commands report late that Kafka is
 * unreachable.
 */
const AWAY_MS = 4_000;

/**
 * Calls `ask` with the brokers of a cluster, and repeats it for some seconds if it fails. `ask` must be safe to repeat.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, and the errors of `ask`.
 */
export function askAbout<T>(asked: Asked, ask: (brokers: Brokers) => Promise<T>): Promise<T> {
  return withBrokers(asked, ASKED_MS, ask, AWAY_MS);
}

/** Returns those of the topics that exist and that this user may see. */
export function existing(asked: Asked, topics: readonly string[]): Promise<ReadonlySet<string>> {
  return askAbout(asked, async (brokers) => {
    const answer = await brokers.sendToAny(metadata(topics));
    const there = answer.topics.filter(
      ({ errorCode }) => errorCode === 0 || errorCode === ERROR.LEADER_NOT_AVAILABLE,
    );
    return new Set(there.map(({ topic }) => topic));
  });
}

/** Creates the error for a topic that does not exist. @param remedy Advice at the end of the message: consumers do not create topics. */
export function missingTopicError(topic: string, remedy: string): CellarstreamError {
  return new CellarstreamError('POSITION', `there is no topic ${topic}: ${remedy}`, {
    context: { topic },
  });
}

/**
 * Requests the metadata of a topic.
 *
 * @param remedy Advice in the error if the topic does not exist; that error is not retried. Without it the error is retried, as brokers may
 * know a new topic in a moment.
 */
async function describedTopic(
  brokers: Brokers,
  topic: string,
  remedy: string | undefined,
): Promise<Metadata> {
  const answer = await brokers.sendToAny(metadata([topic]));
  const { errorCode = 0 } = answer.topics[0] ?? {};
  const isAbsent =
    errorCode === ERROR.UNKNOWN_TOPIC_OR_PARTITION || errorCode === ERROR.INVALID_TOPIC_EXCEPTION;
  if (isAbsent && remedy !== undefined) throw missingTopicError(topic, remedy);
  if (errorCode !== 0) throw protocolError(errorCode, topic);
  return answer;
}

/**
 * Returns the number of partitions of a topic.
 *
 * @throws CellarstreamError `POSITION` with the advice `remedy` if the topic does not exist; otherwise as {@link askAbout}.
 */
export function partitionCount(asked: Asked, topic: string, remedy: string): Promise<number> {
  return askAbout(asked, async (brokers) => {
    const { topics } = await describedTopic(brokers, topic, remedy);
    return topics[0]!.partitions.length;
  });
}

/**
 * Returns the first offset of each partition of a topic, and the end of its committed messages.
 *
 * @param remedy As for {@link partitionCount}; without it, the error for a missing topic is `KAFKA_UNREACHABLE`, after retries.
 */
export function topicBounds(
  asked: Asked,
  topic: string,
  remedy?: string,
): Promise<ReadonlyMap<number, Bounds>> {
  return askAbout(asked, async (brokers) =>
    boundsIn(brokers, await describedTopic(brokers, topic, remedy)),
  );
}

/**
 * Returns by partition the offset of the first message with a timestamp of at least `time`, in ms since 1970. Transaction markers count as
 * messages. Partitions without such a message are left out.
 */
export function offsetsSince(asked: Asked, topic: string, time: number): Promise<Offsets> {
  return askAbout(asked, async (brokers) => {
    const described = await describedTopic(brokers, topic, undefined);
    const at = BigInt(Math.floor(time));
    const found = await offsetsIn(brokers, described, at, 'committed');
    return new Map([...found].filter(([, offset]) => offset >= 0n));
  });
}

/** Returns those settings of a topic that have these names. */
export function topicSettings(
  asked: Asked,
  topic: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  return askAbout(asked, async (brokers) => {
    const [found] = await brokers.sendToAny(describeSettings([topic], names));
    if (found?.errorCode) throw protocolError(found.errorCode, `the settings of ${topic}`);
    return found?.settings ?? new Map<string, string>();
  });
}

/**
 * Requests the first and the end offset of each partition of a topic from the partition leaders. `described`: metadata of that one topic.
 */
export async function boundsIn(
  brokers: Brokers,
  described: Metadata,
  isolation: Isolation = 'committed',
): Promise<ReadonlyMap<number, Bounds>> {
  const [lows, highs] = await Promise.all(
    [EARLIEST, LATEST].map((time) => offsetsIn(brokers, described, time, isolation)),
  );
  return new Map(
    [...lows!].map(([partition, low]) => [partition, { low, high: highs!.get(partition)! }]),
  );
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
      const answers = await brokers.send(address, listOffsets(time, { topic, led, isolation }));
      return led.map(({ partition }) => {
        const answer = answers.find((each) => each.partition === partition);
        if (!answer) {
          throw new Error(`the ListOffsets response lacks partition ${partition} of ${topic}`);
        }
        const { errorCode, offset } = answer;
        if (errorAction(errorCode) !== 'done') throw partitionError(errorCode, topic, partition);
        return [partition, offset] as const;
      });
    }),
  );
  return new Map(found.flat().toSorted(([one], [other]) => one - other));
}

/**
 * Facts about a cluster and its topics that any broker knows. Concurrent callers, such as lists that are opened together, share one
 * request.
 */
export interface ClusterFacts {
  /** Returns the id of the cluster. */
  readonly id: () => Promise<string>;
  /** Returns the first and the end offset of each partition of a topic. */
  readonly bounds: (topic: string, isolation: Isolation) => Promise<ReadonlyMap<number, Bounds>>;
}

/** How long a task's request for facts about the cluster is retried, in ms. Short, because the task itself restarts after an error. */
const TASK_ASKED_MS = 5_000;

/** Creates the functions that request facts about a cluster. They throw the errors of {@link withBrokers}. */
export function clusterFacts(asked: Asked): ClusterFacts {
  const bounds = new Map<string, () => Promise<ReadonlyMap<number, Bounds>>>();
  return {
    id: singleFlight(async () => {
      const found = await withBrokers(asked, TASK_ASKED_MS, (any) => any.sendToAny(metadata([])));
      return found.clusterId;
    }),
    bounds: (topic, isolation) => {
      const name = `${topic} ${isolation}`;
      const known =
        bounds.get(name) ??
        singleFlight(() =>
          withBrokers(asked, TASK_ASKED_MS, async (brokers) =>
            boundsIn(brokers, await describedTopic(brokers, topic, undefined), isolation),
          ),
        );
      bounds.set(name, known);
      return known();
    },
  };
}
