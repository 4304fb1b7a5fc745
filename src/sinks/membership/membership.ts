import { setTimeout as pause } from 'node:timers/promises';
import { Observable, take } from 'rxjs';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { brokersOf } from '../client/brokers.ts';
import type { Brokers } from '../client/brokers.ts';
import type { Address, Call } from '../client/call.ts';
import { findCoordinator } from '../client/find-coordinator.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { meaningOf, protocolError } from '../client/protocol-errors.ts';
import { kafkasOf } from '../client/unanswered.ts';
import { heartbeat, joinGroup, leaveGroup, syncGroup } from './group-calls.ts';
import type { Joined, Member, Place } from './group-calls.ts';

export type { Member } from './group-calls.ts';

/** What a member was given, until the next generation says otherwise. */
export interface Generation {
  /** Rises with every rebalance. */
  readonly number: number;
  readonly memberId: string;
  readonly isLeader: boolean;
  readonly given: Buffer;
}

export interface MembershipOptions {
  readonly kafka: Kafka;
  readonly group: string;
  /** Without a sign of it for so long, a member is out. */
  readonly sessionTimeoutMs: number;
  /** How soon a member hears that the group is changing. */
  readonly heartbeatMs: number;
  /** What this member tells of itself; asked each time that it joins. */
  readonly tell: () => Buffer;
  /** The leader's: what each member is given. */
  readonly share: (members: readonly Member[], generation: number) => ReadonlyMap<string, Buffer>;
  /** Has the group shared out anew. */
  readonly rejoin$: Observable<unknown>;
  /** Its first value lets the member leave. It must replay that value. */
  readonly leave$: Observable<unknown>;
  /** Told of every try that came to nothing. */
  readonly onRetry?: (error: unknown) => void;
}

/** Groups of consumers are "consumer": none of those can be joined by mistake. */
const PROTOCOL = { protocolType: 'cellarstream', protocol: 'accounts' } as const;
/** An answer to JoinGroup may take as long as a rebalance, and its way. */
const ON_ITS_WAY_MS = 5_000;
const PAUSE_MS = 500;
/** Leaving is good manners: without it the session runs out. */
const LEAVE_WITHIN_MS = 2_000;

/** What a coordinator's word means for a member. */
const NONE = 0;
const ILLEGAL_GENERATION = 22;
const UNKNOWN_MEMBER = 25;
const REBALANCING = 27;
const MEMBER_ID_REQUIRED = 79;
/** Those after which it joins again. */
const JOIN_AGAIN = new Set([ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING]);

/**
 * A member of a group, by Kafka's own protocol: emits what it is given, generation after generation, and completes when it has
 * left. Without a coordinator, or a way to it, nothing is emitted: what was given last stays so.
 *
 * Errors with `KAFKA_REFUSED` where no later try will do.
 */
export function membership(options: MembershipOptions): Observable<Generation> {
  return new Observable((subscriber) => {
    const ending = new AbortController();
    const end = () => ending.abort();
    subscriber.add(options.leave$.pipe(take(1)).subscribe(end));
    subscriber.add(end);
    takePart(options, ending.signal, (generation) => subscriber.next(generation)).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
  });
}

async function takePart(
  options: MembershipOptions,
  ending: AbortSignal,
  onGeneration: (generation: Generation) => void,
): Promise<void> {
  const { kafka, group } = options;
  const brokers = brokersOf(kafka);
  const close = () => brokers.close(); // a JoinGroup that is under way would hold up its end
  ending.addEventListener('abort', close);
  const member: MemberState = { id: '', coordinator: undefined };
  try {
    while (!ending.aborted) {
      try {
        const generation = await join(options, brokers, member);
        if (!generation) continue;
        onGeneration(generation);
        await stay(options, brokers, member, generation.number, ending);
      } catch (error) {
        if (ending.aborted) break;
        goOn(options, member, error);
        await pause(PAUSE_MS, undefined, { signal: ending }).catch(() => undefined);
      }
    }
  } finally {
    ending.removeEventListener('abort', close);
    brokers.close();
  }
  if (member.id !== '') await leave(kafka, group, member.id);
}

interface MemberState {
  /** Empty until the coordinator has given one. */
  id: string;
  coordinator: Address | undefined;
}

/** Joins, and waits for what it is given; undefined when it is to join again at once. */
async function join(
  options: MembershipOptions,
  brokers: Brokers,
  member: MemberState,
): Promise<Generation | undefined> {
  const { group, sessionTimeoutMs, tell, share } = options;
  // Members hear of a rebalance with their next heartbeat: who is not back within a session is gone.
  const timeouts = { sessionTimeoutMs, rebalanceTimeoutMs: sessionTimeoutMs };
  const call = joinGroup({ group, memberId: member.id, ...timeouts, ...PROTOCOL, told: tell() });
  const joined = await ask(options, brokers, member, call, sessionTimeoutMs + ON_ITS_WAY_MS);
  if (joined.errorCode === MEMBER_ID_REQUIRED) member.id = joined.memberId;
  if (!isWell(joined.errorCode, call.name, member)) return undefined;
  member.id = joined.memberId;

  const { generation: number } = joined;
  const isLeader = joined.leader === joined.memberId;
  const given = isLeader ? share(joined.members, number) : new Map<string, Buffer>();
  const sync = syncGroup(placeOf(group, joined), given);
  const synced = await ask(options, brokers, member, sync, sessionTimeoutMs + ON_ITS_WAY_MS);
  if (!isWell(synced.errorCode, sync.name, member)) return undefined;
  return { number, memberId: member.id, isLeader, given: synced.given };
}

/** Gives signs until the group is to be joined again. */
async function stay(
  options: MembershipOptions,
  brokers: Brokers,
  member: MemberState,
  generation: number,
  ending: AbortSignal,
): Promise<void> {
  const { group, heartbeatMs, sessionTimeoutMs, rejoin$ } = options;
  const rejoining = new AbortController();
  const asked = rejoin$.pipe(take(1)).subscribe(() => rejoining.abort());
  const awake = AbortSignal.any([ending, rejoining.signal]);
  try {
    for (;;) {
      await pause(heartbeatMs, undefined, { signal: awake }).catch(() => undefined);
      if (awake.aborted) return;
      const call = heartbeat(placeOf(group, { generation, memberId: member.id }));
      let code: number;
      try {
        code = await ask(options, brokers, member, call, sessionTimeoutMs);
        if (isPassing(code)) throw protocolError(code, call.name);
      } catch (error) {
        if (!ending.aborted) goOn(options, member, error); // only the coordinator's word ends a generation
        continue;
      }
      if (!isWell(code, call.name, member)) return;
    }
  } finally {
    asked.unsubscribe();
  }
}

/**
 * A try came to nothing: the coordinator is looked for anew.
 *
 * @throws CellarstreamError where no later try will do.
 */
function goOn({ group, onRetry }: MembershipOptions, member: MemberState, error: unknown): void {
  const known = judged(error, group);
  if (!isRetryable(known)) throw known;
  member.coordinator = undefined;
  onRetry?.(known);
}

async function ask<T>(
  { group }: MembershipOptions,
  brokers: Brokers,
  member: MemberState,
  call: Call<T>,
  withinMs: number,
): Promise<T> {
  member.coordinator ??= await findCoordinator(brokers, 'group', group);
  return brokers.ask(member.coordinator, call, withinMs);
}

/** An error as ours: what a coordinator has said is its last word, unless it says so as it goes. */
function judged(error: unknown, group: string): unknown {
  const cause = kafkasOf(error);
  const known = kafkaError(cause);
  const isWord = cause instanceof kafkajs.KafkaJSProtocolError && !isPassing(cause.code);
  if (!isWord || !isRetryable(known)) return known;
  const message = `Kafka refuses members of the group ${group}: ${cause.message}`;
  return new CellarstreamError('KAFKA_REFUSED', message, { cause });
}

/** Whether it is said while a coordinator goes or comes. */
function isPassing(code: number): boolean {
  return ['again', 'leader', 'coordinator'].includes(meaningOf(code));
}

/** Whether all is well; false when it is to join again. @throws kafkajs' error with any other word. */
function isWell(code: number, what: string, member: MemberState): boolean {
  if (code === NONE) return true;
  if (code === UNKNOWN_MEMBER) member.id = '';
  if (JOIN_AGAIN.has(code) || code === MEMBER_ID_REQUIRED) return false;
  throw protocolError(code, what);
}

function placeOf(
  group: string,
  { generation, memberId }: Pick<Joined, 'generation' | 'memberId'>,
): Place {
  return { group, generation, memberId };
}

/** On connections of its own: the member's may wait for an answer that stays out. */
async function leave(kafka: Kafka, group: string, memberId: string): Promise<void> {
  const brokers = brokersOf(kafka);
  const late = pause(LEAVE_WITHIN_MS, undefined, { signal: brokers.closed }).catch(() => undefined);
  const left = findCoordinator(brokers, 'group', group)
    .then((coordinator) => brokers.ask(coordinator, leaveGroup({ group, memberId })))
    .catch(() => undefined); // its session runs out
  await Promise.race([left, late]);
  brokers.close();
}
