// Requests about a Kafka group: joining it as a member, describing it, reading its committed offsets.

import type { Kafka } from 'kafkajs';
import { Brokers, findCoordinator } from '../client/brokers.ts';
import type { Address, Call } from '../client/protocol.ts';
import { protocolError } from '../client/protocol-errors.ts';
import { array, bytes, createCall, int32, string } from '../client/protocol.ts';

export interface MembershipGroup {
  readonly name: string;
  /**
   * Creates a coordinator client with separate connections. On a shared connection, a JoinGroup request would hold up later requests until
   * the rebalance has ended.
   */
  readonly connect: () => GroupCoordinator;
}

/** Client of the coordinator of a Kafka group. The first call looks up the coordinator. */
export interface GroupCoordinator {
  readonly join: (joining: JoinGroup, withinMs: number) => Promise<Joined>;
  /**
   * Sends the assignments by member id, if this member is the leader; other members pass an empty map. Returns this member's assignment.
   */
  readonly sync: (
    identity: MemberIdentity,
    assignments: ReadonlyMap<string, Buffer>,
    withinMs: number,
  ) => Promise<Synced>;
  /** Sends a heartbeat, and returns the error code in the response. `withinMs`: longest wait for the response, in ms. */
  readonly heartbeat: (identity: MemberIdentity, withinMs: number) => Promise<number>;
  readonly leave: (memberId: string) => Promise<unknown>;
  /** Forgets the coordinator's address, so that the next call looks it up again. */
  readonly rediscover: () => void;
  /** Closes the connections at once; calls in flight fail. */
  readonly close: () => void;
}

export function membershipGroup(kafka: Kafka, name: string): MembershipGroup {
  const connect = (): GroupCoordinator => {
    const brokers = new Brokers({ kafka });
    let coordinator: Address | undefined;
    const send = async <T>(call: Call<T>, withinMs?: number): Promise<T> => {
      coordinator ??= await findCoordinator(brokers, 'group', name);
      return brokers.send(coordinator, call, withinMs);
    };
    return {
      join: (joining, withinMs) => send(joinGroup(name, joining), withinMs),
      sync: (identity, assignments, withinMs) =>
        send(syncGroup(name, identity, assignments), withinMs),
      heartbeat: (identity, withinMs) => send(heartbeat(name, identity), withinMs),
      leave: (memberId) => send(leaveGroup(name, memberId)),
      rediscover: () => (coordinator = undefined),
      close: () => brokers.close(),
    };
  };
  return { name, connect };
}

/** A member of a Kafka group, with the metadata of its JoinGroup request. */
export interface Member {
  readonly id: string;
  readonly metadata: Buffer;
}

export interface JoinGroup {
  /** Id that the coordinator has assigned to the member; empty if there is none. */
  readonly memberId: string;
  /** Time without a heartbeat after which the coordinator removes a member, in ms. */
  readonly sessionTimeoutMs: number;
  readonly metadata: Buffer;
}

export interface Joined {
  readonly errorCode: number;
  readonly generation: number;
  readonly leader: string;
  readonly memberId: string;
  /** All members of the generation if this member is the leader; otherwise empty. */
  readonly members: readonly Member[];
}

/** A null `group.instance.id`: the member is not static (KIP-345). A static member would retain its assignment after it has left. */
const NO_INSTANCE_ID = string(null);

/**
 * Protocol type of a fleet's Kafka group. The coordinator refuses members of another type, so that an instance can't join a consumer group
 * by mistake.
 */
const PROTOCOL_TYPE = 'cellarstream';
const PROTOCOL_NAME = 'accounts';

/** Creates a JoinGroup request. The coordinator responds once all members have joined, or when the rebalance timeout has passed. */
function joinGroup(group: string, joining: JoinGroup): Call<Joined> {
  const { memberId, sessionTimeoutMs, metadata } = joining;
  // Members learn of a rebalance by their next heartbeat, so one that has not rejoined within a session timeout has crashed.
  const rebalanceTimeoutMs = sessionTimeoutMs;
  return createCall(
    'JoinGroup',
    [
      string(group),
      int32(sessionTimeoutMs),
      int32(rebalanceTimeoutMs),
      string(memberId),
      NO_INSTANCE_ID,
      string(PROTOCOL_TYPE),
      array([PROTOCOL_NAME], (name) => [string(name), bytes(metadata)]),
    ],
    (answer) => {
      const head = { errorCode: answer.int16(), generation: answer.int32() };
      answer.string(); // protocol: only one is offered
      return {
        ...head,
        leader: answer.string()!,
        memberId: answer.string()!,
        members: answer.array(() => {
          const id = answer.string()!;
          answer.string(); // group.instance.id
          return { id, metadata: answer.bytes() };
        }),
      };
    },
  );
}

/** Identifies a member in one generation of its Kafka group. */
export interface MemberIdentity {
  readonly generation: number;
  readonly memberId: string;
}

export interface Synced {
  readonly errorCode: number;
  readonly assignment: Buffer;
}

/** Creates a SyncGroup request. The coordinator responds once the leader has sent the assignments. */
function syncGroup(
  group: string,
  identity: MemberIdentity,
  assignments: ReadonlyMap<string, Buffer>,
): Call<Synced> {
  const parts = array([...assignments], ([id, part]) => [string(id), bytes(part)]);
  return createCall('SyncGroup', [identityBytes(group, identity), parts], (answer) => ({
    errorCode: answer.int16(),
    assignment: answer.bytes(),
  }));
}

function heartbeat(group: string, identity: MemberIdentity): Call<number> {
  return createCall('Heartbeat', [identityBytes(group, identity)], (answer) => answer.int16());
}

function leaveGroup(group: string, memberId: string): Call<number> {
  const members = array([memberId], (id) => [string(id), NO_INSTANCE_ID]);
  return createCall('LeaveGroup', [string(group), members], (answer) => answer.int16());
}

function identityBytes(group: string, { generation, memberId }: MemberIdentity): Buffer {
  return Buffer.concat([string(group), int32(generation), string(memberId), NO_INSTANCE_ID]);
}

interface DescribedGroup {
  /** Kafka's name of the group's state. `PreparingRebalance` or `CompletingRebalance` while members join. */
  readonly state: string;
  /** Metadata from each member's newest JoinGroup request, and the member's assignment. Both are empty during a rebalance. */
  readonly members: readonly { readonly metadata: Buffer; readonly assignment: Buffer }[];
  /** Bit set of the operations that this client's user may perform on the Kafka group (KIP-430). */
  readonly operations: number;
}

/**
 * Requests the state and the members of a Kafka group from its coordinator.
 *
 * @throws kafkajs' error for an error code in the response, and the errors of {@link Brokers}.
 */
export async function describeGroup(brokers: Brokers, group: string): Promise<DescribedGroup> {
  const coordinator = await findCoordinator(brokers, 'group', group);
  const { errorCode, ...described } = await brokers.send(coordinator, describeGroupsCall(group));
  if (errorCode !== 0) throw protocolError(errorCode, `the group ${group}`);
  return described;
}

function describeGroupsCall(group: string): Call<DescribedGroup & { readonly errorCode: number }> {
  const WITH_OPERATIONS = Buffer.of(1);
  return createCall('DescribeGroups', [array([group], string), WITH_OPERATIONS], (answer) => {
    const [found] = answer.array(() => {
      const errorCode = answer.int16();
      answer.string(); // group id
      const state = answer.string()!;
      for (let texts = 2; texts > 0; texts--) answer.string(); // protocol type and protocol
      const members = answer.array(() => {
        for (let texts = 3; texts > 0; texts--) answer.string(); // member id, client id, client host
        return { metadata: answer.bytes(), assignment: answer.bytes() };
      });
      return { errorCode, state, members, operations: answer.int32() };
    });
    return found!;
  });
}

/**
 * Returns a Kafka group's committed offsets for these partitions, in the same order; -1 for a partition without a committed offset.
 *
 * @throws as {@link describeGroup}.
 */
export async function groupOffsets(
  brokers: Brokers,
  group: string,
  topic: string,
  partitions: readonly number[],
): Promise<readonly bigint[]> {
  const coordinator = await findCoordinator(brokers, 'group', group);
  const call = offsetFetch(group, topic, partitions);
  const { errorCode, offsets } = await brokers.send(coordinator, call);
  if (errorCode !== 0) throw protocolError(errorCode, `the offsets of the group ${group}`);
  return offsets;
}

/**
 * Creates an OffsetFetch request. The decoded `errorCode` is that of the whole response or, if that is 0, of the first partition with an
 * error.
 */
function offsetFetch(
  group: string,
  topic: string,
  partitions: readonly number[],
): Call<{ readonly errorCode: number; readonly offsets: readonly bigint[] }> {
  const topics = array([topic], (name) => [string(name), array(partitions, int32)]);
  return createCall('OffsetFetch', [string(group), topics], (answer) => {
    const found = answer.array(() => {
      answer.string(); // topic
      return answer.array(() => {
        answer.int32(); // partition
        const offset = answer.int64();
        answer.int32(); // leader epoch
        answer.string(); // metadata of the commit
        return { offset, errorCode: answer.int16() };
      });
    });
    const read = found.flat();
    const ofGroup = answer.int16();
    const errorCode = ofGroup || (read.find((each) => each.errorCode !== 0)?.errorCode ?? 0);
    return { errorCode, offsets: read.map(({ offset }) => offset) };
  });
}
