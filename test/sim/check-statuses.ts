import { orderStatusChangeCodec } from '../../src/schemas/events/order-status-change.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import type { Chains } from './published.ts';
import type { SimMessage } from './sim-broker.ts';

/** Each status that differs between two images is one event, in order, and there are no others. */
export function checkStatuses(chains: Chains, messages: readonly SimMessage[]): string[] {
  const violations: string[] = [];
  const found = new Map<string, string[]>();
  const ids = new Set<unknown>();
  for (const { key, value } of messages) {
    const { event_id, subject, subject_id, field, from, to } = orderStatusChangeCodec.decode(
      unframe(value!).payload,
    );
    if (ids.has(event_id)) violations.push(`${key}: the status event ${event_id} is there twice`);
    ids.add(event_id);
    add(found, `${key} ${subject} ${subject_id} ${field}`, `${from} -> ${to}`);
  }
  const wanted = new Map<string, string[]>();
  for (const [key, chain] of chains) {
    let was = new Map<string, string>();
    for (const event of chain) {
      if (event === 'tombstone') continue;
      const is = statusesOf(event.record);
      if (event.op === 'c' || event.op === 'u') {
        for (const name of new Set([...was.keys(), ...is.keys()])) {
          const [from, to] = [was.get(name) ?? null, is.get(name) ?? null];
          if (from !== to) add(wanted, `${key} ${name}`, `${from} -> ${to}`);
        }
      }
      was = is;
    }
  }
  for (const name of new Set([...found.keys(), ...wanted.keys()])) {
    const [got, want] = [found.get(name) ?? [], wanted.get(name) ?? []];
    if (got.join() !== want.join())
      violations.push(`${name}: ${got.join()} instead of ${want.join()}`);
  }
  return violations;
}

function add(lists: Map<string, string[]>, name: string, item: string): void {
  const list = lists.get(name);
  if (list) list.push(item);
  else lists.set(name, [item]);
}

function statusesOf(order: JsonObject | null): Map<string, string> {
  const statuses = new Map<string, string>();
  const add = (name: string, value: unknown) => {
    if (typeof value === 'string') statuses.set(name, value);
  };
  add('order null payment_status', order?.payment_status);
  add('order null fulfillment_status', order?.fulfillment_status);
  for (const parcel of (order?.fulfillment_info ?? []) as Record<string, unknown>[]) {
    add(`fulfillment ${String(parcel.fulfillment_id)} status`, parcel.status);
  }
  return statuses;
}
