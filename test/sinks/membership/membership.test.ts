import { NEVER, Subject } from 'rxjs';
import { expect, it } from 'vitest';
import type { Group } from '../../../src/sinks/membership/group.ts';
import { membership } from '../../../src/sinks/membership/membership.ts';
import { SimTime } from '../../sim/sim-time.ts';

/** A group of one, which takes its time to answer; gives what it was told, each time that it was joined. */
function slowGroup(time: SimTime, answerMs: number) {
  const told: string[] = [];
  const answered = async <T>(answer: T): Promise<T> => {
    await time.sleep(answerMs);
    return answer;
  };
  const group: Group = {
    name: 'one',
    connect: () => ({
      join: ({ told: bytes }) => {
        const generation = told.push(bytes.toString());
        const members = [{ id: 'm', told: bytes }];
        return answered({ errorCode: 0, generation, leader: 'm', memberId: 'm', members });
      },
      sync: (_, given) => answered({ errorCode: 0, given: given.get('m')! }),
      beat: () => answered(0),
      leave: () => answered(0),
      lookAnew: () => undefined,
      close: () => undefined,
    }),
  };
  return { group, told };
}

it.each([
  ['before it is answered', 500],
  ['before it is given anything', 1_500],
  ['between two signs of life', 2_500],
])('a member that has news %s tells it', async (_, newsMs) => {
  const time = new SimTime(0);
  const { group, told } = slowGroup(time, 1_000);
  let files = 'a';
  const rejoin$ = new Subject<void>();
  const subscription = membership({
    ...{ group, rejoin$, leave$: NEVER, scheduler: time.scheduler },
    ...{ sessionTimeoutMs: 8_000, heartbeatMs: 1_000 },
    tell: () => Buffer.from(files),
    share: (members) => new Map(members.map((member) => [member.id, member.told])),
  }).subscribe();
  await time.pass(newsMs);
  files = 'a,b';
  rejoin$.next();
  await time.pass(10_000);
  subscription.unsubscribe();
  expect(told).toEqual(['a', 'a,b']);
});
