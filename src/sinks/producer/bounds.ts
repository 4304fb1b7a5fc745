import type { Bounds } from '../sink.ts';
import type { Brokers } from '../client/brokers.ts';
import { addressesIn, listOffsets, metadata } from './calls.ts';
import type { Address } from '../client/call.ts';
import type { Led, Listed } from './calls.ts';
import type { TransactionCoordinator } from './coordinator.ts';
import type { Patience } from './patience.ts';
import { meaningOf, noLeader, partitionError } from '../client/protocol-errors.ts';

export interface BoundsOptions {
  readonly brokers: Brokers;
  readonly coordinator: TransactionCoordinator;
  readonly patience: Patience;
}

/**
 * Where the partitions of a topic begin, and where what is committed ends, with all that was committed before this producer was
 * opened.
 *
 * A broker that stood still, or is cut off from the others, goes on as the leader that it was, and knows of nothing that was
 * committed since. So who leads is asked of the coordinator: it has ended the transaction before, with the word of the leaders of
 * all its partitions. And each leader is asked as that of the epoch that the coordinator knows: an older one refuses.
 *
 * @throws what `patience` does, and kafkajs' error with a broker's word that no later try can change.
 */
export async function boundsOf(
  topic: string,
  options: BoundsOptions,
): Promise<ReadonlyMap<number, Bounds>> {
  const { patience } = options;
  for (;;) {
    try {
      return await askedOnce(topic, options);
    } catch (error) {
      await patience.wait(error);
    }
  }
}

async function askedOnce(
  topic: string,
  { brokers, coordinator, patience }: BoundsOptions,
): Promise<ReadonlyMap<number, Bounds>> {
  const { answer } = await coordinator.ask(metadata([topic]), {
    patience,
    codeOf: ({ topics }) => topics[0]?.errorCode ?? 0,
    isRepeatable: true,
  });
  const addresses = addressesIn(answer);
  const partitions = answer.topics[0]?.partitions ?? [];
  const found = await Promise.all(
    [...new Set(partitions.map(({ leader }) => leader))].map((leader) => {
      const led = partitions.filter((each) => each.leader === leader);
      const address = addresses.get(leader);
      if (!address) throw noLeader(topic, led[0]!.partition);
      return listed(brokers, address, topic, led);
    }),
  );
  return new Map(found.flat().toSorted(([one], [other]) => one - other));
}

async function listed(
  brokers: Brokers,
  address: Address,
  topic: string,
  partitions: readonly Led[],
): Promise<(readonly [number, Bounds])[]> {
  const ask = async (which: 'earliest' | 'latest') => {
    const answers = await brokers.ask(address, listOffsets(which, topic, partitions));
    return new Map(answers.map((each) => [each.partition, offsetOf(topic, each)]));
  };
  const [lows, highs] = await Promise.all([ask('earliest'), ask('latest')]);
  return partitions.map(({ partition }) => {
    const [low, high] = [lows.get(partition), highs.get(partition)];
    if (low === undefined || high === undefined)
      throw new Error(
        `an answer to ListOffsets says nothing of partition ${partition} of ${topic}`,
      );
    return [partition, { low, high }];
  });
}

function offsetOf(topic: string, { partition, errorCode, offset }: Listed): bigint {
  if (meaningOf(errorCode) === 'done') return offset;
  throw partitionError(errorCode, topic, partition);
}
