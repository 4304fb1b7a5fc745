// A member of a group by Kafka's own protocol: what a fleet's instances share accounts out with.

import { fromEvent, lastValueFrom, merge, Observable, take, takeUntil, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import kafkajs from 'kafkajs';
import { steadyScheduler } from '../../core/clock.ts';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, meaningOf, protocolError } from '../client/protocol-errors.ts';
import { kafkasOf } from '../client/protocol.ts';
import type { Coordinator, Group, Joined, Member, Place } from './group.ts';

export type { Member } from './group.ts';

/** What a member was given, until the next generation says otherwise. */
export interface Generation {
  /** Rises with every rebalance. */
  readonly number: number;
  readonly memberId: string;
  readonly isLeader: boolean;
  readonly given: Buffer;
}

interface MembershipOptions {
  readonly group: Group;
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
  /** Told when it is in the group; and when it is out, or nothing was heard of the group for a session. */
  readonly onIn?: (isIn: boolean) => void;
  /** Told of every try that came to nothing. */
  readonly onRetry?: (error: unknown) => void;
  /** Default {@link steadyScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** Groups of consumers are "consumer": none of those can be joined by mistake. */
const PROTOCOL = { protocolType: 'cellarstream', protocol: 'accounts' } as const;
/** An answer to JoinGroup may take as long as a rebalance, and its way. */
const ON_ITS_WAY_MS = 5_000;
const PAUSE_MS = 500;
/** Leaving is good manners: without it the session runs out. */
const LEAVE_WITHIN_MS = 2_000;

/** What a coordinator's word means for a member. */
const UNKNOWN_MEMBER = 25;
const REBALANCING = 27;
/** Those after which it joins again. */
const JOIN_AGAIN = new Set([ERROR.ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING]);

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
  const coordinator = options.group.connect();
  const close = () => coordinator.close(); // a JoinGroup that is under way would hold up its end
  ending.addEventListener('abort', close);
  const member: MemberState = {
    ...{ id: '', heardAt: undefined, coordinator },
    news: new AbortController(),
  };
  const asked = options.rejoin$.subscribe(() => member.news.abort());
  try {
    while (!ending.aborted) {
      try {
        const generation = await join(options, member);
        if (!generation) continue;
        onGeneration(generation);
        await stay(options, member, generation.number, ending);
      } catch (error) {
        if (ending.aborted) break;
        goOn(options, member, error);
        await pause(options, PAUSE_MS, ending);
      }
    }
  } finally {
    asked.unsubscribe();
    ending.removeEventListener('abort', close);
    close();
  }
  isOut(options, member);
  if (member.id !== '') await leave(options, member.id);
}

interface MemberState {
  /** Empty until the coordinator has given one. */
  id: string;
  /** When the coordinator last said that it is in the group; undefined while it is out. */
  heardAt: number | undefined;
  readonly coordinator: Coordinator;
  /** Aborted when there is more to tell than it told when it joined last; that may be while it still joins. */
  news: AbortController;
}

/** Joins, and waits for what it is given; undefined when it is to join again at once. */
async function join(
  options: MembershipOptions,
  member: MemberState,
): Promise<Generation | undefined> {
  const { sessionTimeoutMs, tell, share } = options;
  // Members hear of a rebalance with their next heartbeat: who is not back within a session is gone.
  const timeouts = { sessionTimeoutMs, rebalanceTimeoutMs: sessionTimeoutMs };
  member.news = new AbortController();
  const joining = { memberId: member.id, ...timeouts, ...PROTOCOL, told: tell() };
  const withinMs = sessionTimeoutMs + ON_ITS_WAY_MS;
  const joined = await member.coordinator.join(joining, withinMs);
  if (joined.errorCode === ERROR.MEMBER_ID_REQUIRED) member.id = joined.memberId;
  if (!isWell(joined.errorCode, 'JoinGroup', options, member)) return undefined;
  member.id = joined.memberId;

  const { generation: number } = joined;
  const isLeader = joined.leader === joined.memberId;
  const given = isLeader ? share(joined.members, number) : new Map<string, Buffer>();
  const synced = await member.coordinator.sync(placeOf(joined), given, withinMs);
  if (!isWell(synced.errorCode, 'SyncGroup', options, member)) return undefined;
  isIn(options, member);
  return { number, memberId: member.id, isLeader, given: synced.given };
}

/** Gives signs until the group is to be joined again. */
async function stay(
  options: MembershipOptions,
  member: MemberState,
  generation: number,
  ending: AbortSignal,
): Promise<void> {
  const { heartbeatMs, sessionTimeoutMs } = options;
  const news = member.news.signal;
  for (;;) {
    await pause(options, heartbeatMs, ending, news);
    if (ending.aborted || news.aborted) return;
    const place = { generation, memberId: member.id };
    let code: number;
    try {
      code = await member.coordinator.beat(place, sessionTimeoutMs);
      if (isPassing(code)) throw protocolError(code, 'Heartbeat');
    } catch (error) {
      if (!ending.aborted) goOn(options, member, error); // only the coordinator's word ends a generation
      continue;
    }
    if (!isWell(code, 'Heartbeat', options, member)) return;
    isIn(options, member);
  }
}

/**
 * A try came to nothing: the coordinator is looked for anew.
 *
 * @throws CellarstreamError where no later try will do.
 */
function goOn(options: MembershipOptions, member: MemberState, error: unknown): void {
  const { group, sessionTimeoutMs, onRetry, scheduler = steadyScheduler } = options;
  const known = judged(error, group.name);
  if (!isRetryable(known)) throw known;
  const { heardAt = Infinity } = member;
  if (scheduler.now() > heardAt + sessionTimeoutMs) isOut(options, member);
  member.coordinator.lookAnew();
  onRetry?.(known);
}

function isIn({ onIn, scheduler = steadyScheduler }: MembershipOptions, member: MemberState): void {
  const wasOut = member.heardAt === undefined;
  member.heardAt = scheduler.now();
  if (wasOut) onIn?.(true);
}

function isOut({ onIn }: MembershipOptions, member: MemberState): void {
  const wasIn = member.heardAt !== undefined;
  member.heardAt = undefined;
  if (wasIn) onIn?.(false);
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
function isWell(
  code: number,
  what: string,
  options: MembershipOptions,
  member: MemberState,
): boolean {
  if (code === ERROR.NONE) return true;
  if (code === UNKNOWN_MEMBER) {
    member.id = '';
    isOut(options, member);
  }
  if (JOIN_AGAIN.has(code) || code === ERROR.MEMBER_ID_REQUIRED) return false;
  throw protocolError(code, what);
}

function placeOf({ generation, memberId }: Joined): Omit<Place, 'group'> {
  return { generation, memberId };
}

/** On connections of its own: the member's may wait for an answer that stays out. */
async function leave(options: MembershipOptions, memberId: string): Promise<void> {
  const coordinator = options.group.connect();
  const left = coordinator.leave(memberId).catch(() => undefined); // its session runs out
  const answered = new AbortController();
  await Promise.race([left, pause(options, LEAVE_WITHIN_MS, answered.signal)]);
  answered.abort();
  coordinator.close();
}

/** Resolves early when one of the signals is aborted. */
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
