import { describe, expect, inject, it, vi } from 'vitest';
import type { Cli } from './support/cli.ts';
import { besideEachOther } from './support/running-test.ts';
import { cliForTest } from './support/service.ts';
import type { Env } from './support/service.ts';

const SOON = { timeout: 90_000, interval: 100 };
besideEachOther();

function demo(prefix: string, flags: readonly string[], env: Env = {}): Cli {
  return cliForTest(['demo', '--orders', '20', ...flags], {
    KAFKA_BROKERS: inject('brokers').join(','),
    SCHEMA_REGISTRY_URL: inject('registryUrl'),
    TOPIC_PREFIX: prefix,
    TOPIC_PARTITIONS: '1',
    RESOURCES: 'orders',
    POLL_INTERVAL_MS: '1000',
    ...env,
  });
}

/** By name, the process of each instance that was started, the newest of each. */
function processes(cli: Cli): ReadonlyMap<string, number> {
  const said = [...cli.stderr().matchAll(/^(instance-\d) is process (\d+)$/gm)];
  return new Map(said.map(([, name, pid]) => [name!, Number(pid)]));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** How often all accounts had an instance that reads them. */
const timesWhole = (cli: Cli) =>
  cli.stdout().match(/ all \d+ accounts are served; accounts of each instance: .*/g) ?? [];

async function whole(cli: Cli, times: number): Promise<string> {
  await vi.waitFor(() => expect(timesWhole(cli).length).toBeGreaterThanOrEqual(times), SOON);
  return timesWhole(cli).at(-1)!;
}

describe.concurrent('demo with several instances', { timeout: 240_000 }, () => {
  it('shows a kill, the takeover, and the way back; and leaves no process behind', async () => {
    const cli = demo('demo-fleet', ['--accounts', '6', '--instances', '2']);
    await whole(cli, 1);
    await vi.waitFor(() => expect(cli.stderr()).toContain('kill one: kill -9 '), SOON);
    const pids = [...processes(cli).values()];
    expect(pids).toHaveLength(2);

    process.kill(processes(cli).get('instance-2')!, 'SIGKILL');
    await vi.waitFor(() => expect(cli.stdout()).toMatch(/instance-2 has ended \(SIGKILL\)/), SOON);
    const before = timesWhole(cli).length;
    expect(await whole(cli, before + 1)).toBe(
      ' all 6 accounts are served; accounts of each instance: instance-1 6',
    );
    expect(cli.stdout()).toMatch(/instance-1 claims winery-\d from instance-2/);

    await vi.waitFor(() => {
      expect(timesWhole(cli).at(-1)).toBe(
        ' all 6 accounts are served; accounts of each instance: instance-1 3, instance-2 3',
      );
    }, SOON);
    expect(cli.stdout()).toMatch(/instance-1 releases winery-\d/);
    const all = [...pids, ...processes(cli).values()];
    const stoppedAt = Date.now();
    expect(await cli.end('SIGINT')).toBe(0);
    expect(Date.now() - stoppedAt).toBeLessThan(15_000); // where all leave, none waits for another to take over
    expect(all.filter(isAlive)).toEqual([]);
    expect(cli.stdout() + cli.stderr()).not.toContain('sandbox-key');
  });

  it('takes its instances along when it is killed', async () => {
    const cli = demo('demo-fleet-killed', ['--instances', '2']);
    await whole(cli, 1);
    const pids = [...processes(cli).values()];
    await cli.end('SIGKILL');
    await vi.waitFor(() => expect(pids.filter(isAlive)).toEqual([]), SOON);
  });

  it('ends with the error of an instance that can not start', async () => {
    const env = { TOPIC_REPLICATION: '9' }; // there is one broker
    const cli = demo('demo-fleet-wrong', ['--accounts', '2'], env);
    expect(await cli.ended).toBe(1);
    expect(cli.stderr()).toMatch(/^cellarstream: instance-1 can't start: .*replication/im);
    expect([...processes(cli).values()].filter(isAlive)).toEqual([]);
  });
});
