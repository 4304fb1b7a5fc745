import { firstValueFrom, NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AccountConfig, AccountFile } from '../../src/config/accounts.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Published } from '../../src/observe/hooks.ts';
import type { ServeOptions } from '../../src/fleet/account-work.ts';
import { applyRecord, parseFleetRecord } from '../../src/fleet/fleet-record.ts';
import type { AccountTopicState, FleetRecord } from '../../src/fleet/fleet-record.ts';
import { FleetAccounts } from '../../src/fleet/fleet-accounts.ts';
import { SimTime } from '../sim/sim-time.ts';

const fileOf = (page: number): AccountFile => ({
  config: {
    ...{ account: 'winery', poll: { pageSize: page } },
    api: { baseUrl: 'https://api.example', credentials: { api_key: new Secret('key of winery') } },
  } as AccountConfig,
});

const nothing = () => undefined;

const pollPage = (resource: string): Published => ({
  ...{ resource, lane: 'poll', changes: [], statusChanges: [], unchanged: 0, known: 0, at: 0 },
  completes: true,
});

/** An instance that has the account, and looks again whenever something has changed. */
function instance({ imagesMs = 0, hears = false } = {}) {
  const time = new SimTime(0);
  const serving = new Set<ServeOptions>();
  const words = new Map<string, AccountTopicState>();
  const said: FleetRecord['type'][] = [];
  const quarantined: string[] = [];
  const handovers: number[] = [];
  const asked: string[] = [];
  const failures: [error: unknown, delayMs: number][] = [];
  let failure: Error | undefined;
  let isCutOff = false;
  const accounts = new FleetAccounts({
    context: {
      instance: 'me',
      scheduler: time.scheduler,
      work: {
        warm: () => time.sleep(imagesMs),
        serve: async (one) => {
          if (failure) throw failure;
          serving.add(one);
          one.pollNow$.subscribe(() => asked.push(one.config.account));
          await firstValueFrom(one.stop$);
          await time.sleep(10); // the ledger is settled
          serving.delete(one);
        },
      },
    },
    name: 'me',
    folders: { use: nothing, release: nothing, warm: () => [], clear: nothing },
    topic: 'fleet',
    log: {
      accounts: words,
      reports: new Map(),
      following$: NEVER,
      catchUp: () => Promise.resolve(),
      send: ({ value }) => {
        if (isCutOff) return Promise.reject(new Error('cut off'));
        const record = parseFleetRecord(value)!;
        said.push(record.type);
        if (hears) words.set(record.account, applyRecord(words.get(record.account), record));
        return Promise.resolve();
      },
      close: nothing,
    },
    watch: () => ({
      hooks: {},
      onFailed: (error, delayMs) => failures.push([error, delayMs]),
      end: () => undefined,
    }),
    fleetHooks: {
      onQuarantined: ({ account }) => quarantined.push(account),
      onHandover: ({ elapsedMs }) => handovers.push(elapsedMs),
    },
    onChange: () => void accounts.step(),
  });
  const setFile = async (file: AccountFile | undefined, waitMs: number) => {
    accounts.setFiles(new Map(file ? [['winery', file]] : []));
    await time.pass(waitMs);
    await accounts.step();
    await time.pass(100);
  };
  const begun = async (others: readonly string[] = []) => {
    accounts.setFiles(new Map([['winery', fileOf(1)]]));
    accounts.generationStarted(1, {
      members: ['me', ...others].map((each) => ({ instance: each, name: each })),
      accounts: new Map([['winery', 'me']]),
    });
    await accounts.step();
    await time.pass(100);
  };
  /** The account is given to another instance, in the next generation. */
  const givenAway = async () => {
    const members = ['me', 'other'].map((name) => ({ instance: name, name }));
    accounts.generationStarted(2, { members, accounts: new Map([['winery', 'other']]) });
    await accounts.step();
    await time.pass(100);
  };
  const pages = () => [...serving].map(({ config }) => config.poll.pageSize);
  const cutOff = (isSo: boolean) => (isCutOff = isSo);
  /** The API answers a request of whoever is served. */
  const answer = (what: string, status: number) =>
    serving.forEach(({ hooks }) => hooks.onRequest?.({ what, status, elapsedMs: 5, waitedMs: 0 }));
  /** The last page of a poll is published. */
  const polled = (resource: string) =>
    serving.forEach(({ hooks }) => hooks.onPublished?.(pollPage(resource)));
  const fail = (error: Error) => (failure = error);
  const told = { said, quarantined, handovers, asked, polled, failures, fail };
  return { accounts, time, words, ...told, begun, setFile, givenAway, pages, cutOff, answer };
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
    expect(
      [...accounts.localAccounts.values()].filter(({ run }) => run.phase === 'running').length,
    ).toBe(0);
  });

  it('is not told of as held when it was given to another instance meanwhile', async () => {
    const { accounts, begun, setFile } = instance();
    await begun();
    const heldHere = () => [...accounts.memberMetadata(false).owned.keys()];
    expect(heldHere()).toEqual(['winery']);
    await setFile(undefined, 100);
    const other = { instance: 'other', name: 'other' };
    accounts.generationStarted(2, { members: [other], accounts: new Map([['winery', 'other']]) });
    await setFile(fileOf(2), 100);
    expect(heldHere()).toEqual([]);
  });
});

describe('an account that fails', () => {
  it('is reported to its observers, with the pause before it is served again', async () => {
    const { begun, fail, failures, pages } = instance();
    const error = new Error('wrong key');
    fail(error);
    await begun();
    expect(pages()).toEqual([]);
    expect(failures).toEqual([[error, 60_000]]);
  });
});

describe('an account that is given to another instance', () => {
  it('is said to be free when its claim, which had not come through, is given up', async () => {
    const { begun, givenAway, pages, said } = instance({ hears: true });
    await begun();
    expect(said).toEqual(['takes']);
    await givenAway();
    expect(pages()).toEqual([]);
    expect(said).toEqual(['takes', 'released']);
  });

  it('is no concern of this one where another one has it by then', async () => {
    const { begun, givenAway, pages, said, words } = instance({ hears: true });
    await begun();
    const owner = { instance: 'other', name: 'other', generation: 2 };
    words.set('winery', { ...words.get('winery')!, owner });
    await givenAway();
    expect(pages()).toEqual([]);
    expect(said).toEqual(['takes']);
  });
});

describe('an account that another instance asks for', () => {
  /** It runs here, its orders are polled, and the other instance has restored it. */
  const askedFor = async () => {
    const here = instance();
    await here.begun();
    here.polled('orders');
    const me = { instance: 'me', name: 'me', generation: 1 };
    const ask = { instance: 'other', name: 'other', generation: 2 };
    here.words.set('winery', {
      ...{
        owner: me,
        releaseRequest: ask,
        updatedAt: 0,
        claimedAt: 0,
        crashTimes: [],
        quarantinedAt: undefined,
      },
      isClaimPending: false,
    });
    await here.givenAway();
    return here;
  };

  it('is polled once more before it is let go', async () => {
    const { asked, pages, polled, time } = await askedFor();
    expect([asked, pages()]).toEqual([['winery'], [1]]);
    polled('orders');
    await time.pass(20);
    expect(pages()).toEqual([]);
  });

  it('is let go after a second where its API does not answer', async () => {
    const { pages, time } = await askedFor();
    await time.pass(800);
    expect(pages()).toEqual([1]);
    await time.pass(120);
    expect(pages()).toEqual([]);
  });
});

describe('an account that has taken three instances down', () => {
  const lost: AccountTopicState = {
    owner: { instance: 'gone', name: 'gone', generation: 0 },
    ...{ releaseRequest: undefined, updatedAt: -1_000, claimedAt: -1_000 },
    ...{ crashTimes: [-60_000, -30_000], quarantinedAt: undefined },
  };

  it('is said to be quarantined once, though that is heard later', async () => {
    const { accounts, words, said, quarantined, begun, pages } = instance();
    words.set('winery', lost);
    await begun();
    for (let k = 0; k < 5; k++) await accounts.step();
    expect([said, quarantined, pages()]).toEqual([['quarantined'], ['winery'], []]);
  });

  it('is said to be so again where that did not come through', async () => {
    const { accounts, words, said, quarantined, begun, cutOff, time } = instance();
    words.set('winery', lost);
    cutOff(true);
    await begun();
    expect([said, quarantined]).toEqual([[], []]);
    cutOff(false);
    for (let k = 0; k < 3; k++) {
      await accounts.step();
      await time.pass(10);
    }
    expect([said, quarantined]).toEqual([['quarantined'], ['winery']]);
  });

  it('is let go of by the instance that was taken for lost, and runs it still', async () => {
    const { accounts, words, begun, pages, time } = instance();
    await begun();
    words.set('winery', { ...lost, owner: undefined, quarantinedAt: time.now() });
    await accounts.step();
    await time.pass(100);
    expect(pages()).toEqual([]);
  });
});

describe('a handover', () => {
  const ownedBy = (owner: string): AccountTopicState => ({
    owner: { instance: owner, name: owner, generation: 0 },
    ...{
      releaseRequest: undefined,
      updatedAt: -60_000,
      claimedAt: -60_000,
      crashTimes: [],
      quarantinedAt: undefined,
    },
  });
  const released = (by: string): AccountTopicState => ({
    ...ownedBy(by),
    ...{ owner: undefined, claimedAt: undefined, releasedBy: by },
  });

  it('takes from the question to the first answer to a list, however long the images took', async () => {
    const { accounts, time, words, said, handovers, begun, pages, answer } = instance({
      imagesMs: 60_000,
    });
    words.set('winery', ownedBy('other'));
    await begun(['other']);
    await time.pass(59_900);
    expect(said).toEqual(['asks']);
    await time.pass(2_000);
    words.set('winery', released('other'));
    await accounts.step();
    await time.pass(3_000);
    expect(pages()).toEqual([1]);
    answer('login', 200);
    answer('orders', 503);
    expect(handovers).toEqual([]);
    answer('orders', 200);
    answer('orders', 200);
    expect(handovers).toEqual([5_000]);
  });

  it('takes from when its instance is found to be lost, or the account released', async () => {
    for (const word of [ownedBy('gone'), released('gone')]) {
      const { time, words, handovers, begun, answer } = instance();
      words.set('winery', word);
      await begun();
      await time.pass(4_000);
      answer('orders', 200);
      expect(handovers).toEqual([4_100]);
    }
  });

  it('is none where the account is new, or was here before', async () => {
    for (const word of [undefined, released('me'), ownedBy('me')]) {
      const { time, words, handovers, begun, answer } = instance();
      if (word) words.set('winery', word);
      await begun();
      await time.pass(4_000);
      answer('orders', 200);
      expect(handovers).toEqual([]);
    }
  });
});
