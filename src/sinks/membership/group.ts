// Requests about a group of Kafka's: joining it as a member, describing it, its offsets. All brokers from Kafka 2.7 on know their
// versions.

import type { Kafka } from 'kafkajs';
import { brokersOf, findCoordinator } from '../client/brokers.ts';
import type { Address, Call } from '../client/protocol.ts';
import type { Brokers } from '../client/brokers.ts';
import { protocolError } from '../client/protocol-errors.ts';
import { array, bytes, int32, string } from '../client/protocol.ts';

/** A group of Kafka's, as its members reach it. */
export interface Group {
  readonly name: string;
  /** Connections of their own: a JoinGroup that waits for its answer holds up what is asked behind it. */
  readonly connect: () => Coordinator;
}

/** Whoever coordinates the group: looked for when it is first asked. */
export interface Coordinator {
  readonly join: (joining: Omit<JoinGroup, 'group'>, withinMs: number) => Promise<Joined>;
  readonly sync: (
    place: Omit<Place, 'group'>,
    given: ReadonlyMap<string, Buffer>,
    withinMs: number,
  ) => Promise<Synced>;
  readonly beat: (place: Omit<Place, 'group'>, withinMs: number) => Promise<number>;
  readonly leave: (memberId: string) => Promise<unknown>;
  /** It may be another one by now. */
  readonly lookAnew: () => void;
  /** At once: what is under way goes without an answer. */
  readonly close: () => void;
}

export function kafkaGroup(kafka: Kafka, name: string): Group {
  const connect = (): Coordinator => {
    const brokers = brokersOf(kafka);
    let coordinator: Address | undefined;
    const ask = async <T>(call: Call<T>, withinMs?: number): Promise<T> => {
      coordinator ??= await findCoordinator(brokers, 'group', name);
      return brokers.ask(coordinator, call, withinMs);
    };
    const ofGroup = <T>(more: T) => ({ group: name, ...more });
    return {
      join: (joining, withinMs) => ask(joinGroup(ofGroup(joining)), withinMs),
      sync: (place, given, withinMs) => ask(syncGroup(ofGroup(place), given), withinMs),
      beat: (place, withinMs) => ask(heartbeat(ofGroup(place)), withinMs),
      leave: (memberId) => ask(leaveGroup(ofGroup({ memberId }))),
      lookAnew: () => (coordinator = undefined),
      close: () => brokers.close(),
    };
  };
  return { name, connect };
}

/** A member, and what it tells of itself. */
export interface Member {
  readonly id: string;
  readonly told: Buffer;
}

export interface JoinGroup {
  readonly group: string;
  /** Empty for one that is new. */
  readonly memberId: string;
  /** Without a sign of it for so long, a member is out. */
  readonly sessionTimeoutMs: number;
  /** How long the coordinator waits for all members to join again. */
  readonly rebalanceTimeoutMs: number;
  /** Groups of another kind have another one: they can't be joined. */
  readonly protocolType: string;
  readonly protocol: string;
  readonly told: Buffer;
}

export interface Joined {
  readonly errorCode: number;
  readonly generation: number;
  readonly leader: string;
  readonly memberId: string;
  /** All of them for the leader, none for others. */
  readonly members: readonly Member[];
}

/** Answered when all members have joined, or their time is over. */
function joinGroup(options: JoinGroup): Call<Joined> {
  const { group, memberId, sessionTimeoutMs, rebalanceTimeoutMs, protocolType } = options;
  const { protocol, told } = options;
  return {
    name: 'JoinGroup',
    key: 11,
    version: 5,
    body: Buffer.concat([
      string(group),
      int32(sessionTimeoutMs),
      int32(rebalanceTimeoutMs),
      string(memberId),
      string(null), // no static member: its place would be kept while it is gone
      string(protocolType),
      array([protocol], (name) => Buffer.concat([string(name), bytes(told)])),
    ]),
    read: (answer) => {
      const head = { errorCode: answer.int16(), generation: answer.int32() };
      answer.string(); // the protocol: there is one
      return {
        ...head,
        leader: answer.string()!,
        memberId: answer.string()!,
        members: answer.array(() => {
          const id = answer.string()!;
          answer.string(); // of static members
          return { id, told: answer.bytes() };
        }),
      };
    },
  };
}

/** A member in a generation of its group. */
export interface Place {
  readonly group: string;
  readonly generation: number;
  readonly memberId: string;
}

export interface Synced {
  readonly errorCode: number;
  readonly given: Buffer;
}

/** Answered when the leader has said what each member is given. */
function syncGroup(place: Place, given: ReadonlyMap<string, Buffer>): Call<Synced> {
  return {
    name: 'SyncGroup',
    key: 14,
    version: 3,
    body: Buffer.concat([
      placeBytes(place),
      string(null),
      array([...given], ([id, part]) => Buffer.concat([string(id), bytes(part)])),
    ]),
    read: (answer) => ({ errorCode: answer.int16(), given: answer.bytes() }),
  };
}

function heartbeat(place: Place): Call<number> {
  return {
    name: 'Heartbeat',
    key: 12,
    version: 3,
    body: Buffer.concat([placeBytes(place), string(null)]),
    read: (answer) => answer.int16(),
  };
}

function leaveGroup({ group, memberId }: Omit<Place, 'generation'>): Call<number> {
  return {
    name: 'LeaveGroup',
    key: 13,
    version: 3,
    body: Buffer.concat([
      string(group),
      array([memberId], (id) => Buffer.concat([string(id), string(null)])),
    ]),
    read: (answer) => answer.int16(),
  };
}

function placeBytes({ group, generation, memberId }: Place): Buffer {
  return Buffer.concat([string(group), int32(generation), string(memberId)]);
}

/** A group as its coordinator describes it. */
interface DescribedGroup {
  /** While members join: `PreparingRebalance`, `CompletingRebalance`. */
  readonly state: string;
  /** What each member has told when it joined last, and what it was given. */
  readonly members: readonly { readonly told: Buffer; readonly given: Buffer }[];
  /** Bits of the operations that this user may do with it (KIP-430). */
  readonly operations: number;
}

/**
 * Asks the coordinator of a group how it is.
 *
 * @throws kafkajs' KafkaJSProtocolError with the broker's error code, and the errors of {@link Brokers}.
 */
export async function groupAsItIs(brokers: Brokers, group: string): Promise<DescribedGroup> {
  const coordinator = await findCoordinator(brokers, 'group', group);
  const { errorCode, ...found } = await brokers.ask(coordinator, describeGroup(group));
  if (errorCode !== 0) throw protocolError(errorCode, `the group ${group}`);
  return found;
}

function describeGroup(group: string): Call<DescribedGroup & { readonly errorCode: number }> {
  const WITH_OPERATIONS = Buffer.of(1);
  return {
    name: 'DescribeGroups',
    key: 15,
    version: 3,
    body: Buffer.concat([array([group], string), WITH_OPERATIONS]),
    read: (answer) => {
      const [found] = answer.array(() => {
        const errorCode = answer.int16();
        answer.string(); // its name
        const state = answer.string()!;
        for (let texts = 2; texts > 0; texts--) answer.string(); // its kind and protocol
        const members = answer.array(() => {
          for (let texts = 3; texts > 0; texts--) answer.string(); // a member's id, its client, and its host
          return { told: answer.bytes(), given: answer.bytes() };
        });
        return { errorCode, state, members, operations: answer.int32() };
      });
      return found!;
    },
  };
}

/**
 * The offsets that a group has committed of some partitions of a topic; -1 of one without.
 *
 * @throws as {@link groupAsItIs}.
 */
export async function groupOffsets(
  brokers: Brokers,
  group: string,
  topic: string,
  partitions: readonly number[],
): Promise<readonly bigint[]> {
  const coordinator = await findCoordinator(brokers, 'group', group);
  const fetched = await brokers.ask(coordinator, offsetFetch(group, topic, partitions));
  if (fetched.errorCode !== 0) {
    throw protocolError(fetched.errorCode, `the offsets of the group ${group}`);
  }
  return fetched.offsets;
}

interface FetchedOffsets {
  /** Of the group, or of the first partition that has one. */
  readonly errorCode: number;
  /** -1 of a partition without one. */
  readonly offsets: readonly bigint[];
}

function offsetFetch(
  group: string,
  topic: string,
  partitions: readonly number[],
): Call<FetchedOffsets> {
  return {
    name: 'OffsetFetch',
    key: 9,
    version: 5,
    body: Buffer.concat([
      string(group),
      array([topic], (name) => Buffer.concat([string(name), array(partitions, int32)])),
    ]),
    read: (answer) => {
      const topics = answer.array(() => {
        answer.string(); // its name
        return answer.array(() => {
          answer.int32(); // the partition
          const offset = answer.int64();
          answer.int32(); // the epoch of its leader
          answer.string(); // metadata of whoever committed it
          return { offset, errorCode: answer.int16() };
        });
      });
      const found = topics.flat();
      const ofGroup = answer.int16();
      const errorCode = ofGroup || (found.find((each) => each.errorCode !== 0)?.errorCode ?? 0);
      return { errorCode, offsets: found.map(({ offset }) => offset) };
    },
  };
}
