import type {
  GroupCoordinator,
  MembershipGroup,
  Joined,
  JoinGroup,
  MemberIdentity,
  Synced,
} from '../../../src/kafka/membership/group.ts';
import type { SimTime } from '../sim-time.ts';
import { reach, unreachable } from './sim-line.ts';
import type { SimLine } from './sim-line.ts';

type Timer = ReturnType<SimTime['scheduler']['schedule']>;

interface SimMember {
  readonly id: string;
  metadata: Buffer;
  sessionMs: number;
  rebalanceMs: number;
  session: Timer | undefined;
  joining: ((answer: Joined) => void) | undefined;
  syncing: ((answer: Synced) => void) | undefined;
  given: Buffer;
}

const NONE = 0;
const NOT_COORDINATOR = 16;
const ILLEGAL_GENERATION = 22;
const UNKNOWN_MEMBER = 25;
const REBALANCING = 27;
const MEMBER_ID_REQUIRED = 79;
/** The first member of an empty group waits for others, as brokers have it by default for developers, ms. */
const FIRST_DELAY_MS = 500;

const NOTHING = Buffer.alloc(0);
const refusedJoin = (errorCode: number, memberId = ''): Joined => ({
  ...{ errorCode, memberId },
  ...{ generation: -1, leader: '', members: [] },
});

/** What was decided in one generation. */
export interface SimGeneration {
  readonly number: number;
  readonly at: number;
  /** What each member has told, and what the leader has given. */
  readonly metadata: readonly Buffer[];
  readonly given: Buffer;
}

/** Kafka's coordinator of one group: https://kafka.apache.org/protocol#protocol_api_keys, JoinGroup to LeaveGroup. */
export class SimGroup {
  readonly #time: SimTime;
  #members = new Map<string, SimMember>();
  /** Those that were given an id, and have not joined with it. */
  readonly #pending = new Map<string, Timer>();
  #state: 'empty' | 'preparing' | 'completing' | 'stable' = 'empty';
  #generation = 0;
  #leader = '';
  #rebalance: Timer | undefined;
  #ids = 0;
  /** Whether it was empty, and waits a little for more members. */
  #isGathering = false;
  /** As it stands in the log of the coordinators: what the next one knows. */
  #saved: { readonly generation: number; readonly leader: string; readonly members: SimMember[] } =
    {
      ...{ generation: 0, leader: '', members: [] },
    };
  /** Its broker is gone, and no other has taken its place yet. */
  isAway = false;
  /** Goes away as the next of these begins. */
  #diesAt: 'preparing' | 'completing' | undefined;
  #onDeath: (() => void) | undefined;
  /** Whoever waits for an answer. */
  readonly waiting = new Set<() => void>();
  readonly stable: SimGeneration[] = [];
  rebalances = 0;

  constructor(time: SimTime) {
    this.#time = time;
  }

  has(memberId: string): boolean {
    return this.#members.has(memberId);
  }

  get isStable(): boolean {
    return this.#state === 'stable' && !this.isAway;
  }

  /** Its broker is to die in the middle of a rebalance. */
  dies(at: 'preparing' | 'completing' | undefined, onDeath?: () => void): void {
    this.#diesAt = at;
    this.#onDeath = onDeath;
  }

  /** The coordinator's broker dies: what was not saved is forgotten, nobody who waits is answered. */
  leave(): void {
    if (this.isAway) return;
    this.isAway = true;
    if (this.#diesAt) this.#onDeath?.();
    this.#diesAt = undefined;
    for (const { session } of this.#members.values()) session?.unsubscribe();
    for (const timer of this.#pending.values()) timer.unsubscribe();
    this.#pending.clear();
    this.#rebalance?.unsubscribe();
    for (const end of [...this.waiting]) end();
  }

  /** Another broker reads what was saved, and gives all members a session's time. */
  come(): void {
    if (!this.isAway) return;
    this.isAway = false;
    const { generation, leader, members } = this.#saved;
    this.#generation = generation;
    this.#leader = leader;
    this.#members = new Map(
      members.map((member) => [member.id, { ...member, joining: undefined, syncing: undefined }]),
    );
    this.#state = members.length > 0 ? 'stable' : 'empty';
    for (const member of this.#members.values()) this.#sign(member);
  }

  join(joining: JoinGroup, answer: (joined: Joined) => void): void {
    const { memberId, metadata, sessionTimeoutMs } = joining;
    if (memberId === '') {
      const id = `m${++this.#ids}`;
      const forget = () => {
        this.#pending.delete(id);
        this.#tryToComplete();
      };
      this.#pending.set(id, this.#time.scheduler.schedule(forget, sessionTimeoutMs));
      return answer(refusedJoin(MEMBER_ID_REQUIRED, id));
    }
    const known = this.#members.get(memberId);
    if (!known && !this.#pending.has(memberId))
      return answer(refusedJoin(UNKNOWN_MEMBER, memberId));
    this.#pending.get(memberId)?.unsubscribe();
    this.#pending.delete(memberId);
    const isSame = known?.metadata.equals(metadata) ?? false;
    const member: SimMember = known ?? {
      ...{
        id: memberId,
        metadata,
        sessionMs: sessionTimeoutMs,
        rebalanceMs: sessionTimeoutMs,
      },
      ...{ session: undefined, joining: undefined, syncing: undefined, given: NOTHING },
    };
    this.#members.set(memberId, member);
    member.metadata = metadata;
    // Who has not heard the answer asks again; in a stable group that is news of the leader alone.
    if (isSame && this.#state === 'completing') return answer(this.#answerTo(member));
    if (isSame && this.#state === 'stable' && memberId !== this.#leader)
      return answer(this.#answerTo(member));
    member.joining = answer;
    member.session?.unsubscribe(); // whoever waits is alive
    if (this.#state !== 'preparing') this.#prepare();
    if (!this.isAway) this.#tryToComplete();
  }

  sync(
    { memberId, generation }: MemberIdentity,
    given: ReadonlyMap<string, Buffer>,
    answer: (synced: Synced) => void,
  ): void {
    const member = this.#members.get(memberId);
    const refused = (errorCode: number) => answer({ errorCode, assignment: NOTHING });
    if (!member) return refused(UNKNOWN_MEMBER);
    if (generation !== this.#generation) return refused(ILLEGAL_GENERATION);
    if (this.#state === 'preparing') return refused(REBALANCING);
    this.#sign(member);
    if (this.#state === 'stable') return answer({ errorCode: NONE, assignment: member.given });
    member.syncing = answer;
    if (memberId !== this.#leader) return;
    this.#state = 'stable';
    this.#rebalance?.unsubscribe();
    for (const each of this.#members.values()) each.given = given.get(each.id) ?? NOTHING;
    this.#save();
    this.stable.push({
      ...{ number: this.#generation, at: this.#time.now() },
      metadata: [...this.#members.values()].map((each) => each.metadata),
      given: member.given,
    });
    for (const each of this.#members.values()) {
      each.syncing?.({ errorCode: NONE, assignment: each.given });
      each.syncing = undefined;
    }
  }

  beat({ memberId, generation }: MemberIdentity): number {
    const member = this.#members.get(memberId);
    if (!member) return UNKNOWN_MEMBER;
    if (generation !== this.#generation) return ILLEGAL_GENERATION;
    this.#sign(member);
    return this.#state === 'preparing' ? REBALANCING : NONE;
  }

  goodbye(memberId: string): number {
    const member = this.#members.get(memberId);
    if (!member) return UNKNOWN_MEMBER;
    this.#remove(member);
    return NONE;
  }

  /** A sign of life. */
  #sign(member: SimMember): void {
    member.session?.unsubscribe();
    const out = () => {
      // Who waits for an answer is alive as far as the coordinator can see.
      if (member.joining || member.syncing) this.#sign(member);
      else this.#remove(member);
    };
    member.session = this.#time.scheduler.schedule(out, member.sessionMs);
  }

  #remove(member: SimMember): void {
    member.session?.unsubscribe();
    member.joining?.(refusedJoin(UNKNOWN_MEMBER, member.id));
    member.syncing?.({ errorCode: UNKNOWN_MEMBER, assignment: NOTHING });
    this.#members.delete(member.id);
    if (this.#state === 'preparing') this.#tryToComplete();
    else this.#prepare();
  }

  #prepare(): void {
    const wasEmpty = this.#state === 'empty';
    this.#state = 'preparing';
    this.rebalances += 1;
    if (this.#diesAt === 'preparing') return this.leave();
    for (const member of this.#members.values()) {
      if (!member.syncing) continue;
      member.syncing({ errorCode: REBALANCING, assignment: NOTHING });
      member.syncing = undefined;
      this.#sign(member);
    }
    const waitMs = Math.max(0, ...[...this.#members.values()].map((each) => each.rebalanceMs));
    this.#rebalance?.unsubscribe();
    const complete = () => this.#complete();
    this.#rebalance = this.#time.scheduler.schedule(complete, wasEmpty ? FIRST_DELAY_MS : waitMs);
    this.#isGathering = wasEmpty;
    this.#tryToComplete();
  }

  #tryToComplete(): void {
    if (this.#state !== 'preparing' || this.#isGathering) return;
    const all = [...this.#members.values()];
    if (this.#pending.size === 0 && all.every(({ joining }) => joining)) this.#complete();
  }

  /** Who has not joined again by now is out. */
  #complete(): void {
    this.#isGathering = false;
    this.#rebalance?.unsubscribe();
    for (const member of this.#members.values()) {
      if (member.joining) continue;
      member.session?.unsubscribe();
      this.#members.delete(member.id);
    }
    this.#generation += 1;
    const all = [...this.#members.values()];
    if (all.length === 0) {
      this.#state = 'empty';
      return this.#save();
    }
    if (!this.#members.has(this.#leader)) this.#leader = all[0]!.id;
    this.#state = 'completing';
    if (this.#diesAt === 'completing') return this.leave();
    for (const member of all) {
      const { joining } = member;
      member.joining = undefined;
      this.#sign(member);
      joining!(this.#answerTo(member));
    }
    // The leader's word does not come: who is still waited for is out.
    const late = () => {
      for (const member of all) {
        if (this.#members.get(member.id) === member && !member.syncing) this.#remove(member);
      }
    };
    const waitMs = Math.max(...all.map(({ rebalanceMs }) => rebalanceMs));
    this.#rebalance = this.#time.scheduler.schedule(late, waitMs);
  }

  #answerTo({ id }: SimMember): Joined {
    const members = [...this.#members.values()].map((each) => ({
      id: each.id,
      metadata: each.metadata,
    }));
    return {
      ...{ errorCode: NONE, generation: this.#generation, leader: this.#leader, memberId: id },
      members: id === this.#leader ? members : [],
    };
  }

  #save(): void {
    this.#saved = {
      ...{ generation: this.#generation, leader: this.#leader },
      members: [...this.#members.values()].map((member) => ({ ...member })),
    };
  }
}

/** The group as one instance reaches it. */
export function groupOf(
  group: SimGroup,
  line: SimLine,
  scheduler: SimTime['scheduler'],
  onMember: (memberId: string) => void,
): MembershipGroup {
  const connect = (): GroupCoordinator => {
    let isClosed = false;
    const waiting = new Set<(error: Error) => void>();
    /** What is asked, and its answer, if it comes in time; the way of both. */
    const ask = async <T>(
      what: string,
      withinMs: number,
      put: (answer: (given: T) => void) => void,
      refused: () => T,
    ): Promise<T> => {
      if (isClosed) throw unreachable();
      await reach(line, what);
      if (group.isAway) {
        await line.step('to another coordinator');
        return refused();
      }
      const given = await new Promise<T>((resolve, reject) => {
        const late = scheduler.schedule(() => fail(unreachable()), withinMs);
        const fail = (error: Error) => {
          late.unsubscribe();
          waiting.delete(fail);
          reject(error);
        };
        waiting.add(fail);
        put((answer) => {
          late.unsubscribe();
          waiting.delete(fail);
          resolve(answer);
        });
      });
      await reach(line, `${what} answered`);
      if (isClosed) throw unreachable();
      return given;
    };
    const breaks = () => {
      for (const fail of [...waiting]) fail(unreachable());
    };
    group.waiting.add(breaks);
    return {
      join: async (joining, withinMs) => {
        const joined = await ask<Joined>(
          'join',
          withinMs,
          (answer) => group.join(joining, answer),
          () => refusedJoin(NOT_COORDINATOR, joining.memberId),
        );
        if (joined.errorCode === NONE) onMember(joined.memberId);
        return joined;
      },
      sync: (place, given, withinMs) =>
        ask<Synced>(
          'sync',
          withinMs,
          (answer) => group.sync(place, given, answer),
          () => ({ errorCode: NOT_COORDINATOR, assignment: NOTHING }),
        ),
      heartbeat: (place, withinMs) =>
        ask<number>(
          'beat',
          withinMs,
          (answer) => answer(group.beat(place)),
          () => NOT_COORDINATOR,
        ),
      leave: (memberId) =>
        ask<number>(
          'goodbye',
          5_000,
          (answer) => answer(group.goodbye(memberId)),
          () => NOT_COORDINATOR,
        ),
      rediscover: () => undefined,
      close: () => {
        isClosed = true;
        group.waiting.delete(breaks);
        breaks();
      },
    };
  };
  return { name: 'fleet', connect };
}
