// Finds the leaders of the partitions that a producer writes to.

import { CellarstreamError } from '../../core/errors.ts';
import { LASTING_MS, lasting } from '../../core/retries.ts';
import type { Brokers } from '../../kafka/client/brokers.ts';
import type { Patience } from '../../kafka/client/patience.ts';
import { addressesIn, metadata } from '../../kafka/client/topic-calls.ts';
import type { Metadata } from '../../kafka/client/topic-calls.ts';
import type { Address } from '../../kafka/client/protocol.ts';
import { ERROR, errorAction, protocolError } from '../../kafka/client/protocol-errors.ts';

/**
 * Maximum age of the cached partition leaders, in ms. If it is too large, new partitions are noticed late, because brokers report moved
 * leaders but not added partitions.
 */
const MAX_AGE_MS = 60_000;

/**
 * Cache of the partition leaders of the topics that a producer writes to. Its methods throw:
 *
 * - the errors of {@link Brokers};
 * - kafkajs' error if rights are missing;
 * - CellarstreamError `TOPIC_CHANGED` if a topic in `expected` was deleted or has a different number of partitions;
 * - CellarstreamError `POSITION` if a topic that is not in `expected` does not exist.
 */
export class Leaders {
  readonly #brokers: Brokers;
  readonly #expected: ReadonlyMap<string, number>;
  readonly #topics = new Map<string, readonly (Address | undefined)[]>();
  /** All topics whose names were passed to {@link learn}. */
  readonly #wanted = new Set<string>();
  /** For each topic, a function that measures how long the topic has been missing. */
  readonly #missing = new Map<string, ReturnType<typeof lasting>>();
  #learnedAt = -Infinity;

  /**
   * @param expected Required number of partitions by topic. With another number, keys would be assigned to other partitions. Topics that
   * are missing from this map may have any number.
   */
  constructor(brokers: Brokers, expected: ReadonlyMap<string, number> = new Map()) {
    this.#brokers = brokers;
    this.#expected = expected;
  }

  /**
   * Requests the partition leaders of these topics, unless they are cached and less than a minute old. Retries until all topics are known,
   * or until `patience` throws.
   */
  async learn(names: readonly string[], patience: Patience): Promise<void> {
    for (const name of names) this.#wanted.add(name);
    const unknown = () => names.find((name) => !this.#topics.has(name));
    if (performance.now() - this.#learnedAt > MAX_AGE_MS) this.#learnedAt = -Infinity;
    let first: 'others' | undefined;
    while (this.#learnedAt === -Infinity || unknown() !== undefined) {
      try {
        await this.#request(first);
        const name = unknown();
        if (name !== undefined) throw protocolError(ERROR.UNKNOWN_TOPIC_OR_PARTITION, name);
      } catch (error) {
        first = 'others';
        await patience.wait(error);
      }
    }
  }

  /** Returns the address of the partition leader; undefined if none is known. */
  leaderOf(topic: string, partition: number): Address | undefined {
    return this.#topics.get(topic)?.[partition];
  }

  partitions(topic: string): number | undefined {
    return this.#topics.get(topic)?.length;
  }

  /** Requests all partition leaders again, preferably from another broker than before: the previous one may have outdated metadata. */
  refresh(): Promise<void> {
    return this.#request('others');
  }

  async #request(first?: 'others'): Promise<void> {
    const answer = await this.#brokers.sendToAny(metadata([...this.#wanted]), first);
    const addresses = addressesIn(answer);
    this.#brokers.updateAddresses([...addresses.values()]);
    for (const described of answer.topics) this.#update(described, addresses);
    this.#learnedAt = performance.now();
  }

  #update(
    { topic, errorCode, partitions }: Metadata['topics'][number],
    addresses: ReadonlyMap<number, Address>,
  ): void {
    const missing = this.#missing.get(topic) ?? lasting();
    this.#missing.set(topic, missing);
    if (errorCode !== 0) {
      this.#topics.delete(topic);
      if (errorAction(errorCode) === 'refused') throw protocolError(errorCode, topic);
      if (missing(true) > LASTING_MS.unknownTopic)
        throw topicDeletedError(topic, this.#expected.has(topic));
      return;
    }
    missing(false);
    const count = this.#expected.get(topic);
    if (count !== undefined && count !== partitions.length) {
      throw partitionCountChangedError(topic, count, partitions.length);
    }
    const leaders: (Address | undefined)[] = [];
    for (const { partition, leader } of partitions) leaders[partition] = addresses.get(leader);
    this.#topics.set(topic, leaders);
  }
}

function partitionCountChangedError(
  topic: string,
  expected: number,
  found: number,
): CellarstreamError {
  return new CellarstreamError(
    'TOPIC_CHANGED',
    `${topic} has ${found} partitions and not ${expected} as before, so keys would go to other partitions. If it is the topic of a list, the list stays stopped until you delete the topic (the service then creates it with TOPIC_PARTITIONS partitions and publishes all records again, with op r) or set another TOPIC_PREFIX. If it is a topic of status changes or dead letters, nothing is to be done: the service continues by itself with the new number of partitions. Do not delete such a topic, because its messages are not published again`,
    { context: { topic } },
  );
}

function topicDeletedError(topic: string, isOurs: boolean): CellarstreamError {
  if (!isOurs) {
    return new CellarstreamError(
      'POSITION',
      `there is no topic ${topic}, and this producer does not create topics: create it (\`cellarstream run\` creates the topics of the service when it starts), then send the messages again`,
      {
        context: { topic },
      },
    );
  }
  return new CellarstreamError(
    'TOPIC_CHANGED',
    `topic ${topic} was deleted: the service creates it again by itself. If the topic had the events of a list, it publishes all records of the list again`,
    { context: { topic } },
  );
}
