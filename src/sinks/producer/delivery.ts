// Brings batches to the leaders of their partitions, each once.

import type { Brokers, Patience } from '../client/brokers.ts';
import type { PartitionBatches } from './record-batch.ts';
import { produce } from './calls.ts';
import { nameOf, NoAnswer, NotSent } from '../client/protocol.ts';
import type { Address } from '../client/protocol.ts';
import type { ProducerIdentity } from '../sink.ts';
import type { Leaders } from './leaders.ts';
import { meaningOf, noLeader, partitionError } from '../client/protocol-errors.ts';
import { recordBatch } from './record-batch.ts';

interface DeliveryOptions {
  readonly brokers: Brokers;
  readonly leaders: Leaders;
  /** Null without transactions. */
  readonly transactionalId: string | null;
  readonly own: ProducerIdentity;
  readonly sequences: Sequences;
  readonly patience: Patience;
  /** Timestamp of the commit, in ms since 1970; records may have an offset to it. */
  readonly timestamp: number;
}

/** Where the batches of a partition are. */
export interface Delivered {
  readonly topic: string;
  readonly partition: number;
  /** The offset behind the last record; undefined where the broker has not said. */
  readonly end: bigint | undefined;
}

interface Delivery {
  /** One for each partition that was meant. */
  readonly delivered: readonly Delivered[];
  /** An answer stayed out: a late copy of what it was to may still arrive. */
  readonly stayedOut: boolean;
}

/** How long a leader may wait for the other replicas, ms: less than its answer may take. */
const REPLICATION_MS = 8_000;

/**
 * Brings batches to the leaders of their partitions, all leaders side by side, and one batch a partition at a
 * time. What was refused for a reason that passes, or not answered, is sent again: the same bytes with the same
 * sequence, to whoever leads now, who knows whether it is there already.
 *
 * @throws kafkajs' error with a broker's word that no later try can change; what `patience` and `leaders` throw.
 * What has become of the rest of the batches is not known then.
 */
export async function deliver(
  all: readonly PartitionBatches[],
  options: DeliveryOptions,
): Promise<Delivery> {
  const { brokers, leaders, transactionalId, own, sequences, patience, timestamp } = options;
  const delivered: Delivered[] = [];
  let stayedOut = false;

  const stamped = (batches: PartitionBatches, place: number): Outgoing | undefined => {
    const records = batches.batches[place];
    if (!records) return undefined;
    const { topic, partition } = batches;
    const sequence = sequences.next(topic, partition, records.count);
    const isTransactional = transactionalId !== null;
    const bytes = recordBatch(records, { ...own, sequence, isTransactional, timestamp });
    return { batches, place, count: records.count, batch: bytes };
  };

  let waiting = all.flatMap((batches) => stamped(batches, 0) ?? []);
  while (waiting.length > 0) {
    const later: Outgoing[] = [];
    const troubles: Trouble[] = [];
    const judge = (outgoing: Outgoing, code: number, baseOffset: bigint) => {
      const { topic, partition } = outgoing.batches;
      const meaning = meaningOf(code);
      if (meaning === 'done') {
        const next = stamped(outgoing.batches, outgoing.place + 1);
        const end = baseOffset < 0n ? undefined : baseOffset + BigInt(outgoing.count);
        if (next) later.push(next);
        else delivered.push({ topic, partition, end });
        return;
      }
      const error = partitionError(code, topic, partition);
      if (meaning !== 'again' && meaning !== 'soon' && meaning !== 'leader') throw error;
      later.push(outgoing);
      troubles.push({ error, hasMoved: meaning === 'leader' });
    };

    const send = async (address: Address, batches: readonly Outgoing[]): Promise<void> => {
      let answer;
      try {
        answer = await brokers.ask(
          address,
          produce(transactionalId, REPLICATION_MS, byTopic(batches)),
        );
      } catch (error) {
        if (!(error instanceof NoAnswer || error instanceof NotSent)) throw error;
        stayedOut ||= error instanceof NoAnswer;
        later.push(...batches);
        troubles.push({ error, hasMoved: true });
        return;
      }
      const said = new Map(
        answer.flatMap(({ topic, partitions }) =>
          partitions.map((each) => [`${topic} ${each.partition}`, each]),
        ),
      );
      for (const each of batches) {
        const { topic, partition } = each.batches;
        const word = said.get(`${topic} ${partition}`);
        if (!word) throw new Error(`an answer to Produce says nothing of ${topic} ${partition}`);
        judge(each, word.errorCode, word.baseOffset);
      }
    };

    const { ready, leaderless } = byLeader(waiting, leaders);
    later.push(...leaderless);
    const [one] = leaderless;
    if (one) {
      const { topic, partition } = one.batches;
      troubles.push({ error: noLeader(topic, partition), hasMoved: true });
    }
    // All have ended before anything else is said: what was sent must not go on behind an abort.
    const sent = await Promise.allSettled(
      ready.map(([address, batches]) => send(address, batches)),
    );
    for (const each of sent) if (each.status === 'rejected') throw each.reason;

    waiting = later;
    if (troubles.length === 0) continue;
    await patience.wait(troubles[0]!.error);
    if (troubles.some(({ hasMoved }) => hasMoved)) {
      await leaders.refresh().catch((error: unknown) => patience.wait(error));
    }
  }
  return { delivered, stayedOut };
}

/** A batch on its way: its bytes never change. */
interface Outgoing {
  readonly batches: PartitionBatches;
  /** Which of them. */
  readonly place: number;
  readonly count: number;
  readonly batch: Buffer;
}

interface Trouble {
  readonly error: unknown;
  /** Somebody else may lead by now. */
  readonly hasMoved: boolean;
}

function byLeader(waiting: readonly Outgoing[], leaders: Leaders) {
  const ready = new Map<string, readonly [Address, Outgoing[]]>();
  const leaderless: Outgoing[] = [];
  for (const each of waiting) {
    const address = leaders.of(each.batches.topic, each.batches.partition);
    if (!address) {
      leaderless.push(each);
      continue;
    }
    const name = nameOf(address);
    const ofLeader = ready.get(name) ?? [address, []];
    ready.set(name, ofLeader);
    ofLeader[1].push(each);
  }
  return { ready: [...ready.values()], leaderless };
}

function byTopic(batches: readonly Outgoing[]) {
  const topics = new Map<string, { partition: number; batch: Buffer }[]>();
  for (const { batches: of, batch } of batches) {
    const partitions = topics.get(of.topic) ?? [];
    topics.set(of.topic, partitions);
    partitions.push({ partition: of.partition, batch });
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }));
}

/** They begin again at 0 behind the greatest number of 31 bits. */
const ALL_SEQUENCES = 2 ** 31;

/** How many records of one identity went to each partition: brokers know by it what they have, and what is missing. */
export class Sequences {
  readonly #counts = new Map<string, number>();

  /** The sequence of the first of `count` records, which are counted with it. */
  next(topic: string, partition: number, count: number): number {
    const name = `${topic} ${partition}`;
    const first = this.#counts.get(name) ?? 0;
    this.#counts.set(name, (first + count) % ALL_SEQUENCES);
    return first;
  }
}
