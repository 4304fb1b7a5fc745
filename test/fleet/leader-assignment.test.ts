import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  packMemberMetadata,
  unpackFleetAssignment,
  unpackMemberMetadata,
} from '../../src/fleet/member-metadata.ts';
import type { MemberMetadata } from '../../src/fleet/member-metadata.ts';
import { Leader } from '../../src/fleet/group-leader.ts';
import { SimTime } from '../sim/sim-time.ts';

const NONE = { owned: new Map(), warm: [], apiKeyDigests: new Map() } as const;
const accounts = (count: number) => Array.from({ length: count }, (_, n) => `winery-${n}`);
const told = (instance: string, some: Partial<MemberMetadata> = {}): MemberMetadata => ({
  ...NONE,
  ...{ instance, name: `${instance}-host`, configured: accounts(6) },
  ...some,
});
const member = (one: MemberMetadata) => ({
  id: `member of ${one.instance}`,
  metadata: packMemberMetadata(one),
});
/** Returns the assignment that a leader computes for `members`, after a generation with the instances `before`. */
const leaderAssignment = (
  members: readonly ReturnType<typeof member>[],
  before: readonly string[] = [],
) => {
  const leader = new Leader(new SimTime(0).scheduler);
  leader.generationStarted(
    { number: 1, memberId: 'one', isLeader: true, assignment: Buffer.alloc(0) },
    { members: before.map((instance) => ({ instance, name: instance })), accounts: new Map() },
  );
  return leader.assign(members);
};

describe('what a member tells', () => {
  it('survives the way', () => {
    const one = told('a', {
      owned: new Map([['winery-2', { generation: 7, weight: 1.5 }]]),
      warm: ['winery-0', 'winery-5'],
    });
    expect(unpackMemberMetadata(packMemberMetadata(one))).toEqual(one);
  });

  it('leaves out what it has no file of', () => {
    const one = told('a', {
      configured: ['winery-1'],
      owned: new Map([['gone', { generation: 7, weight: 1 }]]),
      warm: ['gone', 'winery-1'],
    });
    expect(unpackMemberMetadata(packMemberMetadata(one))).toMatchObject({
      owned: new Map(),
      warm: ['winery-1'],
    });
  });

  it('tells the keys of its accounts', () => {
    const keys = new Map([
      ['winery-0', '0123456789ab'],
      ['winery-5', 'ffffffffffff'],
    ]);
    const one = told('a', { apiKeyDigests: keys });
    expect(unpackMemberMetadata(packMemberMetadata(one))).toEqual(one);
    const leaving = told('a', {
      configured: [],
      apiKeyDigests: new Map([['winery-3', '0123456789ab']]),
    });
    expect(unpackMemberMetadata(packMemberMetadata(leaving))).toEqual(leaving);
  });

  it('takes few bytes: ten members with a thousand accounts are far from a megabyte', () => {
    const known = accounts(1_000);
    const held = new Map(known.slice(0, 100).map((each) => [each, { generation: 9, weight: 1 }]));
    const keys = new Map(known.map((each) => [each, randomBytes(6).toString('hex')]));
    const warm = known.slice(0, 200);
    const bytes = packMemberMetadata(
      told(randomUUID(), { configured: known, owned: held, warm, apiKeyDigests: keys }),
    ).length;
    expect(10 * bytes).toBeLessThan(120_000);
  });
});

describe('sharing out', () => {
  it('tells every member of all accounts', () => {
    const members = ['a', 'b'].map((instance) => member(told(instance)));
    const given = leaderAssignment(members);
    expect([...given.keys()]).toEqual(members.map(({ id }) => id));
    const [one, two] = [...given.values()].map(unpackFleetAssignment);
    expect(one).toEqual(two);
    expect(one!.members).toEqual([
      { instance: 'a', name: 'a-host' },
      { instance: 'b', name: 'b-host' },
    ]);
    const counts = ['a', 'b'].map(
      (each) => [...one!.accounts.values()].filter((instance) => instance === each).length,
    );
    expect(counts).toEqual([3, 3]);
  });

  it('moves nothing to make it even while the instances are the same', () => {
    const held = new Map(accounts(6).map((each) => [each, { generation: 1, weight: 1 }]));
    const members = [member(told('a', { owned: held })), member(told('b'))];
    const owners = (before: readonly string[]) => {
      const given = leaderAssignment(members, before);
      return new Set(unpackFleetAssignment([...given.values()][0]!).accounts.values());
    };
    expect(owners(['a', 'b'])).toEqual(new Set(['a']));
    expect(owners(['a'])).toEqual(new Set(['a', 'b']));
  });

  it('goes by the weight that the newest owner tells', () => {
    const heavy = new Map([
      ['winery-0', { generation: 3, weight: 4 }],
      ...accounts(4)
        .slice(1)
        .map((each) => [each, { generation: 3, weight: 1 }] as const),
    ]);
    const stale = new Map([['winery-0', { generation: 2, weight: 1 }]]);
    const known = accounts(4);
    const members = [
      member(told('a', { configured: known, owned: heavy })),
      member(told('b', { configured: known, owned: stale })),
    ];
    const { accounts: by } = unpackFleetAssignment([...leaderAssignment(members).values()][0]!);
    expect([...by].filter(([, instance]) => instance === 'b')).toEqual([['winery-0', 'b']]);
  });

  it('gives one account of two with one key: that which is held, else the first by name', () => {
    const [key, other] = ['0123456789ab', 'ba9876543210'];
    const tells = (instance: string, account: string, owned: boolean, its = key) =>
      member(
        told(instance, {
          configured: [account, `of-${instance}`],
          owned: new Map(owned ? [[account, { generation: 1, weight: 1 }]] : []),
          apiKeyDigests: new Map([[account, its]]),
        }),
      );
    const shared = (...members: ReturnType<typeof tells>[]) => {
      const given = unpackFleetAssignment([...leaderAssignment(members).values()][0]!);
      const names = [...given.accounts.keys()].filter((each) => !each.startsWith('of-'));
      return [names, [...(given.apiKeyConflicts ?? [])]];
    };
    const [old, renamed] = ['old', 'new'];
    expect(shared(tells('a', old, true), tells('b', renamed, false))).toEqual([
      [old],
      [[renamed, old]],
    ]);
    expect(shared(tells('a', old, false), tells('b', renamed, false))).toEqual([
      [renamed],
      [[old, renamed]],
    ]);
    expect(shared(tells('a', old, true), tells('b', renamed, true))[0]).toEqual([renamed]);
    const leaving = member(told('a', { configured: [], apiKeyDigests: new Map([[old, key]]) }));
    expect(shared(leaving, tells('b', renamed, false))).toEqual([[], [[renamed, old]]]);
    const two = shared(tells('a', old, true), tells('b', renamed, false, other));
    expect([two[0]!.toSorted(), two[1]]).toEqual([[renamed, old], []]);
  });

  it('gives nothing to a member of another version', () => {
    const members = [
      member(told('a')),
      { id: 'other', metadata: Buffer.from('of another version') },
    ];
    const given = unpackFleetAssignment(leaderAssignment(members).get('other')!);
    expect(new Set(given.accounts.values())).toEqual(new Set(['a']));
  });
});
