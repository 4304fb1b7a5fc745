import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { measureApi } from '../../src/commands/check-api.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { MAX_REQUESTS, measuredOf } from '../../src/measure/measure-list.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { runCli, saidBy } from '../integration/support/cli.ts';

let sandbox: Sandbox | undefined;
afterEach(() => sandbox?.close());

/** Measures a sandbox of the wine API; resolves to the refuted claims as `list.claim`. */
async function refuted(options: SandboxOptions): Promise<string[]> {
  sandbox = await startSandbox({ records: { orders: 1_500 }, ...options });
  const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey };
  const config = loadConfig({ env, cwd: import.meta.dirname, needs: ['api'] });
  const { findings, lists } = await measureApi(config, () => Promise.resolve());
  expect(findings.map(({ what, fine }) => [what, fine])).toEqual([['login', true]]);
  for (const resource of config.resources) {
    const { length } = sandbox.truth.requests(resource as 'orders');
    expect(length).toBeGreaterThan(4);
    expect(length).toBeLessThanOrEqual(MAX_REQUESTS);
  }
  const measured = measuredOf(lists, '2026-05-01');
  expect(Object.keys(measured.lists)).toEqual(config.resources);
  const { notRefuted } = measured.lists.orders!;
  expect(notRefuted).toEqual(expect.arrayContaining(['key', 'limit', 'one']));
  return Object.entries(measured.lists).flatMap(([name, { refuted: claims = [] }]) =>
    claims.map((claim) => `${name}.${claim}`),
  );
}

describe('check --measure of the wine API', () => {
  it.each<[string, SandboxOptions]>([
    ['as it is documented', {}],
    ['that changes', { changesPerSecond: 20 }],
    [
      'that is sorted by modification, newest first, and changes',
      { changesPerSecond: 5, sort: 'updated-desc' },
    ],
    ['whose records move at every third request', { driftEvery: 3 }],
  ])('refutes nothing of an API %s', async (_, options) => {
    expect(await refuted(options)).toEqual([]);
  });

  it.each<[string, SandboxOptions['readings'], string]>([
    ['rounds offsets', { offsets: 'rounded' }, 'orders.paging'],
    ['refuses offsets that are no multiples', { offsets: 'multiples' }, 'orders.paging'],
    ['ignores dates', { dates: 'ignored' }, 'orders.dates'],
    ['excludes the start of a window', { bounds: 'exclusive' }, 'customers.dates'],
    ['always says that a page follows', { hasNextPage: 'always' }, 'orders.more'],
    ['has no totals', { envelope: 'no-totals' }, 'orders.total'],
  ])('refutes a claim about an API that %s', async (_, readings, claim) => {
    expect(await refuted({ readings: readings! })).toContain(claim);
  });
});

describe('run', () => {
  it('refuses a refuted claim, unless it is to believe it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'measured-'));
    try {
      const MEASURED = join(folder, 'measured.yaml');
      writeFileSync(
        MEASURED,
        'measured: { date: 2026-05-01, lists: { orders: { refuted: [limit] } } }',
      );
      const nowhere = 'http://127.0.0.1:9';
      const env = {
        ...{ MEASURED, STATE_DIR: folder, API_KEY: 'k', API_BASE_URL: nowhere },
        ...{ KAFKA_BROKERS: '127.0.0.1:9', SCHEMA_REGISTRY_URL: nowhere },
      };
      const refusing = runCli(['run'], env);
      expect(await refusing.ended).toBe(2);
      expect(saidBy(refusing.stderr())).toEqual([
        expect.stringMatching(
          /^cellarstream: MEASURED measured\.yaml: lists\.orders: limit was refuted/,
        ),
        'To start despite refuted claims, use `cellarstream run --believe`',
      ]);
      const believing = runCli(['run', '--believe'], env);
      await believing.logged(({ event }) => event === 'start');
      await believing.end('SIGTERM');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
