import { NEVER, ReplaySubject, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { MembershipGroup } from '../../../src/kafka/membership/group.ts';
import { membership } from '../../../src/kafka/membership/membership.ts';
import { groupOf, SimGroup } from '../../sim/fleet/sim-group.ts';
import { SimTime } from '../../sim/sim-time.ts';

/** A group of one, which takes its time to answer; gives what it was told, each time that it was joined. */
function slowGroup(time: SimTime, answerMs: number) {
  const metadata: string[] = [];
  const answered = async <T>(answer: T): Promise<T> => {
    await time.sleep(answerMs);
    return answer;
  };
  const group: MembershipGroup = {
    name: 'one',
    connect: () => ({
      join: ({ metadata: bytes }) => {
        const generation = metadata.push(bytes.toString());
        const members = [{ id: 'm', metadata: bytes }];
        return answered({ errorCode: 0, generation, leader: 'm', memberId: 'm', members });
      },
      sync: (_, given) => answered({ errorCode: 0, assignment: given.get('m')! }),
      heartbeat: () => answered(0),
      leave: () => answered(0),
      rediscover: () => undefined,
      close: () => undefined,
    }),
  };
  return { group, metadata };
}

it.each([
  ['before it is answered', 500],
  ['before it is given anything', 1_500],
  ['between two signs of life', 2_500],
])('a member that has news %s tells it', async (_, newsMs) => {
  const time = new SimTime(0);
  const { group, metadata } = slowGroup(time, 1_000);
  let files = 'a';
  const rejoin$ = new Subject<void>();
  const subscription = membership({
    ...{ group, rejoin$, leave$: NEVER, scheduler: time.scheduler },
    ...{ sessionTimeoutMs: 8_000, heartbeatMs: 1_000 },
    memberMetadata: () => Buffer.from(files),
    assign: (members) => new Map(members.map((member) => [member.id, member.metadata])),
  }).subscribe();
  await time.pass(newsMs);
  files = 'a,b';
  rejoin$.next();
  await time.pass(10_000);
  subscription.unsubscribe();
  expect(metadata).toEqual(['a', 'a,b']);
});

describe('a member', () => {
  /** One that reaches the group of a model, or does not. */
  function member() {
    const time = new SimTime(0);
    const sim = new SimGroup(time);
    let isCutOff = false;
    let heldUntil = 0;
    const scheduler = time.timersOf(() => heldUntil);
    const step = () => time.sleep(10);
    const line = { step, isCutOff: () => isCutOff };
    const metadata: { readonly at: number; readonly isIn: boolean }[] = [];
    const leave$ = new ReplaySubject<void>(1);
    membership({
      group: groupOf(sim, line, scheduler, () => undefined),
      ...{ rejoin$: NEVER, leave$, scheduler },
      ...{ sessionTimeoutMs: 8_000, heartbeatMs: 1_000 },
      memberMetadata: () => Buffer.from('a'),
      assign: (members) => new Map(members.map((each) => [each.id, each.metadata])),
      onMembershipChange: (isIn) => metadata.push({ at: time.now(), isIn }),
    }).subscribe();
    const inGroup = () => metadata.map(({ isIn }) => isIn);
    return {
      ...{ time, sim, metadata, leave$, inGroup },
      cutOff: (isSo: boolean) => (isCutOff = isSo),
      pause: (ms: number) => (heldUntil = time.now() + ms),
    };
  }

  it('says that it is in the group, and that it has left', async () => {
    const { time, leave$, inGroup } = member();
    await time.pass(60_000);
    expect(inGroup()).toEqual([true]);
    leave$.next();
    await time.pass(5_000);
    expect(inGroup()).toEqual([true, false]);
  });

  it('says that it is out when it has heard nothing for a session, and when it is in again', async () => {
    const { time, metadata, inGroup, cutOff } = member();
    await time.pass(5_000);
    const since = time.now();
    cutOff(true);
    await time.pass(7_000);
    expect(inGroup()).toEqual([true]);
    await time.pass(30_000);
    expect(inGroup()).toEqual([true, false]);
    expect(metadata[1]!.at - since).toBeLessThan(10_000);
    cutOff(false);
    await time.pass(5_000);
    expect(inGroup()).toEqual([true, false, true]);
  });

  it('stays in while another coordinator takes over soon', async () => {
    const { time, sim, inGroup } = member();
    await time.pass(5_000);
    sim.leave();
    await time.pass(6_000);
    sim.come();
    await time.pass(20_000);
    expect(inGroup()).toEqual([true]);
  });

  it('finds out that it was put out while it stood still', async () => {
    const { time, inGroup, pause } = member();
    await time.pass(5_000);
    pause(20_000);
    await time.pass(19_000);
    expect(inGroup()).toEqual([true]);
    await time.pass(10_000);
    expect(inGroup()).toEqual([true, false, true]);
  });
});
