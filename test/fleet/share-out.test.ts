import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { packTold, unpackSharedOut, unpackTold } from '../../src/fleet/member-data.ts';
import type { Told } from '../../src/fleet/member-data.ts';
import { shareOut } from '../../src/fleet/share-out.ts';

const NONE = { held: new Map(), warm: [], keys: new Map() } as const;
const accounts = (count: number) => Array.from({ length: count }, (_, n) => `winery-${n}`);
const told = (instance: string, some: Partial<Told> = {}): Told => ({
  ...NONE,
  ...{ instance, name: `${instance}-host`, known: accounts(6) },
  ...some,
});
const NEW = { instances: new Set<string>(), isUneven: false };
const member = (one: Told) => ({ id: `member of ${one.instance}`, told: packTold(one) });

describe('what a member tells', () => {
  it('survives the way', () => {
    const one = told('a', {
      held: new Map([['winery-2', { generation: 7, weight: 1.5 }]]),
      warm: ['winery-0', 'winery-5'],
    });
    expect(unpackTold(packTold(one))).toEqual(one);
  });

  it('leaves out what it has no file of', () => {
    const one = told('a', {
      known: ['winery-1'],
      held: new Map([['gone', { generation: 7, weight: 1 }]]),
      warm: ['gone', 'winery-1'],
    });
    expect(unpackTold(packTold(one))).toMatchObject({ held: new Map(), warm: ['winery-1'] });
  });

  it('tells the keys of its accounts', () => {
    const keys = new Map([
      ['winery-0', '0123456789ab'],
      ['winery-5', 'ffffffffffff'],
    ]);
    const one = told('a', { keys });
    expect(unpackTold(packTold(one))).toEqual(one);
    const leaving = told('a', { known: [], keys: new Map([['winery-3', '0123456789ab']]) });
    expect(unpackTold(packTold(leaving))).toEqual(leaving);
  });

  it('takes few bytes: ten members with a thousand accounts are far from a megabyte', () => {
    const known = accounts(1_000);
    const held = new Map(known.slice(0, 100).map((each) => [each, { generation: 9, weight: 1 }]));
    const keys = new Map(known.map((each) => [each, randomBytes(6).toString('hex')]));
    const warm = known.slice(0, 200);
    const bytes = packTold(told(randomUUID(), { known, held, warm, keys })).length;
    expect(10 * bytes).toBeLessThan(120_000);
  });
});

describe('sharing out', () => {
  it('tells every member of all accounts', () => {
    const members = ['a', 'b'].map((instance) => member(told(instance)));
    const given = shareOut(members, NEW);
    expect([...given.keys()]).toEqual(members.map(({ id }) => id));
    const [one, two] = [...given.values()].map(unpackSharedOut);
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
    const members = [member(told('a', { held })), member(told('b'))];
    const owners = (before: readonly string[], isUneven: boolean) => {
      const given = shareOut(members, { instances: new Set(before), isUneven });
      return new Set(unpackSharedOut([...given.values()][0]!).accounts.values());
    };
    expect(owners(['a', 'b'], false)).toEqual(new Set(['a']));
    expect(owners(['a'], false)).toEqual(new Set(['a', 'b']));
    expect(owners(['a', 'b'], true)).toEqual(new Set(['a', 'b']));
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
      member(told('a', { known, held: heavy })),
      member(told('b', { known, held: stale })),
    ];
    const { accounts: by } = unpackSharedOut([...shareOut(members, NEW).values()][0]!);
    expect([...by].filter(([, instance]) => instance === 'b')).toEqual([['winery-0', 'b']]);
  });

  it('gives one account of two with one key: that which is held, else the first by name', () => {
    const [key, other] = ['0123456789ab', 'ba9876543210'];
    const tells = (instance: string, account: string, held: boolean, its = key) =>
      member(
        told(instance, {
          known: [account, `of-${instance}`],
          held: new Map(held ? [[account, { generation: 1, weight: 1 }]] : []),
          keys: new Map([[account, its]]),
        }),
      );
    const shared = (...members: ReturnType<typeof tells>[]) => {
      const given = unpackSharedOut([...shareOut(members, NEW).values()][0]!);
      const names = [...given.accounts.keys()].filter((each) => !each.startsWith('of-'));
      return [names, [...(given.twins ?? [])]];
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
    const leaving = member(told('a', { known: [], keys: new Map([[old, key]]) }));
    expect(shared(leaving, tells('b', renamed, false))).toEqual([[], [[renamed, old]]]);
    const two = shared(tells('a', old, true), tells('b', renamed, false, other));
    expect([two[0]!.toSorted(), two[1]]).toEqual([[renamed, old], []]);
  });

  it('gives nothing to a member of another version', () => {
    const members = [member(told('a')), { id: 'other', told: Buffer.from('of another version') }];
    const given = unpackSharedOut(shareOut(members, NEW).get('other')!);
    expect(new Set(given.accounts.values())).toEqual(new Set(['a']));
  });
});
