import { envelopeCodec } from '../../src/schemas/envelope.ts';
import type { ChangeEvent, EnvelopeCodec } from '../../src/schemas/envelope.ts';
import { orderStatusChangeCodec } from '../../src/schemas/order-status-change.ts';
import { canonicalJson } from '../../src/schemas/json.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import type { SimApi } from './sim-api.ts';
import type { SimBroker, SimMessage } from './sim-broker.ts';
import type { SimRegistry } from './sim-registry.ts';

interface Event extends ChangeEvent {
  readonly at: number;
}

export interface Verdict {
  readonly violations: readonly string[];
  readonly events: number;
  readonly deletions: number;
}

/**
 * Holds what was published against what could be seen: chains whole, sequences rising, nothing
 * twice, nothing made up, never back to an older state, no deletion of what was there, and in the end
 * the truth.
 */
export function check(broker: SimBroker, registry: SimRegistry, api: SimApi): Verdict {
  const violations: string[] = [];
  const { resource } = api.traits;
  const codecs = new Map<number, EnvelopeCodec>();
  const decode = (value: Buffer): ChangeEvent => {
    const id = value.readInt32BE(1);
    const codec = codecs.get(id) ?? envelopeCodec(registry.schema(id));
    codecs.set(id, codec);
    return codec.decode(value.subarray(5));
  };

  const chains = new Map<string, (Event | 'tombstone')[]>();
  const messages = broker.read(`sim.${resource}`);
  for (const { key, value, at } of messages) {
    const chain = chains.get(key!) ?? [];
    chains.set(key!, chain);
    chain.push(value ? { ...decode(value), at } : 'tombstone');
  }
  let deletions = 0;
  for (const [key, chain] of chains) {
    const say = (what: string) => violations.push(`${key}: ${what}`);
    const sights = (api.history.get(Number(key)) ?? []).map(({ at, text }) => ({
      at,
      text: text === null ? null : canonicalJson(JSON.parse(text) as JsonObject),
    }));
    let last: Event | undefined;
    let place = -1; // of the newest image among what could be seen
    chain.forEach((event, k) => {
      if (event === 'tombstone') {
        const before = chain[k - 1];
        if (before === undefined || before === 'tombstone' || before.op !== 'd')
          say('a tombstone without a deletion');
        return;
      }
      const was = last?.after ? canonicalJson(last.after) : null;
      const before = event.before && canonicalJson(event.before);
      const after = event.after && canonicalJson(event.after);
      if (before !== was) say(`before is not the previous after: ${before} instead of ${was}`);
      if (before === after) say('an event without a change');
      if (last && event.source.sequence <= last.source.sequence)
        say(`sequence ${event.source.sequence} after ${last.source.sequence}`);
      const isFirst = before === null;
      if (isFirst !== (event.op === 'r' || event.op === 'c')) say(`${event.op} out of place`);
      if (event.op === 'd') {
        deletions += 1;
        if (chain[k + 1] !== 'tombstone') say('a deletion without a tombstone');
        if (!sights.some(({ at, text }) => text === null && at <= event.at))
          say('deleted although it was there');
      }
      const found = sights.findIndex(
        ({ at, text }, n) => n > place && text === after && at <= event.at,
      );
      if (found < 0) say(`${after} was never to be seen, or before what is published already`);
      else place = found;
      last = event;
    });
  }
  const truth = api.truth();
  for (const [key, text] of truth) {
    const last = chains.get(key)?.at(-1);
    const image = last && last !== 'tombstone' && last.after;
    if (!image) violations.push(`${key}: is there, and not published`);
    else if (canonicalJson(image) !== canonicalJson(JSON.parse(text) as JsonObject))
      violations.push(`${key}: ${canonicalJson(image)} is not the truth: ${text}`);
  }
  for (const [key, chain] of chains) {
    if (chain.at(-1) !== 'tombstone' && !truth.has(key))
      violations.push(`${key}: is gone, and not deleted`);
  }
  if (resource === 'orders') checkStatuses(chains, broker.read('sim.order-status-changes'), violations); // prettier-ignore
  return { violations, events: messages.length, deletions };
}

/** Each status that differs between two images is one event, in order, and there are no others. */
function checkStatuses(
  chains: ReadonlyMap<string, readonly (Event | 'tombstone')[]>,
  messages: readonly SimMessage[],
  violations: string[],
): void {
  const found = new Map<string, string[]>();
  const ids = new Set<unknown>();
  for (const { key, value } of messages) {
    const { event_id, subject, subject_id, field, from, to } = orderStatusChangeCodec.decode(
      value!.subarray(5),
    );
    if (ids.has(event_id)) violations.push(`${key}: the status event ${event_id} is there twice`);
    ids.add(event_id);
    const name = `${key} ${subject} ${subject_id} ${field}`;
    found.set(name, [...(found.get(name) ?? []), `${from} -> ${to}`]);
  }
  const wanted = new Map<string, string[]>();
  for (const [key, chain] of chains) {
    for (const event of chain) {
      if (event === 'tombstone' || event.op === 'r' || event.op === 'd') continue;
      const [was, is] = [statusesOf(event.before), statusesOf(event.after)];
      for (const name of new Set([...was.keys(), ...is.keys()])) {
        const [from, to] = [was.get(name) ?? null, is.get(name) ?? null];
        if (from === to) continue;
        const id = `${key} ${name}`;
        wanted.set(id, [...(wanted.get(id) ?? []), `${from} -> ${to}`]);
      }
    }
  }
  for (const name of new Set([...found.keys(), ...wanted.keys()])) {
    const [got, want] = [found.get(name) ?? [], wanted.get(name) ?? []];
    if (got.join() !== want.join())
      violations.push(`${name}: ${got.join()} instead of ${want.join()}`);
  }
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
