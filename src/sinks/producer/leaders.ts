// Who leads the partitions that a producer writes to.

import { CellarstreamError } from '../../core/errors.ts';
import type { Brokers, Patience } from '../client/brokers.ts';
import { addressesIn, metadata } from '../client/topic-calls.ts';
import type { Address } from '../client/protocol.ts';
import { ERROR, meaningOf, protocolError } from '../client/protocol-errors.ts';

/** Who leads the partitions of the topics that are written to. */
export interface Leaders {
  /** Learns of these topics, unless what is known of them is young enough: until something is known of all. */
  learn(topics: readonly string[], patience: Patience): Promise<void>;
  /** Undefined while nobody is known to. */
  of(topic: string, partition: number): Address | undefined;
  /** How many partitions it has; undefined while that is not known. */
  partitions(topic: string): number | undefined;
  /** Asks again, of all topics that were learned of: first other brokers than the one whose word was wrong. */
  refresh(): Promise<void>;
}

/** Leaders tell by themselves that they are none any more; partitions that were added don't. */
const MAX_AGE_MS = 60_000;
/** How long a topic may be unknown to the brokers, ms: one that was just made is for a moment. */
const GONE_AFTER_MS = 5_000;

/**
 * @param expected By topic, how many partitions it must have: keys are in other ones where there are more or fewer.
 * One that is not in it may have any number.
 *
 * All of it throws what {@link Brokers} does, kafkajs' error where we may not, and CellarstreamError
 * `TOPIC_CHANGED`: a topic has another number of partitions, or is gone.
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
    const answer = await brokers.askAny(metadata([...wanted]), first);
    const addresses = addressesIn(answer);
    brokers.know([...addresses.values()]);
    for (const { topic, errorCode, partitions } of answer.topics) {
      if (errorCode !== 0) {
        topics.delete(topic);
        if (meaningOf(errorCode) === 'refused') throw protocolError(errorCode, topic);
        const since = missingSince.get(topic) ?? performance.now();
        missingSince.set(topic, since);
        if (performance.now() - since > GONE_AFTER_MS) throw gone(topic, expected.has(topic));
        continue;
      }
      missingSince.delete(topic);
      const count = expected.get(topic);
      if (count !== undefined && count !== partitions.length) {
        throw changed(topic, count, partitions.length);
      }
      const found: (Address | undefined)[] = [];
      for (const { partition, leader } of partitions) found[partition] = addresses.get(leader);
      topics.set(topic, found);
    }
    learnedAt = performance.now();
  };

  return {
    refresh: () => ask('others'),
    of: (topic, partition) => topics.get(topic)?.[partition],
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

function changed(topic: string, expected: number, found: number): CellarstreamError {
  return new CellarstreamError(
    'TOPIC_CHANGED',
    `${topic} has ${found} partitions and not ${expected} as before, so keys would go to other partitions: make it anew with ${expected}, or set another TOPIC_PREFIX`,
    { context: { topic } },
  );
}

function gone(topic: string, isOurs: boolean): CellarstreamError {
  if (!isOurs) {
    return new CellarstreamError('POSITION', `there is no topic ${topic}: make it first`, {
      context: { topic },
    });
  }
  return new CellarstreamError(
    'TOPIC_CHANGED',
    `topic ${topic} is gone: it is made anew when its list begins again`,
    { context: { topic } },
  );
}
