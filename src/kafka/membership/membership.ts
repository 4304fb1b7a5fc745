// A member of a Kafka group. The instances of a fleet use such a group to assign accounts.

import { fromEvent, lastValueFrom, merge, Observable, take, takeUntil, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import kafkajs from 'kafkajs';
import { steadyScheduler } from '../../core/clock.ts';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { PAUSES } from '../../core/retries.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, errorAction, protocolError } from '../client/protocol-errors.ts';
import { kafkajsCauseOf } from '../client/protocol.ts';
import type { GroupCoordinator, Member, MembershipGroup } from './group.ts';

export type { Member } from './group.ts';

/** This member's part in one generation of its Kafka group. The assignment is valid until the next generation. */
export interface Generation {
  /** Number of the generation. It rises with every rebalance. */
  readonly number: number;
  readonly memberId: string;
  readonly isLeader: boolean;
  readonly assignment: Buffer;
}

interface MembershipOptions {
  readonly group: MembershipGroup;
  /** Time without a heartbeat after which the coordinator removes a member, in ms. */
  readonly sessionTimeoutMs: number;
  /** Interval between heartbeats, in ms. It is also the longest time after which a member learns of a rebalance. */
  readonly heartbeatMs: number;
  /** Returns this member's metadata. Called each time the member joins. */
  readonly memberMetadata: () => Buffer;
  /** Computes the assignments of all members, by member id. Called only while this member is the leader. */
  readonly assign: (members: readonly Member[], generation: number) => ReadonlyMap<string, Buffer>;
  /** Each value makes this member join again with fresh metadata. If the metadata have changed, this causes a rebalance. */
  readonly rejoin$: Observable<unknown>;
  /** The first value makes the member leave its Kafka group. The observable must replay that value to late subscribers. */
  readonly leave$: Observable<unknown>;
  /**
   * Called with true when the member has joined its Kafka group. Called with false when it has left, was removed, or got no response for a
   * session timeout.
   */
  readonly onMembershipChange?: (isIn: boolean) => void;
  /** Called with the error if joining or sending a heartbeat fails and is then repeated. */
  readonly onRetry?: (error: unknown) => void;
  /** Clock and timers. Default: {@link steadyScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/**
 * How much longer than the rebalance timeout the response to a JoinGroup or SyncGroup request may take, in ms. If it is too small, slow
 * rebalances count as failures.
 */
const JOIN_RESPONSE_MARGIN_MS = 5_000;
/** Longest wait for a LeaveGroup response, in ms. If no response arrives, the coordinator removes the member when its session times out. */
const LEAVE_TIMEOUT_MS = 2_000;

/** Error codes in responses that make the member join again. */
const JOIN_AGAIN: ReadonlySet<number> = new Set([
  ...[ERROR.ILLEGAL_GENERATION, ERROR.UNKNOWN_MEMBER_ID],
  ...[ERROR.REBALANCE_IN_PROGRESS, ERROR.MEMBER_ID_REQUIRED],
]);

/**
 * Joins a Kafka group and stays a member. Emits each generation (period between two rebalances) with this member's assignment, and
 * completes when the member has left. While the coordinator can't be reached, the newest assignment stays valid.
 *
 * @throws CellarstreamError, as an error of the stream, if no retry can succeed; for example `KAFKA_REFUSED`.
 */
export function membership(options: MembershipOptions): Observable<Generation> {
  return new Observable((subscriber) => {
    const ending = new AbortController();
    const end = () => ending.abort();
    subscriber.add(options.leave$.pipe(take(1)).subscribe(end));
    subscriber.add(end);
    const member = new GroupMember(options, ending.signal);
    member
      .run((generation) => subscriber.next(generation))
      .then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
  });
}

/**
 * One member of a Kafka group. It joins, sends heartbeats, and joins again after a rebalance, when `rejoin$` emits, or when the coordinator
 * has removed it. Aborting `ending` makes the member leave.
 */
class GroupMember {
  readonly #options: MembershipOptions;
  readonly #scheduler: SchedulerLike;
  readonly #ending: AbortSignal;
  readonly #coordinator: GroupCoordinator;
  /** Id of the member; empty until the coordinator has assigned one. */
  #id = '';
  /**
   * Time at which the coordinator last confirmed the membership, in ms on the scheduler's clock; undefined while the member is outside the
   * Kafka group.
   */
  #confirmedAt: number | undefined;
  /** Aborted when `rejoin$` emits, so that the member joins again. Replaced whenever the member begins to join. */
  #changed = new AbortController();

  constructor(options: MembershipOptions, ending: AbortSignal) {
    this.#options = options;
    this.#scheduler = options.scheduler ?? steadyScheduler;
    this.#ending = ending;
    this.#coordinator = options.group.connect();
  }

  /** Stays in the Kafka group until `ending` is aborted, then leaves it. @throws CellarstreamError if no retry can succeed. */
  async run(onGeneration: (generation: Generation) => void): Promise<void> {
    const close = () => this.#coordinator.close(); // otherwise a JoinGroup in flight would delay the end
    this.#ending.addEventListener('abort', close);
    const changes = this.#options.rejoin$.subscribe(() => this.#changed.abort());
    try {
      while (!this.#ending.aborted) {
        try {
          const generation = await this.#join();
          if (!generation) continue;
          onGeneration(generation);
          await this.#stay(generation.number);
        } catch (error) {
          if (this.#ending.aborted) break;
          this.#failed(error);
          await this.#pause(PAUSES.groupJoin.firstMs, this.#ending);
        }
      }
    } finally {
      changes.unsubscribe();
      this.#ending.removeEventListener('abort', close);
      close();
    }
    this.#markOut();
    if (this.#id !== '') await this.#leave();
  }

  /** Joins the Kafka group, and returns this member's part in the generation; undefined if the member has to join again at once. */
  async #join(): Promise<Generation | undefined> {
    const { sessionTimeoutMs, memberMetadata, assign } = this.#options;
    this.#changed = new AbortController();
    const joining = { memberId: this.#id, sessionTimeoutMs, metadata: memberMetadata() };
    const withinMs = sessionTimeoutMs + JOIN_RESPONSE_MARGIN_MS;
    const joined = await this.#coordinator.join(joining, withinMs);
    const { errorCode, generation, memberId } = joined;
    if (errorCode === ERROR.MEMBER_ID_REQUIRED) this.#id = memberId;
    if (!this.#isAccepted(errorCode, 'JoinGroup')) return undefined;
    this.#id = memberId;

    const isLeader = joined.leader === memberId;
    const assignments = isLeader ? assign(joined.members, generation) : new Map<string, Buffer>();
    const synced = await this.#coordinator.sync({ generation, memberId }, assignments, withinMs);
    if (!this.#isAccepted(synced.errorCode, 'SyncGroup')) return undefined;
    this.#markIn();
    return { number: generation, memberId, isLeader, assignment: synced.assignment };
  }

  /** Sends heartbeats until the member has to join again or leave. */
  async #stay(generation: number): Promise<void> {
    const { heartbeatMs, sessionTimeoutMs } = this.#options;
    const changed = this.#changed.signal;
    for (;;) {
      await this.#pause(heartbeatMs, this.#ending, changed);
      if (this.#ending.aborted || changed.aborted) return;
      let code: number;
      try {
        const identity = { generation, memberId: this.#id };
        code = await this.#coordinator.heartbeat(identity, sessionTimeoutMs);
        if (isCoordinatorMoving(code)) throw protocolError(code, 'Heartbeat');
      } catch (error) {
        if (!this.#ending.aborted) this.#failed(error); // only a response of the coordinator ends a generation
        continue;
      }
      if (!this.#isAccepted(code, 'Heartbeat')) return;
      this.#markIn();
    }
  }

  /**
   * Handles the error of a failed attempt to join or to send a heartbeat: passes it to `onRetry`, and makes the next attempt look up the
   * coordinator again.
   *
   * @throws CellarstreamError if no retry can succeed.
   */
  #failed(error: unknown): void {
    const { group, sessionTimeoutMs, onRetry } = this.#options;
    const known = memberErrorOf(error, group.name);
    if (!isRetryable(known)) throw known;
    if (this.#scheduler.now() > (this.#confirmedAt ?? Infinity) + sessionTimeoutMs) this.#markOut();
    this.#coordinator.rediscover();
    onRetry?.(known);
  }

  /**
   * Returns true if the error code in a response means success, and false if the member has to join the group again.
   *
   * @throws kafkajs' error for any other code.
   */
  #isAccepted(code: number, request: string): boolean {
    if (code === ERROR.NONE) return true;
    if (code === ERROR.UNKNOWN_MEMBER_ID) {
      this.#id = '';
      this.#markOut();
    }
    if (JOIN_AGAIN.has(code)) return false;
    throw protocolError(code, request);
  }

  #markIn(): void {
    const wasOut = this.#confirmedAt === undefined;
    this.#confirmedAt = this.#scheduler.now();
    if (wasOut) this.#options.onMembershipChange?.(true);
  }

  #markOut(): void {
    const wasIn = this.#confirmedAt !== undefined;
    this.#confirmedAt = undefined;
    if (wasIn) this.#options.onMembershipChange?.(false);
  }

  /** Sends LeaveGroup over new connections, because the member's previous connections are closed. */
  async #leave(): Promise<void> {
    const coordinator = this.#options.group.connect();
    const left = coordinator.leave(this.#id).catch(() => undefined); // the session times out instead
    const answered = new AbortController();
    await Promise.race([left, this.#pause(LEAVE_TIMEOUT_MS, answered.signal)]);
    answered.abort();
    coordinator.close();
  }

  /** Resolves after `ms` milliseconds, or earlier when one of the signals is aborted. */
  async #pause(ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
    if (signals.some(({ aborted }) => aborted)) return;
    const aborted$ = merge(...signals.map((signal) => fromEvent(signal, 'abort')));
    const over$ = timer(ms, this.#scheduler).pipe(takeUntil(aborted$));
    await lastValueFrom(over$, { defaultValue: undefined });
  }
}

/**
 * Converts an error to a CellarstreamError. An error code from a coordinator becomes an error that is not retried, unless the code means
 * that the coordinator is starting, moving or stopping.
 */
function memberErrorOf(error: unknown, group: string): unknown {
  const cause = kafkajsCauseOf(error);
  const known = kafkaError(error);
  const isCode = cause instanceof kafkajs.KafkaJSProtocolError && !isCoordinatorMoving(cause.code);
  if (!isCode || !isRetryable(known)) return known;
  const message = `Kafka does not let this process join the group ${group}: ${cause.message}`;
  return new CellarstreamError('KAFKA_REFUSED', message, { cause });
}

/** Whether brokers return this error code while a coordinator starts, moves or stops. */
function isCoordinatorMoving(code: number): boolean {
  return ['again', 'leader', 'coordinator'].includes(errorAction(code));
}
