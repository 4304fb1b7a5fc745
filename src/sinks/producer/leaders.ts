// Finds the leaders of the partitions that a producer writes to.

import { CellarstreamError } from '../../core/errors.ts';
import type { Brokers, Patience } from '../../kafka/client/brokers.ts';
import { addressesIn, metadata } from '../../kafka/client/topic-calls.ts';
import type { Address } from '../../kafka/client/protocol.ts';
import { ERROR, errorAction, protocolError } from '../../kafka/client/protocol-errors.ts';

/** Cache of the partition leaders of the topics that a producer writes to. */
export interface Leaders {
  /**
   * Requests the partition leaders of these topics unless they are cached and less than a minute old; retries until all topics are known.
   */
  learn(topics: readonly string[], patience: Patience): Promise<void>;
  /** Returns the address of a partition's leader; undefined while none is known. */
  leaderOf(topic: string, partition: number): Address | undefined;
  /** Returns the number of partitions of a topic; undefined while it is unknown. */
  partitions(topic: string): number | undefined;
  /**
   * Requests the partition leaders of all topics passed to `learn` again. The broker that sent the outdated ones is asked after the other
   * known brokers.
   */
  refresh(): Promise<void>;
}

/**
 * Age at which cached partition leaders are requested again, in ms. Brokers report when a leader has moved, but not when partitions were
 * added.
 */
const MAX_AGE_MS = 60_000;
/** How long brokers may not know a topic before it counts as deleted, in ms. Too small: a new topic counts as deleted. */
const DELETED_AFTER_MS = 5_000;

/**
 * Creates an empty cache of partition leaders. Its functions throw:
 *
 * - the errors of {@link Brokers};
 * - kafkajs' error if rights are missing;
 * - CellarstreamError `TOPIC_CHANGED` if a topic in `expected` was deleted or has a different number of partitions;
 * - CellarstreamError `POSITION` if a topic that is not in `expected` does not exist.
 *
 * @param expected Required number of partitions by topic: with another number, keys would be in other partitions. Topics that are not in it
 * may have any number.
 */
export function leadersOf(
  brokers: Brokers,
  expected: ReadonlyMap<string, number> = new Map(),
): Leaders {
  const topics = new Map<string, readonly (Address | undefined)[]>();
  const wanted = new Set<string>();
  const missingSince = new Map<string, number>();
  let learnedAt = -Infinity;

  const ask = async (first?: 'others') => {
    const answer = await brokers.sendToAny(metadata([...wanted]), first);
    const addresses = addressesIn(answer);
    brokers.updateAddresses([...addresses.values()]);
    for (const { topic, errorCode, partitions } of answer.topics) {
      if (errorCode !== 0) {
        topics.delete(topic);
        if (errorAction(errorCode) === 'refused') throw protocolError(errorCode, topic);
        const since = missingSince.get(topic) ?? performance.now();
        missingSince.set(topic, since);
        if (performance.now() - since > DELETED_AFTER_MS)
          throw topicDeletedError(topic, expected.has(topic));
        continue;
      }
      missingSince.delete(topic);
      const count = expected.get(topic);
      if (count !== undefined && count !== partitions.length) {
        throw partitionCountChangedError(topic, count, partitions.length);
      }
      const leaders: (Address | undefined)[] = [];
      for (const { partition, leader } of partitions) leaders[partition] = addresses.get(leader);
      topics.set(topic, leaders);
    }
    learnedAt = performance.now();
  };

  return {
    refresh: () => ask('others'),
    leaderOf: (topic, partition) => topics.get(topic)?.[partition],
    partitions: (topic) => topics.get(topic)?.length,
    learn: async (names, patience) => {
      for (const name of names) wanted.add(name);
      const unknown = () => names.find((name) => !topics.has(name));
      if (performance.now() - learnedAt > MAX_AGE_MS) learnedAt = -Infinity;
      let first: 'others' | undefined;
      while (learnedAt === -Infinity || unknown() !== undefined) {
        try {
          await ask(first);
          const name = unknown();
          if (name !== undefined) throw protocolError(ERROR.UNKNOWN_TOPIC_OR_PARTITION, name);
        } catch (error) {
          first = 'others';
          await patience.wait(error);
        }
      }
    },
  };
}

function partitionCountChangedError(
  topic: string,
  expected: number,
  found: number,
): CellarstreamError {
  return new CellarstreamError(
    'TOPIC_CHANGED',
    `${topic} has ${found} partitions and not ${expected} as before, so keys would go to other partitions: recreate it with ${expected}, or set another TOPIC_PREFIX`,
    { context: { topic } },
  );
}

function topicDeletedError(topic: string, isOurs: boolean): CellarstreamError {
  if (!isOurs) {
    return new CellarstreamError('POSITION', `there is no topic ${topic}: create it first`, {
      context: { topic },
    });
  }
  return new CellarstreamError(
    'TOPIC_CHANGED',
    `topic ${topic} was deleted: it is recreated when its list is claimed again`,
    { context: { topic } },
  );
}
