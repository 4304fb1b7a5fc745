// What any broker knows of topics, for those who read them: where they begin and end, who leads them, how they are set. A broker that
// stands still may tell of less than there is: a producer asks in `producer/coordinator.ts`.

import { askedTogether } from '../../core/asked-together.ts';
import { CellarstreamError } from '../../core/errors.ts';
import type { Bounds, Isolation, Offsets } from '../sink.ts';
import { askBrokers } from './brokers.ts';
import type { Asked, Brokers } from './brokers.ts';
import { ERROR, meaningOf, noLeader, partitionError, protocolError } from './protocol-errors.ts';
import {
  addressesIn,
  describeSettings,
  EARLIEST,
  LATEST,
  listOffsets,
  metadata,
} from './topic-calls.ts';
import type { Metadata } from './topic-calls.ts';

/** How long brokers are asked, in ms: a topic that was just made, or a leader that has moved, is known after a moment. */
const ASKED_MS = 10_000;
/** The same while no broker answers at all: whoever started a command is to hear soon that Kafka is away. */
const AWAY_MS = 4_000;

/**
 * Asks brokers a question that is safe to repeat.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, and what the question throws.
 */
export function askAbout<T>(asked: Asked, ask: (brokers: Brokers) => Promise<T>): Promise<T> {
  return askBrokers(asked, ASKED_MS, ask, AWAY_MS);
}

/** Which of these topics are there, as far as this user may see them. */
export function existing(asked: Asked, topics: readonly string[]): Promise<ReadonlySet<string>> {
  return askAbout(asked, async (brokers) => {
    const answer = await brokers.askAny(metadata(topics));
    const there = answer.topics.filter(
      ({ errorCode }) => errorCode === 0 || errorCode === ERROR.LEADER_NOT_AVAILABLE,
    );
    return new Set(there.map(({ topic }) => topic));
  });
}

/** The error about a topic that is not there. @param remedy What to do: consumers make no topics. */
export function noTopic(topic: string, remedy: string): CellarstreamError {
  return new CellarstreamError('POSITION', `there is no topic ${topic}: ${remedy}`, {
    context: { topic },
  });
}

/**
 * The metadata of a topic.
 *
 * @param remedy Advice if it is not there, which is an error that no later try changes. Default: it may be known in a moment.
 */
async function describedTopic(
  brokers: Brokers,
  topic: string,
  remedy: string | undefined,
): Promise<Metadata> {
  const answer = await brokers.askAny(metadata([topic]));
  const { errorCode = 0 } = answer.topics[0] ?? {};
  const isAbsent =
    errorCode === ERROR.UNKNOWN_TOPIC_OR_PARTITION || errorCode === ERROR.INVALID_TOPIC_EXCEPTION;
  if (isAbsent && remedy !== undefined) throw noTopic(topic, remedy);
  if (errorCode !== 0) throw protocolError(errorCode, topic);
  return answer;
}

/**
 * How many partitions a topic has.
 *
 * @throws CellarstreamError `POSITION` where it isn't there, with `remedy`; else as {@link askAbout}.
 */
export function partitionCount(asked: Asked, topic: string, remedy: string): Promise<number> {
  return askAbout(asked, async (brokers) => {
    const { topics } = await describedTopic(brokers, topic, remedy);
    return topics[0]!.partitions.length;
  });
}

/**
 * Where the partitions of a topic begin, and where what is committed ends.
 *
 * @param remedy As for {@link partitionCount}; without one, a topic that is not there is `KAFKA_UNREACHABLE` in the end.
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
 * By partition, where the first message of a time (ms since 1970) or a later one is, at the earliest: markers of transactions count,
 * too. Partitions without one are left out.
 */
export function offsetsSince(asked: Asked, topic: string, time: number): Promise<Offsets> {
  return askAbout(asked, async (brokers) => {
    const described = await describedTopic(brokers, topic, undefined);
    const at = BigInt(Math.floor(time));
    const found = await offsetsIn(brokers, described, at, 'committed');
    return new Map([...found].filter(([, offset]) => offset >= 0n));
  });
}

/** A topic's settings of these names. */
export function topicSettings(
  asked: Asked,
  topic: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  return askAbout(asked, async (brokers) => {
    const [found] = await brokers.askAny(describeSettings([topic], names));
    if (found?.errorCode) throw protocolError(found.errorCode, `the settings of ${topic}`);
    return found?.settings ?? new Map<string, string>();
  });
}

/** Bounds as the leaders in the metadata know them; these are of one topic. */
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
      if (!address) throw noLeader(topic, led[0]!.partition);
      const answers = await brokers.ask(address, listOffsets(time, { topic, led, isolation }));
      return led.map(({ partition }) => {
        const answer = answers.find((each) => each.partition === partition);
        if (!answer) {
          throw new Error(
            `an answer to ListOffsets says nothing of partition ${partition} of ${topic}`,
          );
        }
        const { errorCode, offset } = answer;
        if (meaningOf(errorCode) !== 'done') throw partitionError(errorCode, topic, partition);
        return [partition, offset] as const;
      });
    }),
  );
  return new Map(found.flat().toSorted(([one], [other]) => one - other));
}

/** What any broker knows, asked once for all who ask at the same time, such as lists that are opened together. */
export interface ClusterFacts {
  /** Names the cluster. */
  readonly id: () => Promise<string>;
  /** Where the partitions of a topic begin and end. */
  readonly bounds: (topic: string, isolation: Isolation) => Promise<ReadonlyMap<number, Bounds>>;
}

/** How long brokers are asked for a task, which begins again after an error, in ms. */
const TASK_ASKED_MS = 5_000;

/** All of it throws what {@link askBrokers} does. */
export function clusterFacts(asked: Asked): ClusterFacts {
  const bounds = new Map<string, () => Promise<ReadonlyMap<number, Bounds>>>();
  return {
    id: askedTogether(async () => {
      const found = await askBrokers(asked, TASK_ASKED_MS, (any) => any.askAny(metadata([])));
      return found.clusterId;
    }),
    bounds: (topic, isolation) => {
      const name = `${topic} ${isolation}`;
      const known =
        bounds.get(name) ??
        askedTogether(() =>
          askBrokers(asked, TASK_ASKED_MS, async (brokers) =>
            boundsIn(brokers, await describedTopic(brokers, topic, undefined), isolation),
          ),
        );
      bounds.set(name, known);
      return known();
    },
  };
}
