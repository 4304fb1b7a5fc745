import { firstValueFrom, NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AccountConfig, AccountFile } from '../../src/config/accounts.ts';
import type { Serving } from '../../src/fleet/account-work.ts';
import { fleetAccounts } from '../../src/fleet/fleet-accounts.ts';
import { heard } from '../../src/fleet/fleet-record.ts';
import type { AccountWord, FleetRecord } from '../../src/fleet/fleet-record.ts';
import { SimTime } from '../sim/sim-time.ts';

const fileOf = (page: number): AccountFile => ({
  config: { account: 'winery', poll: { pageSize: page } } as AccountConfig,
});

const nothing = () => undefined;

/** An instance that has the account, and looks again whenever something has changed. */
function instance() {
  const time = new SimTime(0);
  const serving = new Set<Serving>();
  const words = new Map<string, AccountWord>();
  const sent: FleetRecord[] = [];
  const accounts = fleetAccounts({
    parts: {
      instance: 'me',
      scheduler: time.scheduler,
      work: {
        warm: () => Promise.resolve(),
        serve: async (one) => {
          serving.add(one);
          await firstValueFrom(one.stop$);
          await time.sleep(10); // the ledger is settled
          serving.delete(one);
        },
      },
    },
    name: 'me',
    folders: { use: nothing, leave: nothing, warm: () => [], clear: nothing },
    topic: 'fleet',
    log: {
      words,
      following$: NEVER,
      caughtUp: () => Promise.resolve(),
      send: (record) => {
        sent.push(record);
        words.set(record.account, heard(words.get(record.account), record));
        return Promise.resolve();
      },
      close: nothing,
    },
    watch: () => ({ hooks: {}, end: () => undefined }),
    fleetHooks: {},
    onChange: () => void accounts.step(),
  });
  const setFile = async (file: AccountFile | undefined, waitMs: number) => {
    accounts.setFiles(new Map(file ? [['winery', file]] : []));
    await time.pass(waitMs);
    await accounts.step();
    await time.pass(100);
  };
  const begun = async () => {
    accounts.setFiles(new Map([['winery', fileOf(1)]]));
    accounts.give(1, {
      members: [{ instance: 'me', name: 'me' }],
      accounts: new Map([['winery', 'me']]),
    });
    await accounts.step();
    await time.pass(100);
  };
  /** The account is given to another instance, in the next generation. */
  const givenAway = async () => {
    const members = ['me', 'other'].map((name) => ({ instance: name, name }));
    accounts.give(2, { members, accounts: new Map([['winery', 'other']]) });
    await accounts.step();
    await time.pass(100);
  };
  const pages = () => [...serving].map(({ config }) => config.poll.pageSize);
  return { accounts, begun, setFile, givenAway, pages, words, sent };
}

describe('an account whose file changes', () => {
  it('is served once, by what the file says now', async () => {
    const { begun, setFile, pages } = instance();
    await begun();
    expect(pages()).toEqual([1]);
    await setFile(fileOf(2), 100);
    expect(pages()).toEqual([2]);
  });

  it('is served once when the file changes again while it is being stopped', async () => {
    const { begun, setFile, pages } = instance();
    await begun();
    await setFile(fileOf(2), 5);
    await setFile(fileOf(3), 0);
    expect(pages()).toEqual([3]);
  });

  it('is not served any more when the file is gone', async () => {
    const { accounts, begun, setFile, pages } = instance();
    await begun();
    await setFile(undefined, 100);
    expect(pages()).toEqual([]);
    expect([...accounts.here().values()].filter(({ doing }) => doing === 'running').length).toBe(0);
  });

  it('is not told of as held when it was given to another instance meanwhile', async () => {
    const { accounts, begun, setFile } = instance();
    await begun();
    const heldHere = () => [...accounts.told(['winery']).held.keys()];
    expect(heldHere()).toEqual(['winery']);
    await setFile(undefined, 100);
    const other = { instance: 'other', name: 'other' };
    accounts.give(2, { members: [other], accounts: new Map([['winery', 'other']]) });
    await setFile(fileOf(2), 100);
    expect(heldHere()).toEqual([]);
  });
});

describe('an account that is given to another instance', () => {
  const types = (sent: readonly FleetRecord[]) => sent.map(({ type }) => type);

  it('is said to be free when its claim, which had not come through, is given up', async () => {
    const { begun, givenAway, pages, sent } = instance();
    await begun();
    expect(types(sent)).toEqual(['takes']);
    await givenAway();
    expect(pages()).toEqual([]);
    expect(types(sent)).toEqual(['takes', 'released']);
  });

  it('is no concern of this one where another one has it by then', async () => {
    const { begun, givenAway, pages, sent, words } = instance();
    await begun();
    const owner = { instance: 'other', name: 'other', generation: 2 };
    words.set('winery', { ...words.get('winery')!, owner });
    await givenAway();
    expect(pages()).toEqual([]);
    expect(types(sent)).toEqual(['takes']);
  });
});
