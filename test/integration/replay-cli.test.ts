import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, inject, it, vi } from 'vitest';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import { createEnvelopeCodec } from '../../src/schemas/events/envelope.ts';
import { orderSchema } from '../../src/description/wine/order.ts';
import { valueSubject } from '../../src/schemas/events/topics.ts';
import { frame } from '../../src/schemas/registry/wire.ts';
import { replayCommand } from '../../src/commands/replay.ts';
import type { ReplayFlags } from '../../src/commands/replay.ts';
import { runCli } from './support/cli.ts';
import { commandHere } from './support/command-here.ts';
import { cliForTest, folderForTest } from './support/service.ts';
import { clientsForTest, writtenOrders } from './support/written-orders.ts';
import { numbers, writtenTopic } from './support/written-topic.ts';

const run = promisify(execFile);
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

function settings(prefix: string) {
  return {
    KAFKA_BROKERS: inject('brokers').join(','),
    SCHEMA_REGISTRY_URL: inject('registryUrl'),
    TOPIC_PREFIX: prefix,
  };
}

/** The `replay` command in this process, to its end. */
async function replayedHere(prefix: string, of: string, flags: Partial<ReplayFlags> = {}) {
  const { exit, stdout, stderr } = await commandHere(
    () => replayCommand(of, { from: 'beginning', to: 'latest', ...flags }),
    settings(prefix),
  );
  return { exit, lines: stdout.split('\n').filter(Boolean), stderr };
}

/** `cellarstream replay ARGS` as a process, to its end. */
async function replayed(prefix: string, ...args: string[]) {
  const cli = runCli(['replay', ...args], settings(prefix));
  const exit = await cli.ended;
  const lines = cli.stdout().split('\n').filter(Boolean);
  return { exit, lines, stderr: cli.stderr() };
}

const parsed = (lines: readonly string[]) =>
  lines.map((line) => JSON.parse(line) as Record<string, unknown>);

async function orders(prefix: string) {
  const topic = await writtenOrders(clientsForTest(), `${prefix}.orders`);
  await topic.write('1', { order_number: 1, order_total: 12.5, unheard_of: [1, { deep: null }] });
  await topic.write('2', { order_number: 2, email: null });
  await topic.write('1', { order_number: 1, order_total: 13 });
  await topic.write('2', null);
  return topic;
}

describe('replay', () => {
  it('prints events as JSON lines: place, key, and all that the API had sent', async () => {
    await orders('cli-json');
    const { exit, lines, stderr } = await replayed('cli-json', 'orders');
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    const events = parsed(lines);
    expect(events).toHaveLength(5);
    expect(events[0]).toMatchObject({
      key: '1',
      partition: 0,
      offset: 0,
      timestamp: expect.any(Number),
      op: 'c',
      before: null,
      after: { order_number: 1, order_total: 12.5, unheard_of: [1, { deep: null }] },
    });
    expect(events.map(({ key, op }) => [key, op])).toEqual([
      ['1', 'c'],
      ['2', 'c'],
      ['1', 'u'],
      ['2', 'd'],
      ['2', undefined],
    ]);
    expect(events[1]!.after).toEqual({ order_number: 2, email: null });
    const { key, partition, offset, timestamp } = events[4]!;
    expect(events[4]).toEqual({ key, partition, offset, timestamp, tombstone: true });
  });

  it('takes places, keys and limits', async () => {
    await orders('cli-places');
    const offsets = async (flags: Partial<ReplayFlags>) => {
      const { exit, lines, stderr } = await replayedHere('cli-places', 'orders', flags);
      expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
      return parsed(lines).map(({ offset }) => offset);
    };
    const all = await offsets({});
    expect(all).toHaveLength(5);
    expect(await offsets({ from: 'beginning', to: 'latest', byTime: true })).toEqual(all);
    expect(await offsets({ from: 'latest' })).toEqual([]);
    expect(await offsets({ key: '2' })).toEqual([all[1], all[3], all[4]]);
    expect(await offsets({ limit: 0 })).toEqual([]);
    expect(await offsets({ from: `0:${Number(all[2])}` })).toEqual(all.slice(2));
    expect(await offsets({ to: `0:${Number(all[2])}` })).toEqual(all.slice(0, 2));
    expect(await offsets({ from: '2020-01-31', to: '2099-01-31T08:00+02:00' })).toEqual(all);
    expect(await offsets({ to: '2020-01-31T08:00Z' })).toEqual([]);
    expect(await offsets({ limit: 2 })).toEqual(all.slice(0, 2));

    // Every flag once as it is written.
    const args = ['--from', 'beginning', '--to', 'latest', '--by-time', '--key', '2'];
    const { exit, lines } = await replayed('cli-places', 'orders', ...args, '--limit', '2');
    expect(exit).toBe(0);
    expect(parsed(lines).map(({ offset }) => offset)).toEqual([all[1], all[3]]);
  });

  it('follows until it is told to stop', async () => {
    const topic = await orders('cli-follow');
    const cli = cliForTest(['replay', 'orders', '--follow'], settings('cli-follow'));
    await vi.waitUntil(() => cli.stdout().split('\n').length === 6, { timeout: 30_000 });
    await topic.write('3', { order_number: 3 });
    await vi.waitUntil(() => cli.stdout().split('\n').length === 7, { timeout: 30_000 });
    expect(await cli.end('SIGINT')).toBe(0);
    expect(cli.stderr()).toBe('');
    expect(parsed([cli.stdout().split('\n')[5]!])[0]).toMatchObject({ key: '3', op: 'c' });
  });

  it('prints status changes, and lines for people', async () => {
    const topic = await writtenTopic(clientsForTest(), 'cli-status.order-status-changes', 2);
    await topic.write(1, [7, 15], { at: Date.UTC(2026, 0, 31, 12) });
    const { lines } = await replayedHere('cli-status', 'order-status-changes');
    expect(parsed(lines)).toMatchObject([
      {
        key: '7',
        partition: 1,
        offset: 0,
        order_number: 7,
        field: 'shipment_status',
        to: 'Shipped',
      },
      { key: '15', partition: 1, offset: 1, order_number: 15, from: null, to: null },
    ]);
    const pretty = await replayed('cli-status', 'order-status-changes', '--pretty');
    expect(pretty.lines).toEqual([
      '2026-01-31 12:00:00.000  1:0        order 7  shipment_status Pending → Shipped',
      '2026-01-31 12:00:00.001  1:1        order 15  shipment_status ∅ → ∅',
    ]);
  });

  it('prints dead letters, which it did not know of', async () => {
    const clients = clientsForTest();
    const name = 'cli-letters.dead-letters';
    const { schema } = deadLetterCodec;
    const topic = await writtenTopic(clients, name, 1, {}, schema);
    const schemaId = await clients.registry.register(valueSubject(name), schema);
    const letter = {
      resource: 'orders',
      reason: 'no-key',
      message: 'the record has no usable key',
      raw: '{"a":1}',
      offset: 3,
      observed_at: 1,
      sha256: null,
      length: null,
      part: null,
      parts: null,
    };
    await topic.send(0, [
      { key: null, value: frame(schemaId, deadLetterCodec.encode(letter)) },
      {
        key: '7',
        value: frame(schemaId, deadLetterCodec.encode({ ...letter, part: 1, parts: 2 })),
      },
    ]);
    const { exit, lines } = await replayedHere('cli-letters', 'dead-letters');
    expect(exit).toBe(0);
    expect(parsed(lines)).toMatchObject([
      { key: null, ...letter },
      { key: '7', part: 1 },
    ]);
    const pretty = await replayedHere('cli-letters', 'dead-letters', { pretty: true });
    expect(pretty.lines.map((line) => line.slice(24))).toEqual([
      ' 0:0        rejected  orders ∅  no-key the record has no usable key',
      ' 0:1        rejected  orders 7  no-key (part 1 of 2) the record has no usable key',
    ]);
  });

  it('prints the events of a list that it has not heard of', async () => {
    const clients = clientsForTest();
    const name = 'cli-unheard.gift-cards';
    const codec = createEnvelopeCodec(orderSchema, 'gift-cards');
    const topic = await writtenTopic(clients, name, 1, {}, codec.schema);
    const id = await clients.registry.register(valueSubject(name), codec.schema);
    const source = {
      connector: 'c',
      version: '0',
      name: 'n',
      resource: 'gift-cards',
      ts_ms: null,
      snapshot: 'false',
      db: 'wine',
      table: 'orders',
      sequence: 1,
    } as const;
    const after = codec.values.encode({ order_number: 7 });
    const event = { before: null, after, op: 'c', ts_ms: 1, changed: [], source } as const;
    await topic.send(0, [{ key: '7', value: frame(id, codec.encode(event)) }]);
    const { exit, lines } = await replayedHere('cli-unheard', 'gift-cards');
    expect(exit).toBe(0);
    expect(parsed(lines)).toMatchObject([{ key: '7', op: 'c', after: { order_number: 7 } }]);
  });

  it('ends quietly when nobody reads on, with a long topic behind it', async () => {
    const topic = await writtenTopic(clientsForTest(), 'cli-head.order-status-changes', 1);
    for (let first = 0; first < 40_000; first += 4_000) {
      await topic.write(0, numbers(first, first + 3_999));
    }
    const { stdout, stderr } = await run(
      'bash',
      [
        '-c',
        '"$0" "$1" replay order-status-changes | head -n 3; echo "${PIPESTATUS[0]}"',
        process.execPath,
        CLI,
      ],
      { env: { ...process.env, ...settings('cli-head') } },
    );
    const lines = stdout.trim().split('\n');
    expect(parsed(lines.slice(0, 3)).map(({ offset }) => offset)).toEqual([0, 1, 2]);
    expect(lines.slice(3)).toEqual(['0']);
    expect(stderr).toBe('');
  });

  it('says how far it is when the lines go to a file', async () => {
    await orders('cli-file');
    const file = `${folderForTest()}/events.jsonl`;
    const { stdout, stderr } = await run(
      'bash',
      ['-c', '"$0" "$1" replay orders > "$2"; wc -l < "$2"', process.execPath, CLI, file],
      { env: { ...process.env, ...settings('cli-file') } },
    );
    expect(stdout.trim()).toBe('5');
    expect(stderr).toMatch(/^5 events\n$/);
  });

  it.each([
    [
      'orders',
      { from: 'yesterday' },
      2,
      /--from yesterday: give beginning, latest, a date \(2026-01-31, in UTC\), a time with its zone/,
    ],
    ['orders', { to: '2026-01-31T08:00' }, 2, /--to 2026-01-31T08:00: give latest, a date/],
    ['orders', { follow: true, to: '2026-01-31' }, 2, /--follow has no end: leave out --to/],
    [
      'nothing',
      {},
      2,
      /nothing: .*no schema of events for cli-nowhere.nothing. Give orders, customers/,
    ],
    ['orders', {}, 1, /there is no topic cli-nowhere.orders/],
  ] as const)('refuses %s %j with exit code %i', async (of, flags, code, message) => {
    const { exit, lines, stderr } = await replayedHere('cli-nowhere', of, flags);
    expect({ exit, lines }).toEqual({ exit: code, lines: [] });
    expect(stderr).toMatch(message);
  });

  it('refuses a limit that is no number with exit code 2', async () => {
    const { exit, lines, stderr } = await replayed('cli-nowhere', 'orders', '--limit', 'x');
    expect({ exit, lines }).toEqual({ exit: 2, lines: [] });
    expect(stderr).toMatch(/a whole number is needed/);
  });

  it('refuses an offset that is not there', async () => {
    await orders('cli-beyond');
    const { exit, stderr } = await replayed('cli-beyond', 'orders', '--from', '0:999');
    expect(exit).toBe(1);
    expect(stderr).toMatch(
      /^cellarstream: 0:999: partition 0 of cli-beyond.orders ends at \d+: give that offset or a lower one\n$/,
    );
  });
});
