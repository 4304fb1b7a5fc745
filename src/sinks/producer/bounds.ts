import type { Bounds, Isolation } from '../sink.ts';
import type { Brokers, Patience, Asked } from '../client/brokers.ts';
import { addressesIn, listOffsets, metadata } from './calls.ts';
import type { Address } from '../client/protocol.ts';
import type { Led, Listed, Metadata } from './calls.ts';
import type { TransactionCoordinator } from './coordinator.ts';
import { persistently, askBrokers } from '../client/brokers.ts';
import { meaningOf, noLeader, partitionError, protocolError } from '../client/protocol-errors.ts';
import { askedTogether } from '../../core/asked-together.ts';

export interface BoundsOptions {
  readonly topic: string;
  readonly isolation: Isolation;
  readonly brokers: Brokers;
  readonly patience: Patience;
}

/**
 * Where the partitions of a topic begin and end, with all that was committed before this producer was opened.
 *
 * A broker that stood still, or is cut off from the others, goes on as the leader that it was, and knows of nothing that was
 * committed since. So who leads is asked of the coordinator: it has ended the transaction before, with the word of the leaders of
 * all its partitions. And each leader is asked as that of the epoch that the coordinator knows: an older one refuses.
 *
 * @throws what `patience` does, and kafkajs' error with a broker's word that no later try can change.
 */
export function fencedBounds(
  coordinator: TransactionCoordinator,
  options: BoundsOptions,
): Promise<ReadonlyMap<number, Bounds>> {
  const { topic, patience } = options;
  return persistently(patience, async () => {
    const { answer } = await coordinator.ask(metadata([topic]), {
      patience,
      codeOf: ({ topics }) => topics[0]?.errorCode ?? 0,
      isRepeatable: true,
    });
    return askedOnce(options, answer);
  });
}

/** The same, as whichever broker answers knows it; asked once. */
export async function knownBounds(
  options: Omit<BoundsOptions, 'patience'>,
): Promise<ReadonlyMap<number, Bounds>> {
  const { topic, brokers } = options;
  const answer = await brokers.askAny(metadata([topic]));
  const { errorCode = 0 } = answer.topics[0] ?? {};
  if (errorCode !== 0) throw protocolError(errorCode, topic);
  return askedOnce(options, answer);
}

async function askedOnce(
  { topic, isolation, brokers }: Omit<BoundsOptions, 'patience'>,
  answer: Metadata,
): Promise<ReadonlyMap<number, Bounds>> {
  const addresses = addressesIn(answer);
  const partitions = answer.topics[0]?.partitions ?? [];
  const listed = async (address: Address, led: readonly Led[]) => {
    const ask = async (which: 'earliest' | 'latest') => {
      const answers = await brokers.ask(address, listOffsets(which, { topic, led, isolation }));
      return new Map(answers.map((each) => [each.partition, offsetOf(topic, each)]));
    };
    const [lows, highs] = await Promise.all([ask('earliest'), ask('latest')]);
    return led.map(({ partition }) => {
      const [low, high] = [lows.get(partition), highs.get(partition)];
      if (low === undefined || high === undefined)
        throw new Error(
          `an answer to ListOffsets says nothing of partition ${partition} of ${topic}`,
        );
      return [partition, { low, high }] as const;
    });
  };
  const found = await Promise.all(
    [...new Set(partitions.map(({ leader }) => leader))].map((leader) => {
      const led = partitions.filter((each) => each.leader === leader);
      const address = addresses.get(leader);
      if (!address) throw noLeader(topic, led[0]!.partition);
      return listed(address, led);
    }),
  );
  return new Map(found.flat().toSorted(([one], [other]) => one - other));
}

function offsetOf(topic: string, { partition, errorCode, offset }: Listed): bigint {
  if (meaningOf(errorCode) === 'done') return offset;
  throw partitionError(errorCode, topic, partition);
}

/** What any broker knows: it is asked once for all who ask at the same time, such as lists that are opened together. */
export interface ClusterFacts {
  /** Names the cluster. */
  readonly id: () => Promise<string>;
  /** Where the partitions of a topic begin and end, as a broker knows it. */
  readonly bounds: (topic: string, isolation: Isolation) => Promise<ReadonlyMap<number, Bounds>>;
}

/** How long brokers are asked, ms. */
const ASKED_MS = 5_000;

/** All of it throws what {@link askBrokers} does. */
export function clusterFacts(asked: Asked): ClusterFacts {
  const bounds = new Map<string, () => Promise<ReadonlyMap<number, Bounds>>>();
  return {
    id: askedTogether(async () => {
      const found = await askBrokers(asked, ASKED_MS, (brokers) => brokers.askAny(metadata([])));
      return found.clusterId;
    }),
    bounds: (topic, isolation) => {
      const name = `${topic} ${isolation}`;
      const known =
        bounds.get(name) ??
        askedTogether(() =>
          askBrokers(asked, ASKED_MS, (brokers) => knownBounds({ topic, isolation, brokers })),
        );
      bounds.set(name, known);
      return known();
    },
  };
}
