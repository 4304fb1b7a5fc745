import avro from 'avsc';
import { lastValueFrom, toArray } from 'rxjs';
import { expect, inject, it, vi } from 'vitest';
import { replay } from '../../src/consumers/replay.ts';
import { table } from '../../src/consumers/table.ts';
import type { Table } from '../../src/consumers/table.ts';
import type { Order } from '../../src/description/wine/order-type.ts';
import { topicsUnder } from '../../src/consumers/wine-topics.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { partitionOf } from '../../src/sinks/producer/record-batch.ts';
import { truthOf } from './support/checker.ts';
import { kafkajsRead } from './support/kafkajs-read.ts';
import { PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from './support/service.ts';
import { clientsForTest } from './support/written-orders.ts';

const PREFIX = 'avro-keys';
const ORDERS = 60;

it(
  'are written with KEY_FORMAT=avro, and read by all that reads keys as text',
  TIMEOUT,
  async () => {
    const { kafka, registry } = clientsForTest();
    const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
    const env = () => ({ ...settings(sandbox, PREFIX, folderForTest()), KEY_FORMAT: 'avro' });
    const topic = topicsUnder(PREFIX).orders;
    const agree = async (orders: Table<Order>) =>
      vi.waitFor(
        () => {
          const truth = [...truthOf(sandbox, 'orders')] as [string, { updated_at: string }][];
          const stamps = truth.map(
            ([key, { updated_at }]) => [key, Date.parse(updated_at)] as const,
          );
          const held = [...orders.entries()].map(([key, { updated_at }]) => [key, updated_at]);
          expect(new Map(held as never)).toEqual(new Map(stamps));
        },
        { timeout: PATIENCE_MS },
      );

    const first = cliForTest(['run'], env());
    await firstReadDone(first);
    const orders = table({ kafka, registry, topic });
    sandbox.changeSome(20);
    await agree(orders);
    expect(await first.end('SIGTERM')).toBe(0);

    // Nothing is left of the state folder: the images come back from the topic.
    sandbox.changeSome(10);
    const second = cliForTest(['run'], env());
    await agree(orders);
    expect(await second.end('SIGTERM')).toBe(0);
    orders.close();

    const events = await lastValueFrom(replay({ kafka, registry, topic }).pipe(toArray()));
    const newest = new Map<string | null, unknown>();
    for (const { key, value } of events) {
      if (!value) continue;
      expect(value.before).toEqual(newest.get(key) ?? null);
      newest.set(key, value.after);
    }

    const [broker] = inject('brokers');
    const written = await kafkajsRead(broker!, topic.name, (all) => all.length === events.length);
    const ids = new Set(written.map(({ key }) => unframe(key!).schemaId));
    expect([...ids]).toEqual([(await registry.latest(`${topic.name}-key`))?.id]);
    const schema = await registry.schemaById([...ids][0]!);
    const type = avro.Type.forSchema(schema as avro.Schema);
    for (const { key, partition } of written) {
      const { order_number } = type.fromBuffer(unframe(key!).payload) as { order_number: string };
      expect(newest.has(order_number)).toBe(true);
      expect(partition).toBe(partitionOf(Buffer.from(order_number), 2));
    }
    expect(await registry.latest(`${PREFIX}.order-status-changes-key`)).toBeDefined();

    const [one] = newest.keys();
    const cli = cliForTest(['replay', 'orders', '--key', one!, '--limit', '1'], env());
    await cli.succeeded();
    expect(JSON.parse(cli.stdout())).toMatchObject({ key: one });

    // Keys never change silently.
    const text = cliForTest(['run'], { ...env(), KEY_FORMAT: 'text' });
    await text.logged(
      ({ event, err }) => event === 'failed' && String(JSON.stringify(err)).includes('KEY_FORMAT'),
    );
    await text.end('SIGTERM');
  },
);
