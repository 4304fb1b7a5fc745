import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { checkOrders, checkStatusChanges } from './support/checker.ts';
import { saidBy } from './support/cli.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { publishedTruth } from './support/published-truth.ts';
import { besideEachOther, TIMEOUT } from './support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';

const ORDERS = 300;
const FIRST = 100_001;
/** A marker and its file may be ten seconds apart. */
const COPY_MS = 11_000;

besideEachOther();

const topic = (name: string) => readTopic(inject('brokers'), inject('registryUrl'), name);
const isDiscard = ({ event }: LogLine) => event === 'discarded';
const isReady = ({ event }: LogLine) => event === 'ready';

/** An account whose initial snapshot is done, and whose service has been stopped. */
async function stopped(prefix: string) {
  const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
  const state = folderForTest();
  const env = settings(sandbox, prefix, state);
  const run = () => cliForTest(['run'], env);
  const service = run();
  await firstReadDone(service);
  expect(await service.end('SIGTERM')).toBe(0);
  return { sandbox, state, images: join(state, 'images.mdb'), run };
}

/** Nothing lost, nothing twice, each `before` the `after` before it; then the service is stopped. */
async function expectTruth(
  prefix: string,
  sandbox: Sandbox,
  service: Cli,
  ops: Readonly<Record<string, number>>,
): Promise<void> {
  await publishedTruth(inject('brokers'), inject('registryUrl'), prefix, sandbox);
  expect(await service.end('SIGTERM')).toBe(0);
  const events = await topic(`${prefix}.orders`);
  const found = checkOrders(events, sandbox);
  expect({ violations: found.violations, ops: found.ops }).toEqual({ violations: [], ops });
  const statuses = await topic(`${prefix}.order-status-changes`);
  expect(checkStatusChanges(statuses, events).violations).toEqual([]);
}

/** What the service says of its images: that they are thrown away, once, and how many it read back. */
function heals(service: Cli): { discarded: number; restored: unknown } {
  const lines = service.lines();
  return {
    discarded: lines.filter(isDiscard).length,
    restored: lines.find(({ event }) => event === 'restored')?.images,
  };
}

/** The service when it is ready, and how often it crashed before: as a supervisor does, which starts it again. */
async function supervised(run: () => Cli): Promise<[service: Cli, crashes: number]> {
  for (let crashes = 0; ; crashes++) {
    const service = run();
    const isUp = await service.logged(isReady).then(
      () => true,
      () => false,
    );
    if (isUp) return [service, crashes];
    expect(await service.ended).toMatch(/^SIG(BUS|SEGV|ABRT)$/);
  }
}

describe.concurrent('run, with a state folder that something has happened to', TIMEOUT, () => {
  it('is at work again after three crashes at the most when images.mdb was cut off', async () => {
    const { sandbox, images, run } = await stopped('truncated');
    truncateSync(images, 6 * 4_096);
    sandbox.setStatus(FIRST, 'payment_status', 'refunded');
    const [service, crashes] = await supervised(run);
    expect(crashes).toBeLessThanOrEqual(3);
    expect(heals(service)).toEqual({ discarded: 1, restored: ORDERS });
    await expectTruth('truncated', sandbox, service, { r: ORDERS, u: 1 });
  });

  it('does not work with a copy that was made while it wrote', async () => {
    const { sandbox, state, images, run } = await stopped('copied');
    const copy = folderForTest();
    const service = run();
    await service.logged(isReady);
    cpSync(`${images}-open`, join(copy, 'images.mdb-open'));
    const early = readFileSync(images);
    for (let n = 0; n < 100; n++) {
      sandbox.setStatus(FIRST + n, 'payment_status', 'refunded');
      await sleep(COPY_MS / 100);
    }
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'copied', sandbox);
    const late = readFileSync(images).subarray(early.length / 2);
    writeFileSync(
      join(copy, 'images.mdb'),
      Buffer.concat([early.subarray(0, early.length / 2), late]),
    );
    await service.end('SIGKILL');
    cpSync(copy, state, { recursive: true });
    sandbox.setStatus(FIRST, 'payment_status', 'voided');
    const [next, crashes] = await supervised(run);
    expect(crashes).toBe(0);
    expect(heals(next)).toEqual({ discarded: 1, restored: ORDERS + 100 });
    await expectTruth('copied', sandbox, next, { r: ORDERS, u: 101 });
  });

  it('does not work with an image of which a byte has changed', async () => {
    const { sandbox, images, run } = await stopped('flipped');
    const bytes = readFileSync(images);
    const email = '@example.com'; // in every image
    for (let at = bytes.indexOf(email); at >= 0; at = bytes.indexOf(email, at + 1)) bytes[at]! ^= 1;
    writeFileSync(images, bytes);
    sandbox.setStatus(FIRST, 'payment_status', 'refunded');
    const service = run();
    await service.logged(({ event }) => event === 'restored');
    expect(heals(service)).toEqual({ discarded: 1, restored: ORDERS });
    await expectTruth('flipped', sandbox, service, { r: ORDERS, u: 1 });
  });

  it.skipIf(process.platform !== 'linux')(
    'waits while the disk is full, and goes on by itself when there is room',
    async () => {
      const { sandbox, run } = await stopped('full');
      const service = run();
      await service.logged(isReady);
      // No file of this process can grow, nor be written behind its first page.
      const limit = (bytes: string) =>
        execFileSync('prlimit', ['--pid', String(service.process.pid), `--fsize=${bytes}:`]);
      limit('4096');
      for (let n = 0; n < 20; n++) sandbox.setStatus(FIRST + n, 'payment_status', 'refunded');
      const { err } = await service.logged(
        ({ event, what, count }) =>
          event === 'retry' && what === 'state folder' && Number(count) >= 3,
      );
      expect(JSON.stringify(err)).toMatch(/STATE_FOLDER/);
      expect(JSON.stringify(err)).toMatch(/disk/);
      for (let n = 10; n < 30; n++) sandbox.setStatus(FIRST + n, 'payment_status', 'voided');
      limit('unlimited');
      await expectTruth('full', sandbox, service, { r: ORDERS, u: 40 });
      for (const line of saidBy(service.stderr())) expect(line).toMatch(/^Write error: [^{]*$/); // lmdb's own
    },
  );

  it('goes on when the folder is deleted under it, and begins anew at the next start', async () => {
    const { sandbox, state, run } = await stopped('deleted');
    const kept = folderForTest();
    const service = run();
    await service.logged(isReady);
    cpSync(join(state, 'quota'), join(kept, 'quota'), { recursive: true }); // or a minute's wait
    rmSync(state, { recursive: true });
    sandbox.setStatus(FIRST, 'payment_status', 'refunded');
    await publishedTruth(inject('brokers'), inject('registryUrl'), 'deleted', sandbox);
    await service.end('SIGKILL');
    expect(existsSync(state)).toBe(false);
    cpSync(kept, state, { recursive: true });
    sandbox.setStatus(FIRST, 'payment_status', 'voided');
    const next = run();
    await next.logged(({ event }) => event === 'restored');
    await expectTruth('deleted', sandbox, next, { r: ORDERS, u: 2 });
  });
});
