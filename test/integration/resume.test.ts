import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { scaled } from '../support/scale.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';

const PAGE_SIZE = scaled(400, 1_000);
const ORDERS = 100 * PAGE_SIZE;
/** Ten records of each are read twice. What is repeated does not grow with them. */
const PAGES = Math.ceil(ORDERS / (PAGE_SIZE - 10));
const PATIENCE = { timeout: 240_000, interval: 20 };

describe('an initial snapshot that is stopped', () => {
  it('goes on where it was, after SIGTERM, SIGKILL and with the images lost', async () => {
    const sandbox = await sandboxForTest({
      records: { orders: ORDERS },
      quotaPerMinute: 10_000, // the quota is not what is tested here
      changesPerSecond: 20,
      latencyMs: 40, // so that a quarter of it is not read before a kill strikes
    });
    const state = folderForTest();
    const env = {
      ...settings(sandbox, 'stopped-first-read', state),
      QUOTA_PER_MINUTE: '10000',
      PAGE_SIZE: String(PAGE_SIZE),
      POLL_INTERVAL_MS: '1000', // or they would take most of the processor
    };
    const repeated: Record<string, number> = {};
    const resumed = async (stopped: Cli, signal: 'SIGTERM' | 'SIGKILL', and?: () => void) => {
      await stopped.end(signal);
      and?.();
      const before = offsets(sandbox);
      const furthest = Math.max(...before);
      const service = cliForTest(['run'], env);
      return {
        service,
        /** Pages that were asked for again; to be called once it has gone on beyond them. */
        again: () =>
          offsets(sandbox)
            .slice(before.length)
            .filter((at) => at <= furthest).length,
      };
    };
    const readTo = (part: number) =>
      vi.waitUntil(() => Math.max(0, ...offsets(sandbox)) >= part * ORDERS, PATIENCE);
    const loseImages = () => {
      // Not the times of requests beside them: without those a minute is waited for first.
      for (const name of readdirSync(state)) {
        if (name !== 'quota') rmSync(join(state, name), { recursive: true });
      }
    };

    const first = cliForTest(['run'], env);
    await readTo(0.25);
    const terminated = await resumed(first, 'SIGTERM');
    await readTo(0.5);
    repeated.SIGTERM = terminated.again();
    const killed = await resumed(terminated.service, 'SIGKILL');
    await readTo(0.75);
    repeated.SIGKILL = killed.again();
    const lost = await resumed(killed.service, 'SIGKILL', loseImages);
    const isDone = ({ event, done }: LogLine) => event === 'first-read' && done === true;
    expect(killed.service.lines().filter(isDone), 'done before it was killed').toEqual([]);
    await firstReadDone(lost.service);
    repeated['images lost'] = lost.again();
    expect(await lost.service.end('SIGTERM')).toBe(0);

    const asked = offsets(sandbox).length;
    console.log(`pages repeated of ${PAGES}:`, repeated, `asked for in all: ${asked}`);
    for (const pages of Object.values(repeated)) expect(pages / PAGES).toBeLessThan(0.05);
    expect(asked).toBeGreaterThanOrEqual(PAGES);
  }, 300_000);
});

/** Of the pages that were served to the initial snapshot: it alone asks without dates. */
function offsets(sandbox: Sandbox): number[] {
  return sandbox.truth
    .requests('orders')
    .filter(({ query, status }) => status === 200 && !query.includes('modifiedFromDate'))
    .map(({ query }) => Number(new URLSearchParams(query).get('offset')));
}
