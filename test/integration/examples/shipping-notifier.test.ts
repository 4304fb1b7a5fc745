import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { withAdmin } from '../../support/with-admin.ts';
import { clientsForTest } from '../support/written-topic.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from '../support/service.ts';
import { runExample } from './run-example.ts';

const PREFIX = 'example-02';
const KILLS = 3;

it('writes one notice for each parcel that ships, though it is killed again and again', async () => {
  const sandbox = await sandboxForTest({ records: { orders: 20 } });
  const service = cliForTest(['run'], {
    ...settings(sandbox, PREFIX, folderForTest()),
    POLL_INTERVAL_MS: '100',
  });
  await firstReadDone(service);
  const before = shipped(sandbox);

  const folder = folderForTest();
  const start = () => runExample('02-shipping-notifier.mjs', PREFIX, { folder });
  for (let kill = 0; kill < KILLS; kill++) {
    const notifier = start();
    ship(sandbox, 40);
    await notifier.until((lines) => lines.filter((line) => line.startsWith('order ')).length >= 5);
    await notifier.end('SIGKILL');
  }
  const notifier = start();
  const expected = shipped(sandbox).filter((parcel) => !before.includes(parcel));
  expect(expected.length).toBeGreaterThan(KILLS * 40);
  await vi.waitUntil(() => new Set(notices(folder)).size >= expected.length, { timeout: 60_000 });
  expect(await notifier.end('SIGTERM')).toBe(0);

  expect(notices(folder)).toEqual(expected);
  expect(await unhandled()).toEqual([]); // so that nothing is to come that would make another one
});

/** So many new orders, packed and sent on as far as it goes. */
function ship(sandbox: Sandbox, count: number): void {
  for (let n = 0; n < count; n++) {
    const order = Number(sandbox.create('orders', { delivery_preference: 'Ship' }));
    while (sandbox.advance(order) !== undefined);
  }
}

/** Parcels on their way or further, by order and id. */
function shipped(sandbox: Sandbox): string[] {
  const orders = [...sandbox.truth.records('orders')] as Order[];
  return orders
    .flatMap(({ order_number, fulfillment_info }) =>
      fulfillment_info
        .filter(({ shipment_status }) =>
          /in_transit|out_for_delivery|delivered/.test(shipment_status ?? ''),
        )
        .map(({ fulfillment_id }) => `${order_number}/${fulfillment_id}`),
    )
    .sort();
}

type Order = {
  readonly order_number: number;
  readonly fulfillment_info: { fulfillment_id: string; shipment_status: string | null }[];
};

/** What is in the outbox; a draft that a kill has left is no notice. */
function notices(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .filter((file) => file.endsWith('.json'))
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Notice)
    .map(({ order_number, parcel }) => `${order_number}/${parcel}`)
    .sort();
}

interface Notice {
  readonly order_number: number;
  readonly parcel: string;
}

/** Partitions in which the group is not at the end. */
function unhandled() {
  const topic = `${PREFIX}.order-status-changes`;
  return withAdmin(clientsForTest().kafka, async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic);
    const [group] = await admin.fetchOffsets({ groupId: 'shipping-notifier', topics: [topic] });
    const offsets = new Map(group!.partitions.map((one) => [one.partition, one.offset]));
    return ends.filter(({ partition, high }) => offsets.get(partition) !== high);
  });
}
