import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { checkOrders } from './support/checker.ts';
import { runCli } from './support/cli.ts';
import type { Cli } from './support/cli.ts';
import { scaled } from '../support/scale.ts';
import { connections } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';

const ORDERS = scaled(30_000, 100_000);
const PREFIX = 'first-read';

describe(`run, with ${ORDERS} orders, the other lists and the true limits`, () => {
  let sandbox: Sandbox;
  let state: string;
  let service: Cli;
  beforeAll(async () => {
    sandbox = await startSandbox({ records: { orders: ORDERS } });
    state = mkdtempSync(join(tmpdir(), 'cellarstream-first-read-'));
  });
  afterAll(async () => {
    await service.end('SIGKILL');
    await sandbox.close();
    rmSync(state, { recursive: true });
  });

  it('publishes each once, in the quota, in little memory, and stops cleanly', async () => {
    const started = performance.now();
    service = runCli(['run'], { ...connections(sandbox, PREFIX, state), TOPIC_PARTITIONS: '' });
    await service.logged(
      ({ event, resource, done }) =>
        event === 'first-read' && resource === 'orders' && done === true,
    );
    const seconds = (performance.now() - started) / 1_000;
    const memory = anonymousMegabytes(service.process.pid!);
    expect(await service.end('SIGTERM')).toBe(0);
    console.log(`initial snapshot: ${seconds.toFixed(1)} s, RssAnon ${memory.toFixed(0)} MB`);

    expect(memory).toBeLessThan(400);
    expect(sandbox.truth.mostInAnyWindow('orders', 60_000)).toBeLessThanOrEqual(100);
    expect(sandbox.truth.refused()).toBe(0);

    const events = await readTopic(inject('brokers'), inject('registryUrl'), `${PREFIX}.orders`);
    const { violations, ops, keys } = checkOrders(events, sandbox);
    expect(violations).toEqual([]);
    expect(ops).toEqual({ r: ORDERS });
    expect(keys).toBe(ORDERS);
    const topic = `${PREFIX}.order-status-changes`;
    expect(await readTopic(inject('brokers'), inject('registryUrl'), topic)).toEqual([]);
  }, 180_000);
});

function anonymousMegabytes(pid: number): number {
  const kilobytes = /RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) / 1_024;
}
