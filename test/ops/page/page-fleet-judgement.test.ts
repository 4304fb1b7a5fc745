import { describe, expect, it } from 'vitest';
import type { AccountFigures } from '../../../src/observe/fleet-view.ts';
import type { FleetAccountStatus, FleetStatus } from '../../../src/ops/status/status-json.ts';

/** As in src/ops/page/fleet-verdict.ts, which is type-checked with the types of a browser. */
interface Verdict {
  readonly tone: string;
  readonly headline: string;
  readonly subline: string;
  readonly problems: readonly { level: string; where: string; text: string; when: string }[];
}
interface Judging {
  readonly fleetVerdictOf: (status: FleetStatus | undefined, connection: object) => Verdict;
}
const MODULE = new URL('../../../src/ops/page/fleet-verdict.ts', import.meta.url).pathname;
const { fleetVerdictOf } = (await import(MODULE)) as Judging;

const AT = 1_700_000_000_000;
const LIVE = { isLive: true };
const FIGURES: AccountFigures = {
  ...{ at: AT, ready: true, reasons: [], causes: [], lagMs: null, lookedAt: AT },
  ...{ quota: null, eventsPerSecond: 0, firstRead: null },
};
const notReady = (cause: string, reason: string): AccountFigures => ({
  ...FIGURES,
  ready: false,
  reasons: [reason],
  causes: [cause],
});

/** A fleet with accounts `a0`, `a1`, ... */
function fleet(
  accounts: readonly Partial<FleetAccountStatus>[],
  change: Partial<FleetStatus> = {},
): FleetStatus {
  return {
    ...{ version: '1.0.0', prefix: 'wine', at: AT, since: AT, instance: 'cellar-0' },
    ...{ generation: 4, instances: ['cellar-0'], ready: true, reasons: [], causes: [] },
    accounts: accounts.map((each, nth) => ({
      ...{ account: `a${nth}`, state: 'running', owner: 'cellar-0', since: AT - 3_600_000 },
      ...{ problem: null, isHere: true, figures: FIGURES },
      ...each,
    })),
    ...change,
  };
}
const judge = (...args: Parameters<typeof fleet>) => fleetVerdictOf(fleet(...args), LIVE);

describe('the verdict on a fleet', () => {
  it('is that all run, and how fresh the slowest is', () => {
    const accounts = [{ figures: { ...FIGURES, lagMs: 900 } }, { figures: null }, {}];
    expect(judge(accounts)).toMatchObject({
      tone: 'good',
      headline: 'All 3 accounts run',
      subline:
        '1 instance in the group. Half of all changes are published within 0.9 s in the slowest of 1 account.',
      problems: [],
    });
    expect(judge([{}]).headline).toBe('The only account runs');
  });

  it('waits for nothing in particular before anything was told', () => {
    expect(fleetVerdictOf(undefined, LIVE)).toMatchObject({ tone: 'busy', headline: 'Listening' });
    expect(judge([], { generation: null })).toMatchObject({
      tone: 'busy',
      headline: 'Starting: not in the group yet',
    });
    expect(judge([]).headline).toBe('No account: ACCOUNTS_DIR has no files');
  });

  it('counts those that do not run, and those that run and are not ready', () => {
    const kafka = notReady('kafka', 'orders: waiting for Kafka');
    const down = { state: 'quarantined', owner: null, figures: null } as const;
    const tests: [Partial<FleetAccountStatus>[], string][] = [
      [[down, {}], '1 of 2 accounts does not run'],
      [[down, down, { figures: kafka }], '2 of 3 accounts do not run, 1 is not ready'],
      [[{ figures: kafka }, { figures: kafka }, {}], '2 of 3 accounts are not ready'],
      [[{ state: 'wrong-file' }, {}], '1 of 2 accounts has a wrong file here'],
      [[{ state: 'wrong-file', owner: null }, {}], '1 of 2 accounts does not run'],
    ];
    for (const [accounts, headline] of tests) {
      expect(judge(accounts)).toMatchObject({ tone: 'bad', headline });
    }
  });

  it('is no alarm while accounts start or move, unless they take long', () => {
    const starting = { figures: notReady('starting', 'orders: not caught up yet') };
    const moving = { state: 'moving', owner: null, since: AT - 5_000 } as const;
    expect(judge([starting, moving, {}])).toMatchObject({
      tone: 'busy',
      headline: '2 of 3 accounts: starting or being handed over',
    });
    const slow = judge([{ ...moving, since: AT - 25_000 }, {}]);
    expect(slow).toMatchObject({
      tone: 'warn',
      headline: '1 of 2 accounts: starting or being handed over',
    });
    expect(slow.problems[0]).toMatchObject({ level: 'warning', where: 'a0:' });
  });

  it('names what is wrong in the same way in one line, the severest first', () => {
    const kafka = (nth: number) => notReady('kafka', `orders: waiting for Kafka since ${nth}`);
    const accounts = [
      { state: 'moving', owner: null } as const,
      ...Array.from({ length: 8 }, (_, nth) => ({ figures: kafka(nth) })),
      { state: 'wrong-file', owner: null, problem: 'API_KEY is missing' } as const,
      {},
    ];
    expect(judge(accounts).problems.map(({ where, text }) => `${where} ${text}`)).toEqual([
      'a1, a2, a3, a4, a5 and 3 more: waiting for Kafka',
      'a9: its file is wrong: API_KEY is missing',
      'a0: it is moving to another instance',
    ]);
    expect(judge([{ figures: kafka(7) }]).problems[0]!.text).toBe(
      'orders: waiting for Kafka since 7',
    );
  });

  it('says that the instance is in no group, before all else', () => {
    const verdict = judge([{}], { generation: null });
    expect(verdict).toMatchObject({ tone: 'bad', headline: 'cellar-0 is not in the group' });
    expect(verdict.problems[0]).toMatchObject({ level: 'bad', where: 'cellar-0' });
  });

  it('is of what was known last when nothing is heard', () => {
    const lost = { isLive: false, since: AT, isReachable: false };
    const verdict = fleetVerdictOf(fleet([{ state: 'failed', problem: 'no key' }]), lost);
    expect(verdict.headline).toMatch(/^No word from the service since /);
    expect(verdict.problems).toHaveLength(1);
  });
});
