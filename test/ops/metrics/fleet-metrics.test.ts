import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { FleetAccount, FleetView } from '../../../src/observe/fleet-view.ts';
import { fleetMetrics, FLEET_METRICS } from '../../../src/ops/metrics/fleet-metrics.ts';
import { METRICS } from '../../../src/ops/metrics/metric-table.ts';
import { metrics } from '../../../src/ops/metrics/metrics.ts';
import { parseMetrics } from './parse-metrics.ts';
import { PROCESS_METRICS } from './process-metrics.ts';

const READY = { ready: true, reasons: [], causes: [] };

/** An instance whose accounts come and go by hand. */
function instance() {
  const running = new Map<string, ReturnType<typeof metrics>>();
  let isReady = false;
  const { text, ...rest } = fleetMetrics({
    instance: 'cellar-0',
    isReady: () => isReady,
    accounts: () => new Map([...running].map(([name, { registry }]) => [name, registry])),
  });
  return {
    ...rest,
    text,
    read: async () => parseMetrics(await text()),
    value: async (name: string, labels: Record<string, string> = {}) =>
      parseMetrics(await text()).value(name, labels),
    run: (account: string) => {
      const own = metrics({
        description: WINE,
        account,
        resources: ['orders', 'inventory'],
        pollIntervalMs: 0,
        readiness: () => READY,
        ofProcess: false,
      });
      running.set(account, own);
      return own;
    },
    end: (account: string) => void running.delete(account),
    becomeReady: () => (isReady = true),
  };
}

function view(
  accounts: readonly Partial<FleetAccount>[],
  rest: Partial<FleetView> = {},
): FleetView {
  const whole = accounts.map((each): FleetAccount => ({
    account: 'east',
    state: 'running',
    owner: 'cellar-0',
    since: 0,
    problem: undefined,
    ...each,
  }));
  return {
    instance: 'cellar-0',
    generation: 7,
    instances: ['cellar-0', 'cellar-1'],
    accounts: whole,
    ...rest,
  };
}

const IMAGES = 'cellarstream_images_stored';
const RUNNING = 'cellarstream_fleet_account_running';
const MOVES = 'cellarstream_fleet_account_moves_total';

describe('metrics of an instance', () => {
  it('are those of each account that runs here, in one answer that says each metric once', async () => {
    const { run, text } = instance();
    for (const account of ['east', 'west']) {
      run(account).hooks.onEmpty!({ resource: 'orders' });
    }
    const told = await text();
    const heads = told.split('\n').filter((line) => line.startsWith('# TYPE '));
    expect(new Set(heads).size).toBe(heads.length);
    const { samples, value } = parseMetrics(told);
    for (const { name } of Object.values(METRICS)) expect(told).toContain(`# HELP ${name} `);
    for (const account of ['east', 'west']) {
      expect(value(IMAGES, { account, resource: 'orders' })).toBe(0);
    }
    // The text format wants the series of a metric together.
    const blocks = samples
      .map(({ name }) => name)
      .filter((name, nth, all) => all[nth - 1] !== name);
    const plain = blocks.filter((name) => !/_(bucket|sum|count)$/.test(name));
    expect(new Set(plain).size).toBe(plain.length);
  });

  it('say of one account what they say of it where there is no fleet', async () => {
    const wallClock = () => 1_700_000_000_000;
    const options = {
      ...{ description: WINE, account: 'east', resources: ['orders'] as const, pollIntervalMs: 0 },
      ...{ readiness: () => READY, wallClock },
    };
    const alone = metrics({ ...options, ofProcess: false });
    alone.hooks.onLogin!({ lifeMs: 1_000, aheadMs: 0 });
    const { text } = fleetMetrics({
      instance: 'cellar-0',
      isReady: () => true,
      accounts: () => new Map([['east', alone.registry]]),
    });
    expect((await text()).endsWith(`\n\n${await alone.text()}`)).toBe(true);
    const withProcess = await metrics({ ...options, ofProcess: true }).text();
    const own = withProcess.slice(0, withProcess.indexOf('# HELP process_'));
    const withoutLogin = await metrics({ ...options, ofProcess: false }).text();
    expect(own).toBe(`${withoutLogin}\n`);
  });

  it('tell of the process once, and of no account', async () => {
    const { run, read } = instance();
    for (const account of ['east', 'west']) run(account);
    const { samples, types } = await read();
    for (const [name, type] of PROCESS_METRICS) {
      expect([name, types.get(name)]).toEqual([name, type]);
      const series = samples.filter((each) => each.name === name);
      expect(series.filter(({ labels }) => 'account' in labels)).toEqual([]);
    }
    expect(samples.filter(({ name }) => name === 'process_start_time_seconds')).toHaveLength(1);
  });

  it('say nothing any more of an account that was given away', async () => {
    const { run, end, read, onFleet } = instance();
    run('east');
    run('west');
    onFleet(view([{ account: 'east' }, { account: 'west' }]));
    end('east');
    onFleet(view([{ account: 'east', owner: 'cellar-1' }, { account: 'west' }]));
    const of = async (account: string) =>
      (await read()).samples.filter(({ labels }) => labels.account === account);
    // That it has moved is said of it by all instances.
    expect((await of('east')).map(({ name, value }) => [name, value])).toEqual([[MOVES, 1]]);
    expect((await of('west')).length).toBeGreaterThan(300);
    end('west');
    onFleet(view([]));
    expect((await read()).samples.filter(({ labels }) => 'account' in labels)).toEqual([]);
  });

  it('give way to the pipeline while they are told of many accounts', async () => {
    const { run, text } = instance();
    for (let nth = 0; nth < 60; nth += 1) run(`estate-${nth}`);
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await text();
    isOver = true;
    expect(turns).toBeGreaterThan(2);
  });

  it('have no more series for accounts that come and go a hundred times', async () => {
    const { run, end, read, onFleet } = instance();
    run('east');
    onFleet(view([{}]));
    // Node has a series more when it collects garbage in another way.
    const series = async () =>
      (await read()).samples.filter(({ name }) => name.startsWith('cellarstream_')).length;
    const before = await series();
    for (let nth = 0; nth < 100; nth += 1) {
      end('east');
      run(`guest${nth}`);
      onFleet(view([{ account: `guest${nth}`, state: 'failed', owner: `random-${nth}` }]));
      end(`guest${nth}`);
      run('east');
    }
    onFleet(view([{}]));
    expect(await series()).toBe(before);
  });
});

describe('metrics of a fleet', () => {
  it('say nothing of the fleet before anybody has told, and that this instance is in no group', async () => {
    const { value } = instance();
    expect(await value('cellarstream_fleet_in_group')).toBe(0);
    expect(await value('cellarstream_fleet_instance_ready')).toBe(0);
    expect(await value('cellarstream_fleet_fenced_total')).toBe(0);
    expect(await value('cellarstream_fleet_handover_duration_seconds_count')).toBe(0);
    expect(await value('cellarstream_fleet_members')).toBeUndefined();
    expect(await value('cellarstream_fleet_generation')).toBeUndefined();
    expect(await value('cellarstream_fleet_accounts', { state: 'running' })).toBeUndefined();
  });

  it('count members and accounts by their state, and name those that do not run', async () => {
    const { value, onFleet, becomeReady } = instance();
    becomeReady();
    onFleet(
      view([
        { account: 'east' },
        { account: 'north', state: 'quarantined', owner: undefined },
        { account: 'west', state: 'without-owner', owner: undefined },
      ]),
    );
    expect(await value('cellarstream_fleet_instance_ready')).toBe(1);
    expect(await value('cellarstream_fleet_in_group')).toBe(1);
    expect(await value('cellarstream_fleet_generation')).toBe(7);
    expect(await value('cellarstream_fleet_members')).toBe(2);
    const states = ['running', 'quarantined', 'without-owner', 'failed'];
    const counts = states.map((state) => value('cellarstream_fleet_accounts', { state }));
    expect(await Promise.all(counts)).toEqual([1, 1, 1, 0]);
    const notRunning = 'cellarstream_fleet_account_not_running';
    expect(await value(notRunning, { account: 'north', state: 'quarantined' })).toBe(1);
    // Its file is wrong here, and right at the instance that runs it.
    onFleet(view([{ account: 'north', state: 'wrong-file', owner: 'cellar-1' }]));
    expect(await value(notRunning, { account: 'north', state: 'wrong-file' })).toBeUndefined();
    onFleet(view([{ account: 'north' }], { generation: undefined }));
    expect(await value(notRunning, { account: 'north', state: 'quarantined' })).toBeUndefined();
    expect(await value('cellarstream_fleet_in_group')).toBe(0);
    expect(await value('cellarstream_fleet_generation')).toBeUndefined();
  });

  it('say which accounts this instance runs, by its name', async () => {
    const { run, end, value } = instance();
    run('east');
    expect(await value(RUNNING, { account: 'east', owner: 'cellar-0' })).toBe(1);
    end('east');
    expect(await value(RUNNING, { account: 'east', owner: 'cellar-0' })).toBeUndefined();
  });

  it('count an account as moved when it has another owner, however long it had none', async () => {
    const { value, onFleet } = instance();
    const moves = () => value(MOVES, { account: 'east' });
    onFleet(view([{ owner: undefined, state: 'without-owner' }]));
    onFleet(view([{ owner: 'cellar-0' }]));
    expect(await moves()).toBe(0); // it came from nowhere
    onFleet(view([{ owner: undefined, state: 'moving' }]));
    onFleet(view([{ owner: 'cellar-0' }]));
    expect(await moves()).toBe(0); // and is back where it was
    onFleet(view([{ owner: undefined, state: 'moving' }]));
    onFleet(view([{ owner: 'cellar-1' }]));
    onFleet(view([{ owner: 'cellar-1' }]));
    expect(await moves()).toBe(1);
    onFleet(view([{ owner: 'cellar-2' }]));
    expect(await moves()).toBe(2);
  });

  it('measure handovers, and count what was lost to another', async () => {
    const { value, onHandover, onFenced } = instance();
    onHandover({ elapsedMs: 1_500 });
    onHandover({ elapsedMs: 25_000 });
    onFenced();
    const name = FLEET_METRICS.handoverSeconds.name;
    expect(await value(`${name}_bucket`, { le: '20' })).toBe(1);
    expect(await value(`${name}_sum`)).toBe(26.5);
    expect(await value('cellarstream_fleet_fenced_total')).toBe(1);
  });

  it('name the instance and its version', async () => {
    const { read } = instance();
    const { samples } = await read();
    const info = samples.find(({ name }) => name === 'cellarstream_fleet_instance_info');
    expect(info?.labels).toMatchObject({ owner: 'cellar-0', node: process.version });
  });
});
