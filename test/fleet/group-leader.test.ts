import { describe, expect, it } from 'vitest';
import { Leader } from '../../src/fleet/group-leader.ts';
import { packMemberMetadata, unpackFleetAssignment } from '../../src/fleet/member-metadata.ts';
import type { Report } from '../../src/fleet/report.ts';
import { SimTime } from '../sim/sim-time.ts';

const ALL = ['a', 'b', 'c', 'd', 'e', 'f'];
const HEAVY = 4;

/** The leader of two instances, which are as long in the group as it is. */
function fleet({ isLeader = true, known = ALL }: { isLeader?: boolean; known?: string[] } = {}) {
  const time = new SimTime(0);
  const leading = new Leader(time.scheduler);
  const weights = new Map(ALL.map((account) => [account, 1]));
  let owners = new Map<string, string>();
  const own = (instance: string) =>
    [...owners].flatMap(([account, owner]) => (owner === instance ? [account] : []));
  const weightOf = (account: string) => ({ weight: weights.get(account)! });
  let number = 0;

  const rebalance = () => {
    const members = ['one', 'two'].map((instance) => {
      const held = new Map(
        own(instance).map((account) => [account, { generation: number, ...weightOf(account) }]),
      );
      const told = packMemberMetadata({
        instance,
        name: instance,
        configured: known,
        owned: held,
        warm: [],
        apiKeyDigests: new Map(),
      });
      return { id: instance, metadata: told };
    });
    const given = leading.assign(members).get('one')!;
    number += 1;
    leading.generationStarted(
      { number, memberId: 'one', isLeader, assignment: given },
      unpackFleetAssignment(given),
    );
    const before = owners;
    owners = new Map(unpackFleetAssignment(given).accounts);
    return ALL.filter((account) => before.get(account) !== owners.get(account));
  };
  /** A generation without the leader: all is given to the other one. */
  const miss = () => {
    number += 1;
    owners = new Map(ALL.map((account) => [account, 'two']));
  };
  /** Whether it is due at any time in so many minutes. */
  const isDueWithin = async (minutes: number): Promise<boolean> => {
    for (let k = 0; k < minutes * 4; k++) {
      const reports = new Map(
        ['one', 'two'].map((instance): [string, Report] => {
          const accounts = Object.fromEntries(own(instance).map((each) => [each, weightOf(each)]));
          return [instance, { type: 'reports', instance, name: instance, at: '', accounts }];
        }),
      );
      if (leading.isRebalanceDue(reports)) return true;
      await time.pass(15_000);
    }
    return false;
  };
  const weigh = (accounts: readonly string[], weight: number) =>
    accounts.forEach((account) => weights.set(account, weight));
  return { own, rebalance, miss, isDueWithin, weigh, time };
}

describe('an instance whose accounts have become heavy', () => {
  it('gives some away when it has been so for ten minutes, as many as it takes', async () => {
    const { own, rebalance, isDueWithin, weigh } = fleet();
    expect(rebalance()).toEqual(ALL);
    const [heavy] = own('one');
    weigh(own('one'), HEAVY);
    expect(await isDueWithin(9.9)).toBe(false);
    expect(await isDueWithin(0.5)).toBe(true);
    expect(rebalance()).toEqual([heavy]); // 12 and 3 become 8 and 7
    expect(await isDueWithin(30)).toBe(false);
  });

  it('keeps them where it is over sooner', async () => {
    const { own, rebalance, isDueWithin, weigh } = fleet();
    rebalance();
    weigh(own('one'), HEAVY);
    expect(await isDueWithin(9)).toBe(false);
    weigh(ALL, 1);
    expect(await isDueWithin(1)).toBe(false);
    weigh(own('one'), HEAVY);
    expect(await isDueWithin(9)).toBe(false);
  });

  it('keeps them through a rebalance of another cause', async () => {
    const { own, rebalance, isDueWithin, weigh } = fleet();
    rebalance();
    weigh(own('one'), HEAVY);
    expect(await isDueWithin(9)).toBe(false);
    expect(rebalance()).toEqual([]);
    expect(await isDueWithin(2)).toBe(true);
  });

  it('is asked about again after ten more minutes, not sooner', async () => {
    const { own, rebalance, isDueWithin, weigh } = fleet();
    rebalance();
    weigh(own('one'), HEAVY);
    expect(await isDueWithin(11)).toBe(true);
    rebalance();
    weigh(own('one'), 3 * HEAVY);
    expect(await isDueWithin(9.9)).toBe(false);
    expect(await isDueWithin(0.5)).toBe(true);
  });

  it('keeps one that is heavier than the difference', async () => {
    const { own, rebalance, isDueWithin, weigh } = fleet();
    rebalance();
    weigh(ALL, 0.01);
    weigh(own('one'), 0.1);
    weigh(own('one').slice(0, 1), 3); // 3.2 and 0.03: with it on the other it would be 0.2 and 3.03
    expect(await isDueWithin(30)).toBe(false);
  });

  it('is of no concern to a member that does not lead', async () => {
    const { own, rebalance, isDueWithin, weigh } = fleet({ isLeader: false });
    rebalance();
    weigh(own('one'), HEAVY);
    expect(await isDueWithin(30)).toBe(false);
  });
});

describe('a leader that was cut off', () => {
  it('has its part again at once, though the members are those that it knew', () => {
    const { own, rebalance, miss } = fleet();
    rebalance();
    expect(rebalance()).toEqual([]);
    miss();
    expect(rebalance()).toHaveLength(3);
    expect(own('one')).toHaveLength(3);
  });
});
