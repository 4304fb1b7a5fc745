import { setTimeout as pause } from 'node:timers/promises';
import type { Kafka } from 'kafkajs';
import { askAbout } from '../sinks/client/topic-facts.ts';
import { groupAsItIs } from '../sinks/membership/group.ts';
import { unpackSharedOut, unpackTold } from './member-data.ts';
import type { SharedOut, Told } from './member-data.ts';

/** The group of Kafka in which a fleet's instances share accounts out. */
export function fleetGroup(sharedPrefix: string): string {
  return `cellarstream.${sharedPrefix}.fleet`;
}

/** The group as its coordinator knows it. */
export interface FleetGroup {
  /** What each member has told when it joined last. */
  readonly told: readonly Told[];
  /** What was shared out; undefined where there is no member. */
  readonly given: SharedOut | undefined;
}

/** While members join, a coordinator tells nothing of them; whoever is not back within a session is gone, ms. */
const REBALANCED_WITHIN_MS = 12_000;
const ASK_EVERY_MS = 300;

/**
 * Asks the coordinator who is in the group; while that changes, again. Where it goes on changing, or the members are of a version
 * that this one can't read, what is known of them.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function readFleetGroup(kafka: Kafka, sharedPrefix: string): Promise<FleetGroup> {
  const until = performance.now() + REBALANCED_WITHIN_MS;
  for (;;) {
    const { state, members } = await askAbout({ kafka }, (brokers) =>
      groupAsItIs(brokers, fleetGroup(sharedPrefix)),
    );
    const isChanging = state === 'PreparingRebalance' || state === 'CompletingRebalance';
    if (!isChanging || performance.now() > until) {
      return {
        told: members.flatMap(({ told }) => readable(unpackTold, told)),
        given: members.flatMap(({ given }) => readable(unpackSharedOut, given))[0],
      };
    }
    await pause(ASK_EVERY_MS);
  }
}

function readable<T>(unpack: (bytes: Buffer) => T, bytes: Buffer): readonly T[] {
  try {
    return [unpack(bytes)];
  } catch {
    return []; // of another version, or of a member that is about to join
  }
}
