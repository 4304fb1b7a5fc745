import { setTimeout as pause } from 'node:timers/promises';
import type { Kafka } from 'kafkajs';
import { queryBrokers } from '../kafka/client/topic-facts.ts';
import { describeGroup } from '../kafka/membership/group.ts';
import {
  decodeIfPossible,
  unpackFleetAssignment,
  unpackMemberMetadata,
} from './member-metadata.ts';
import type { FleetAssignment, MemberMetadata } from './member-metadata.ts';

/** Id of the Kafka group in which a fleet's instances assign accounts. */
export function fleetGroupId(sharedPrefix: string): string {
  return `cellarstream.${sharedPrefix}.fleet`;
}

/** State of a fleet's Kafka group, as described by the group's coordinator. */
export interface FleetGroupState {
  /** Metadata of the fleet's members (instances): what each of them sent when it last joined the fleet's Kafka group. */
  readonly members: readonly MemberMetadata[];
  /**
   * Newest assignment of the fleet's accounts; undefined if the group has no members, is in a rebalance, or has an assignment that this
   * version can't decode.
   */
  readonly assignment: FleetAssignment | undefined;
}

/**
 * Longest wait for the end of a rebalance, in ms. It must be longer than a session timeout, after which a rebalance proceeds without
 * crashed members.
 */
const REBALANCE_DEADLINE_MS = 12_000;
/** Pause before the group is described again during a rebalance, in ms. */
const DESCRIBE_EVERY_MS = 300;

/**
 * Reads the state of a fleet's Kafka group from the group's coordinator. Waits for the end of a running rebalance. If the rebalance takes
 * too long, the result has no members and no assignment.
 *
 * @throws CellarstreamError `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function readFleetGroupState(
  kafka: Kafka,
  sharedPrefix: string,
): Promise<FleetGroupState> {
  const until = performance.now() + REBALANCE_DEADLINE_MS;
  for (;;) {
    const { state, members } = await queryBrokers({ kafka }, (brokers) =>
      describeGroup(brokers, fleetGroupId(sharedPrefix)),
    );
    const isChanging = state === 'PreparingRebalance' || state === 'CompletingRebalance';
    if (!isChanging || performance.now() > until) {
      return {
        members: members.flatMap(({ metadata }) =>
          decodeIfPossible(unpackMemberMetadata, metadata),
        ),
        assignment: members.flatMap(({ assignment }) =>
          decodeIfPossible(unpackFleetAssignment, assignment),
        )[0],
      };
    }
    await pause(DESCRIBE_EVERY_MS);
  }
}
