// @ts-check
// A notice for each parcel that ships: one, however often this is killed and started again.
//
//     npm run example:02         # with `npm start` in another terminal; kill -9 it, and start it again
//
// The group hands over each event at least once. That it has one effect is up to the outbox, which knows a
// notice by the id of its event. Who sends mail instead gives that id to the provider, as the key by which
// it knows the request again.
import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from 'cellarstream';
import { subscribeGroup } from 'cellarstream/consume';
import { failed, folder, kafka, registry, stop$, topics } from './connect.mjs';

/** @import { OrderStatusChange } from 'cellarstream/schemas' */

const outbox = folder('outbox');
const SHIPPED = ['in_transit', 'out_for_delivery', 'delivered'];

/** Between two looks at an order its parcel may have come further than one step. @param {OrderStatusChange} change */
function hasShipped({ field, from, to }) {
  return field === 'shipment_status' && SHIPPED.includes(to ?? '') && !SHIPPED.includes(from ?? '');
}

/** @param {OrderStatusChange} change */
async function notify({ event_id, order_number, subject_id, to }) {
  const notice = join(outbox, `${event_id}.json`);
  if (existsSync(notice)) return; // the process was killed before Kafka knew
  const draft = `${notice}.${process.pid}`;
  await writeFile(draft, JSON.stringify({ order_number, parcel: subject_id }), { flush: true });
  await rename(draft, notice); // there as a whole, or not at all
  console.log(`order ${order_number}: parcel ${subject_id} is ${to}`);
}

subscribeGroup(
  {
    kafka,
    registry,
    topic: topics.orderStatusChanges,
    groupId: 'shipping-notifier',
    sessionTimeoutMs: 6_000, // after a kill the group waits that long for who was killed: the least there is
    stop$,
    onRetry: ({ error }) => console.error(`again in a moment: ${describeError(error)}`),
  },
  async ({ value }) => {
    if (value && hasShipped(value)) await notify(value);
  },
).subscribe({ error: failed });
