// A member of a Kafka group. The instances of a fleet use such a group to assign accounts.

import { fromEvent, lastValueFrom, merge, Observable, take, takeUntil, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import kafkajs from 'kafkajs';
import { steadyScheduler } from '../../core/clock.ts';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, errorAction, protocolError } from '../client/protocol-errors.ts';
import { kafkajsCauseOf } from '../client/protocol.ts';
import type { GroupCoordinator, MembershipGroup, Joined, Member, Place } from './group.ts';

export type { Member } from './group.ts';

/** This member's part in one generation of the group; its assignment is valid until the next generation. */
export interface Generation {
  /** Number of the generation, which rises with every rebalance. */
  readonly number: number;
  readonly memberId: string;
  readonly isLeader: boolean;
  readonly assignment: Buffer;
}

interface MembershipOptions {
  readonly group: MembershipGroup;
  /** The coordinator removes a member that sends no heartbeat for this long, in ms. */
  readonly sessionTimeoutMs: number;
  /**
   * Interval between heartbeats, in ms. Members learn of a rebalance by a heartbeat's response, so it is also the longest delay until then.
   */
  readonly heartbeatMs: number;
  /** Returns this member's metadata; called each time that it joins. */
  readonly memberMetadata: () => Buffer;
  /** Computes the group's assignment, by member id. Called only while this member is the leader. */
  readonly assign: (members: readonly Member[], generation: number) => ReadonlyMap<string, Buffer>;
  /** Each value makes this member join again with fresh metadata, so that the group rebalances. */
  readonly rejoin$: Observable<unknown>;
  /** The first value makes the member leave the group. Must replay that value to late subscribers. */
  readonly leave$: Observable<unknown>;
  /**
   * Called with true when the member has joined the group; with false when it has left it, was removed from it, or could not reach the
   * coordinator for a session timeout.
   */
  readonly onMembershipChange?: (isIn: boolean) => void;
  /** Called with the error of each failed attempt to join the group or to send a heartbeat. The attempt is repeated. */
  readonly onRetry?: (error: unknown) => void;
  /** Scheduler of the pauses, and the clock. Default {@link steadyScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Protocol type and protocol name of the group. Consumer groups have the type "consumer", so no consumer group can be joined by mistake.
 */
const PROTOCOL = { protocolType: 'cellarstream', protocol: 'accounts' } as const;
/** How much longer than the rebalance timeout a JoinGroup response may take, in ms. Too small: slow rebalances count as failures. */
const JOIN_RESPONSE_MARGIN_MS = 5_000;
/** Pause after a failed attempt to join the group, in ms. */
const PAUSE_MS = 500;
/** Longest wait for a LeaveGroup response, in ms. If no response arrives, the coordinator removes the member when its session times out. */
const LEAVE_TIMEOUT_MS = 2_000;

/** Kafka's error code UNKNOWN_MEMBER_ID. */
const UNKNOWN_MEMBER = 25;
/** Kafka's error code REBALANCE_IN_PROGRESS. */
const REBALANCING = 27;
/** Error codes after which the member joins the group again. */
const JOIN_AGAIN = new Set([ERROR.ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING]);

/**
 * Joins a Kafka group and stays a member. Emits this member's assignment of each generation, and completes when it has left the group.
 * While the coordinator can't be reached nothing is emitted, and the newest assignment stays valid.
 *
 * Errors with a CellarstreamError that no retry can resolve, such as `KAFKA_REFUSED`.
 */
export function membership(options: MembershipOptions): Observable<Generation> {
  return new Observable((subscriber) => {
    const ending = new AbortController();
    const end = () => ending.abort();
    subscriber.add(options.leave$.pipe(take(1)).subscribe(end));
    subscriber.add(end);
    runMember(options, ending.signal, (generation) => subscriber.next(generation)).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
  });
}

async function runMember(
  options: MembershipOptions,
  ending: AbortSignal,
  onGeneration: (generation: Generation) => void,
): Promise<void> {
  const coordinator = options.group.connect();
  const close = () => coordinator.close(); // otherwise a JoinGroup in flight would delay the end
  ending.addEventListener('abort', close);
  const member: MemberState = {
    ...{ id: '', confirmedAt: undefined, coordinator },
    rejoinSignal: new AbortController(),
  };
  const asked = options.rejoin$.subscribe(() => member.rejoinSignal.abort());
  try {
    while (!ending.aborted) {
      try {
        const generation = await joinOnce(options, member);
        if (!generation) continue;
        onGeneration(generation);
        await heartbeatUntilRebalance(options, member, generation.number, ending);
      } catch (error) {
        if (ending.aborted) break;
        handleFailedTry(options, member, error);
        await pause(options, PAUSE_MS, ending);
      }
    }
  } finally {
    asked.unsubscribe();
    ending.removeEventListener('abort', close);
    close();
  }
  markLeft(options, member);
  if (member.id !== '') await leave(options, member.id);
}

interface MemberState {
  /** Id of the member in its group; empty until the coordinator has assigned one. */
  id: string;
  /** When the coordinator last confirmed the membership, in ms of the scheduler; undefined while the member is out of the group. */
  confirmedAt: number | undefined;
  readonly coordinator: GroupCoordinator;
  /** Aborted when the member's metadata have changed since its newest JoinGroup, possibly while that is still in flight. */
  rejoinSignal: AbortController;
}

/** Joins the group and returns the assignment once the group has it; undefined if the member has to join again at once. */
async function joinOnce(
  options: MembershipOptions,
  member: MemberState,
): Promise<Generation | undefined> {
  const { sessionTimeoutMs, memberMetadata, assign } = options;
  // Members learn of a rebalance by their next heartbeat, so one that has not rejoined within a session timeout has crashed.
  const timeouts = { sessionTimeoutMs, rebalanceTimeoutMs: sessionTimeoutMs };
  member.rejoinSignal = new AbortController();
  const joining = { memberId: member.id, ...timeouts, ...PROTOCOL, metadata: memberMetadata() };
  const withinMs = sessionTimeoutMs + JOIN_RESPONSE_MARGIN_MS;
  const joined = await member.coordinator.join(joining, withinMs);
  if (joined.errorCode === ERROR.MEMBER_ID_REQUIRED) member.id = joined.memberId;
  if (!isAccepted(joined.errorCode, 'JoinGroup', options, member)) return undefined;
  member.id = joined.memberId;

  const { generation: number } = joined;
  const isLeader = joined.leader === joined.memberId;
  const given = isLeader ? assign(joined.members, number) : new Map<string, Buffer>();
  const synced = await member.coordinator.sync(memberIdentityOf(joined), given, withinMs);
  if (!isAccepted(synced.errorCode, 'SyncGroup', options, member)) return undefined;
  markJoined(options, member);
  return { number, memberId: member.id, isLeader, assignment: synced.assignment };
}

/** Sends heartbeats until the member has to join the group again, or `ending` is aborted. */
async function heartbeatUntilRebalance(
  options: MembershipOptions,
  member: MemberState,
  generation: number,
  ending: AbortSignal,
): Promise<void> {
  const { heartbeatMs, sessionTimeoutMs } = options;
  const news = member.rejoinSignal.signal;
  for (;;) {
    await pause(options, heartbeatMs, ending, news);
    if (ending.aborted || news.aborted) return;
    const place = { generation, memberId: member.id };
    let code: number;
    try {
      code = await member.coordinator.heartbeat(place, sessionTimeoutMs);
      if (isCoordinatorMoving(code)) throw protocolError(code, 'Heartbeat');
    } catch (error) {
      if (!ending.aborted) handleFailedTry(options, member, error); // only a response of the coordinator ends a generation
      continue;
    }
    if (!isAccepted(code, 'Heartbeat', options, member)) return;
    markJoined(options, member);
  }
}

/**
 * Handles a failed attempt to join the group or to send a heartbeat: reports it, and has the coordinator looked up again.
 *
 * @throws CellarstreamError if no retry can succeed.
 */
function handleFailedTry(options: MembershipOptions, member: MemberState, error: unknown): void {
  const { group, sessionTimeoutMs, onRetry, scheduler = steadyScheduler } = options;
  const known = memberErrorOf(error, group.name);
  if (!isRetryable(known)) throw known;
  const { confirmedAt = Infinity } = member;
  if (scheduler.now() > confirmedAt + sessionTimeoutMs) markLeft(options, member);
  member.coordinator.rediscover();
  onRetry?.(known);
}

function markJoined(
  { onMembershipChange, scheduler = steadyScheduler }: MembershipOptions,
  member: MemberState,
): void {
  const wasOut = member.confirmedAt === undefined;
  member.confirmedAt = scheduler.now();
  if (wasOut) onMembershipChange?.(true);
}

function markLeft({ onMembershipChange }: MembershipOptions, member: MemberState): void {
  const wasIn = member.confirmedAt !== undefined;
  member.confirmedAt = undefined;
  if (wasIn) onMembershipChange?.(false);
}

/**
 * Converts an error to a CellarstreamError. Error codes from a coordinator are final, except those that it sends while it starts or moves.
 */
function memberErrorOf(error: unknown, group: string): unknown {
  const cause = kafkajsCauseOf(error);
  const known = kafkaError(cause);
  const isWord = cause instanceof kafkajs.KafkaJSProtocolError && !isCoordinatorMoving(cause.code);
  if (!isWord || !isRetryable(known)) return known;
  const message = `Kafka refuses members of the group ${group}: ${cause.message}`;
  return new CellarstreamError('KAFKA_REFUSED', message, { cause });
}

/** Whether this is an error code that brokers return while a coordinator starts, moves or stops. */
function isCoordinatorMoving(code: number): boolean {
  return ['again', 'leader', 'coordinator'].includes(errorAction(code));
}

/**
 * Whether a coordinator's error code means success; false if the member has to join again.
 *
 * @throws kafkajs' protocol error for any other code.
 */
function isAccepted(
  code: number,
  what: string,
  options: MembershipOptions,
  member: MemberState,
): boolean {
  if (code === ERROR.NONE) return true;
  if (code === UNKNOWN_MEMBER) {
    member.id = '';
    markLeft(options, member);
  }
  if (JOIN_AGAIN.has(code) || code === ERROR.MEMBER_ID_REQUIRED) return false;
  throw protocolError(code, what);
}

function memberIdentityOf({ generation, memberId }: Joined): Omit<Place, 'group'> {
  return { generation, memberId };
}

/** Sends LeaveGroup over new connections, as the member's own are closed. */
async function leave(options: MembershipOptions, memberId: string): Promise<void> {
  const coordinator = options.group.connect();
  const left = coordinator.leave(memberId).catch(() => undefined); // the session times out instead
  const answered = new AbortController();
  await Promise.race([left, pause(options, LEAVE_TIMEOUT_MS, answered.signal)]);
  answered.abort();
  coordinator.close();
}

/** Waits for `ms`; resolves early when one of the signals is aborted. */
async function pause(
  { scheduler = steadyScheduler }: MembershipOptions,
  ms: number,
  ...signals: readonly AbortSignal[]
) {
  if (signals.some(({ aborted }) => aborted)) return;
  const aborted$ = merge(...signals.map((signal) => fromEvent(signal, 'abort')));
  const over$ = timer(ms, scheduler).pipe(takeUntil(aborted$));
  await lastValueFrom(over$, { defaultValue: undefined });
}
