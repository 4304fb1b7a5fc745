import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'dotenv';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { describe, expect, it, vi } from 'vitest';
import { fleetMessage } from '../../src/fleet/fleet-record.ts';
import { fleetForTest } from './support/fleet.ts';
import type { Instance, TestAccount, TestFleet } from './support/fleet.ts';
import { scaled } from '../support/scale.ts';
import { fleetStatusOf } from './support/fleet-status.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest } from './support/service.ts';
import type { Env } from './support/service.ts';

const SOON = { timeout: PATIENCE_MS, interval: 200 };
besideEachOther();

interface Ended {
  readonly code: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
}

async function command(args: readonly string[], env: Env): Promise<Ended> {
  const cli = cliForTest(args, env);
  const code = await cli.ended;
  return { code, stdout: cli.stdout(), stderr: cli.stderr() };
}

interface Told {
  readonly account: string;
  readonly state: string;
  readonly instance: string | null;
  readonly since: string;
  readonly problem: string | null;
  readonly ready: boolean | null;
  readonly quota: { readonly limit: number } | null;
}

/** `accounts --json`, as it says it, and its exit code. */
async function accounts(env: Env): Promise<{ code: Ended['code']; told: Told[] }> {
  const { code, stdout } = await command(['accounts', '--json'], env);
  const told = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Told);
  return { code, told };
}

/** Resolves when all accounts of the fleet are run by these. */
async function running(fleet: TestFleet, instances: readonly Instance[]): Promise<void> {
  await vi.waitFor(() => {
    const ready = instances.flatMap(({ cli }) => cli.lines()).filter(isReady);
    expect(ready.length).toBeGreaterThanOrEqual(fleet.accounts.length);
  }, SOON);
}

const isReady = ({ event }: { readonly event?: string }) => event === 'ready';

/** Says in the fleet's topic what an instance would say of an account that has taken three of them down. */
async function sayQuarantined({ brokers, prefix }: TestFleet, { name }: TestAccount) {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const { topic, key, value } = fleetMessage(`${prefix}.fleet`, {
    ...{ type: 'quarantined', account: name, instance: 'gone', name: 'gone' },
    at: new Date().toISOString(),
  });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic, messages: [{ key: key!, value }] });
  await producer.disconnect();
}

const without = (env: Env, name: string): Env =>
  Object.fromEntries(Object.entries(env).filter(([each]) => each !== name));

describe.concurrent('accounts', TIMEOUT, () => {
  it('says where there is no fleet', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-none', accounts: 1 });
    const { code, stderr } = await command(['accounts'], fleet.env);
    expect(code).toBe(1);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain('there is no topic fleet-none.fleet');
    expect(stderr).toContain('TOPIC_PREFIX');
  });

  it('says who runs what, and takes none that is dead for an owner', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-accounts', accounts: 3 });
    const names = fleet.accounts.map(({ name }) => name);
    const one = fleet.start('one');
    await running(fleet, [one]);

    const { code, told } = await accounts(fleet.env);
    expect(told.map(({ account }) => account)).toEqual(names);
    for (const { state, instance, since, problem } of told) {
      expect({ state, instance, problem }).toEqual({
        ...{ state: 'running', instance: 'one', problem: null },
      });
      expect(Math.abs(Date.now() - Date.parse(since))).toBeLessThan(120_000);
    }
    expect(code).toBe(0);

    fleet.setFile('wrong', 'PAGE_SIZE=many\n');
    const wrong = await accounts(fleet.env);
    expect(wrong.code).toBe(1);
    expect(wrong.told[0]).toMatchObject({ account: 'wrong', state: 'wrong-file' });
    expect(wrong.told[0]?.problem).toContain('PAGE_SIZE');
    // Whoever has no files knows nothing of a wrong one.
    expect((await accounts(without(fleet.env, 'ACCOUNTS_DIR'))).code).toBe(0);

    await one.cli.end('SIGKILL');
    await vi.waitFor(async () => {
      const dead = await accounts(without(fleet.env, 'ACCOUNTS_DIR'));
      expect(dead.code).toBe(1);
      expect(dead.told.map(({ account, state, instance }) => [account, state, instance])).toEqual(
        names.map((name) => [name, 'without-owner', null]),
      );
      expect(dead.told[0]?.problem).toBe(
        'no instance runs; one was its last owner and has left the fleet',
      );
    }, SOON);
    const table = await command(['accounts'], fleet.env);
    expect(table.stdout.trim().split('\n')).toHaveLength(4);
    expect(table.stdout).not.toContain('sandbox-key');
  });

  it.runIf(scaled(false, true))(
    'says what the page says, of an account that runs, has a wrong file, or is quarantined',
    async () => {
      const fleet = await fleetForTest({ prefix: 'fleet-same', accounts: 3, changesPerSecond: 0 });
      const [good, wrong, waiting] = fleet.accounts as [TestAccount, TestAccount, TestAccount];
      fleet.setFile(waiting.name, undefined);
      const one = fleet.start('one');
      await running({ ...fleet, accounts: [good, wrong] }, [one]);
      // It has the file of nothing that it could run.
      const ACCOUNTS_DIR = fleet.folderOf([]);
      fleet.setFile(wrong.name, 'PAGE_SIZE=many\n', ACCOUNTS_DIR);
      const two = fleet.start('two', { ACCOUNTS_DIR });
      await sayQuarantined(fleet, waiting);
      fleet.setFile(waiting.name, fleet.fileOf(waiting));

      await vi.waitFor(async () => {
        const page = await fleetStatusOf(two);
        const { told } = await accounts({ ...fleet.env, ACCOUNTS_DIR });
        const byName = told.toSorted((a, b) => (a.account < b.account ? -1 : 1));
        expect(byName.map(({ account, state, instance }) => [account, state, instance])).toEqual([
          [good.name, 'running', 'one'],
          [wrong.name, 'wrong-file', 'one'],
          [waiting.name, 'quarantined', null],
        ]);
        expect(
          byName.map(({ state, instance, since, problem }) => [state, instance, since, problem]),
        ).toEqual(
          page.accounts.map(({ state, owner, since, problem }) => [
            ...[state, owner, new Date(since).toISOString(), problem],
          ]),
        );
      }, SOON);
      expect(await one.cli.end('SIGTERM')).toBe(0);
    },
  );

  it('says what the instance has told: how accounts are that run, and why one failed', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-told', accounts: 2 });
    const [well, refused] = fleet.accounts.map(({ name }) => name);
    fleet.setFile(refused!, fleet.fileOf(fleet.accounts[1]!).replace(/KEY=.*/, 'KEY=wrong-key'));
    fleet.start('one');
    const of = async (name: string | undefined) => {
      const { told } = await accounts(without(fleet.env, 'ACCOUNTS_DIR'));
      return told.find(({ account }) => account === name);
    };
    await vi.waitFor(async () => {
      const one = await of(well);
      expect([one?.state, one?.ready, one?.quota?.limit]).toEqual(['running', true, 100]);
    }, SOON);
    await vi.waitFor(async () => {
      const one = await of(refused);
      expect([one?.state, one?.ready]).toEqual(['failed', null]);
      expect(one?.problem).toContain('API key');
    }, SOON);
    const { code, stdout } = await command(['accounts'], fleet.env);
    expect(code).toBe(1);
    expect(stdout).toMatch(/ lag \d+\.\d s {2}orders \d+ of 100\n/);
    expect(stdout).not.toContain('wrong-key');
  });
});

/** Holds an account's topic, and a copy of it, against its certificates: with its file, and without, as whoever consumes. */
async function certified(account: string, owner: Env, consumer: Env): Promise<void> {
  const verify = (env: Env, ...more: string[]) =>
    command(['verify', 'orders', '--account', account, ...more], env);
  const fresh = await verify(owner, '--fresh', '--timeout', '120');
  expect(fresh.stdout).toMatch(/^orders {2}ok {2}100 of 100 {2}exact /);
  expect(fresh.stderr).toContain('orders: done');
  expect(fresh.code).toBe(0);
  expect((await verify(consumer)).stdout).toBe(fresh.stdout);
  const asJson = await verify(consumer, '--json');
  expect(JSON.parse(asJson.stdout)).toMatchObject({ account, checked: 'agrees', records: 100 });

  const replayed = await command(['replay', 'orders', '--account', account], consumer);
  const newest = new Map<string, number>();
  for (const line of replayed.stdout.trim().split('\n')) {
    const { key, source } = JSON.parse(line) as { key: string; source: { sequence: number } };
    newest.set(key, source.sequence);
  }
  const [left, ...rows] = [...newest].map((row) => row.join(','));
  const file = join(folderForTest(), 'copy.csv');
  writeFileSync(file, ['key,sequence', ...rows].join('\n'));
  const short = await verify(consumer, '--file', file);
  expect([short.code, short.stdout]).toEqual([
    1,
    expect.stringContaining(`: 1 missing: ${left!.split(',')[0]}\n`),
  ]);
  writeFileSync(file, ['key,sequence', left, ...rows].join('\n'));
  expect((await verify(consumer, '--file', file)).code).toBe(0);

  const nobody = ['verify', 'orders', '--account', 'nobody'];
  for (const args of [nobody, [...nobody, '--fresh']]) {
    const { code, stdout, stderr } = await command(args, consumer);
    expect(code).toBe(1);
    expect(stdout + stderr).toMatch(/there is no topic .*\.nobody\.orders: .*--account/);
  }
}

describe.concurrent('--account', TIMEOUT, () => {
  it('names the account whose file is used', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-one', accounts: 12, changesPerSecond: 0 });
    const [first, second, ...others] = fleet.accounts.map(({ name }) => name) as [string, string];
    for (const other of others) fleet.setFile(other, undefined);
    const instance = fleet.start('one');
    await running({ ...fleet, accounts: fleet.accounts.slice(0, 2) }, [instance]);
    const peeked = await command(
      ['peek', 'orders', '--account', second, '--limit', '1'],
      fleet.env,
    );
    expect(peeked.code).toBe(0);
    expect(JSON.parse(peeked.stdout)).toMatchObject({ source: { name: second } });

    const resynced = await command(['resync', '--account', second], fleet.env);
    expect(resynced.stderr).toContain('orders: done');
    expect(resynced.code).toBe(0);
    expect(JSON.parse(resynced.stdout)).toMatchObject({ account: second, resource: 'orders' });

    // With its file; and without, as whoever consumes.
    const replayed = await command(['replay', 'orders', '--account', second], fleet.env);
    expect(replayed.stdout.trim().split('\n').length).toBeGreaterThanOrEqual(200); // twice a hundred
    const consumer = without(fleet.env, 'ACCOUNTS_DIR');
    expect(await command(['replay', 'orders', '--account', second], consumer)).toEqual(replayed);

    await certified(second, fleet.env, consumer);

    const checked = await command(['check', '--account', second], fleet.env);
    expect(checked.stdout).toContain('orders    ok    100 records');
    expect(checked.code).toBe(0);

    fleet.setFile('wrong', 'PAGE_SIZE=many\n');
    const all = await command(['check'], fleet.env);
    expect(all.code).toBe(1);
    expect(all.stdout.split('\n').map((line) => line.slice(0, 16).trim())).toEqual([
      ...['settings   ok', 'kafka      ok', 'commits    ok', 'group      ok', 'registry   ok'],
      ...[`${first}  ok`, `${second}  ok`, 'wrong      FAIL', ''],
    ]);
    expect(await instance.cli.end('SIGTERM')).toBe(0);
  });

  it('is refused in one line where it names none, or is missing in a fleet', async () => {
    const { env, accounts: made } = await fleetForTest({ prefix: 'fleet-names', accounts: 12 });
    const first = made[0]!.name;
    for (const args of [['peek', 'orders'], ['replay', 'orders'], ['resync']]) {
      const missing = await command(args, env);
      expect(missing.code).toBe(2);
      expect(missing.stderr).toMatch(
        /^cellarstream: --account is needed: the accounts of ACCOUNTS_DIR are .*, and 2 more\n$/,
      );
      expect(missing.stderr).toContain(first);
      const none = await command([...args, '--account', '../x'], env);
      expect(none.code).toBe(2);
      expect(none.stderr).toMatch(/^cellarstream: --account \.\.\/x: the accounts of .*\n$/);
    }
    const sole = {
      ...without(env, 'ACCOUNTS_DIR'),
      API_BASE_URL: 'http://x.example',
      API_KEY: 'k',
    };
    for (const args of [['peek', 'orders'], ['replay', 'orders'], ['resync']]) {
      const other = await command([...args, '--account', first], sole);
      expect(other.code).toBe(2);
      expect(other.stderr).toMatch(/^cellarstream: --account .* account\b.*default .*\n$/);
    }
  });
});

describe.concurrent('run beside a fleet', TIMEOUT, () => {
  it('refuses the topics of an account that the fleet runs, and has them when that is over', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-beside', accounts: 2 });
    const [account, other] = fleet.accounts;
    fleet.setFile(other!.name, `${fleet.fileOf(other!)}TOPIC_PREFIX=fleet-beside-own\n`);
    const instance = fleet.start('one');
    await running(fleet, [instance]);
    const alone = (name: string) => ({
      ...without(fleet.env, 'ACCOUNTS_DIR'),
      ...{ TOPIC_PREFIX: `fleet-beside.${name}`, STATE_DIR: folderForTest() },
      ...{ ...parse(fleet.fileOf(account!)), POLL_INTERVAL_MS: '10000' },
    });
    const refused = await command(['run'], alone(account!.name));
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(
      `TOPIC_PREFIX fleet-beside.${account!.name} is in use: instance one publishes the account ${account!.name} of the fleet fleet-beside under it`,
    );
    // The other one has topics elsewhere, once its instance has told so.
    await vi.waitFor(async () => {
      const beside = cliForTest(['run'], { ...alone(other!.name), LOG_LEVEL: 'info' });
      await beside.logged(isReady);
      expect(await beside.end('SIGTERM')).toBe(0);
    }, SOON);

    expect(await instance.cli.end('SIGTERM')).toBe(0);
    const own = cliForTest(['run'], alone(account!.name));
    await own.logged(isReady);
    expect(await own.end('SIGTERM')).toBe(0);
  });
});
