import { Command } from 'commander';
import { afterEach, expect, it } from 'vitest';
import { sandboxFlags, sandboxOptions } from '../../src/commands/sandbox-flags.ts';
import type { DemoFlags } from '../../src/commands/sandbox-flags.ts';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock } from './client.ts';

let sandbox: Sandbox;
afterEach(() => sandbox.close());

async function start(options: SandboxOptions) {
  const clock = handClock();
  sandbox = await startSandbox({ now: clock.now, quotaPerMinute: 10_000, ...options });
  return connect(sandbox);
}

const NEW = ['source_channel', 'risk_score', 'external_ids'];
const keyOf = (record: JsonObject) => record.order_number ?? record.sku ?? record.id;
const records = () =>
  RESOURCES.flatMap((resource) => [...sandbox.truth.records(resource)] as JsonObject[]);

it('lets everything happen sooner or later, and the truth is what is served', async () => {
  const { page } = await start({ driftEvery: 3, records: { orders: 60 } });
  const before = new Map(
    RESOURCES.map((resource) => [resource, [...sandbox.truth.records(resource)][0] as JsonObject]),
  );
  const seen = { field: 0, type: 0, key: 0, repeat: 0 };
  for (let round = 0; round < 25; round++) {
    sandbox.changeSome(9);
    for (const resource of RESOURCES) {
      const { data, pagination } = await page(resource);
      const truth = [...sandbox.truth.records(resource)].slice(0, 1_000);
      const texts = data.map((record) => JSON.stringify(record));
      const once = texts.filter((text, k) => text !== texts[k - 1]);
      expect(once).toEqual(truth.map((record) => JSON.stringify(record)));
      expect(pagination.total_records).toBe(sandbox.truth.count(resource));
      if (texts.length > once.length) seen.repeat++;
      for (const record of data) {
        if (NEW.some((name) => name in record)) seen.field++;
        if (keyOf(record) === undefined) seen.key++;
        for (const [name, value] of Object.entries(before.get(resource)!)) {
          if (typeof value === 'number' && typeof record[name] === 'string') seen.type++;
        }
      }
    }
  }
  for (const [what, times] of Object.entries(seen)) expect([what, times > 0]).toEqual([what, true]);
});

it('is seeded, part of the traffic, and never happens unless asked for', async () => {
  const outcome = async (options: SandboxOptions) => {
    await start({ records: { orders: 60, customers: 60 }, ...options });
    sandbox.changeSome(400);
    const found = JSON.stringify(records());
    await sandbox.close();
    return found;
  };
  const first = await outcome({ driftEvery: 20 });
  expect(await outcome({ driftEvery: 20 })).toBe(first);
  expect(await outcome({ driftEvery: 20, seed: 2 })).not.toBe(first);
  const calm = await outcome({});
  expect(calm).not.toContain('"source_channel"');
  expect(await outcome({ driftEvery: 500 })).toBe(calm);
});

it('does not pile up while nobody asks: one page of a list is spoilt, one key is gone', async () => {
  const { page } = await start({ driftEvery: 1, records: { orders: 60 } });
  sandbox.changeSome(1_000);
  for (const resource of RESOURCES) {
    const count = Math.min(1_000, sandbox.truth.count(resource));
    const lengths = [];
    for (let k = 0; k < 4; k++) lengths.push((await page(resource)).data.length - count);
    expect(lengths.slice(1)).toEqual([0, 0, 0]);
    const keyless = [...sandbox.truth.records(resource)].map((r) => keyOf(r as JsonObject));
    expect(keyless.filter((key) => key === undefined).length).toBeLessThanOrEqual(1);
  }
});

it('starts from nothing', async () => {
  await start({ driftEvery: 1, records: Object.fromEntries(RESOURCES.map((name) => [name, 0])) });
  sandbox.changeSome(200);
  expect(sandbox.truth.count('orders')).toBeGreaterThan(5);
});

it('`--drift` turns it on; --help says what it does', async () => {
  const flags = (...words: string[]) =>
    sandboxFlags(new Command()).parse(words, { from: 'user' }).opts<DemoFlags>();
  expect(sandboxOptions(flags()).driftEvery).toBeUndefined();
  const options = sandboxOptions(flags('--drift', '--orders', '50'));
  expect(options.driftEvery).toBe(30);
  await start(options);
  expect(sandboxFlags(new Command()).helpInformation().replace(/\s+/g, ' ')).toContain(
    'after every 30 random changes, makes one list irregular: a new field',
  );
  await expect(startSandbox({ driftEvery: 0.5 })).rejects.toThrow('driftEvery');
});
