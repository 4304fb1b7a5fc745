import type { Kafka } from 'kafkajs';
import { brokersOf, findCoordinator } from '../client/brokers.ts';
import type { Address, Call } from '../client/protocol.ts';
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

// The requests of a member of a group. The versions are those that all brokers from Kafka 2.7 on speak.

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
export function joinGroup(options: JoinGroup): Call<Joined> {
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
export function syncGroup(place: Place, given: ReadonlyMap<string, Buffer>): Call<Synced> {
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

export function heartbeat(place: Place): Call<number> {
  return {
    name: 'Heartbeat',
    key: 12,
    version: 3,
    body: Buffer.concat([placeBytes(place), string(null)]),
    read: (answer) => answer.int16(),
  };
}

export function leaveGroup({ group, memberId }: Omit<Place, 'generation'>): Call<number> {
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

/** The coordinator's answer about a group. */
export interface DescribedGroup {
  readonly errorCode: number;
  /** Bits of the operations that this user may do with it (KIP-430). */
  readonly operations: number;
}

export function describeGroup(group: string): Call<DescribedGroup> {
  const WITH_OPERATIONS = Buffer.of(1);
  return {
    name: 'DescribeGroups',
    key: 15,
    version: 3,
    body: Buffer.concat([array([group], string), WITH_OPERATIONS]),
    read: (answer) => {
      const [found] = answer.array(() => {
        const errorCode = answer.int16();
        for (let texts = 4; texts > 0; texts--) answer.string(); // its name, state, kind and protocol
        answer.array(() => {
          for (let texts = 3; texts > 0; texts--) answer.string(); // a member's ids, and its host
          answer.bytes(); // what it has told
          answer.bytes(); // what it was given
        });
        return { errorCode, operations: answer.int32() };
      });
      return found!;
    },
  };
}
