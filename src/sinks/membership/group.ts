import type { Kafka } from 'kafkajs';
import { brokersOf } from '../client/brokers.ts';
import type { Address, Call } from '../client/call.ts';
import { findCoordinator } from '../client/find-coordinator.ts';
import { heartbeat, joinGroup, leaveGroup, syncGroup } from './group-calls.ts';
import type { Joined, JoinGroup, Place, Synced } from './group-calls.ts';

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
