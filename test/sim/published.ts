import type { Op } from '../../src/schemas/events/envelope.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { VOLATILE } from './sim-api.ts';
import type { SimBroker, SimMessage } from './sim-broker.ts';
import type { SimList } from './sim-list.ts';
import type { SimRegistry } from './sim-registry.ts';

/** An event as it is in the topic. */
export interface PublishedEvent {
  readonly op: Op;
  readonly sequence: number;
  readonly at: number;
  readonly schemaId: number;
  /** Images as bytes of that schema. */
  readonly before: Buffer | null;
  readonly after: Buffer | null;
  /** As it was made; without the field that differs in every answer. */
  readonly record: JsonObject | null;
  /** That field, of both images. */
  readonly signatures: { readonly before: unknown; readonly after: unknown };
  /** When it was taken away from the topic; Infinity while it is there. */
  readonly lostAt: number;
  /** Reads an image of the event's schema, but for that field. */
  readonly decode: (image: Buffer) => JsonObject;
}

/** All that was published of each key, in order. */
export type Chains = ReadonlyMap<string, readonly (PublishedEvent | 'tombstone')[]>;

export function chainsOf(events: readonly SimMessage[], registry: SimRegistry): Chains {
  const chains = new Map<string, (PublishedEvent | 'tombstone')[]>();
  for (const { key, value, at, lostAt } of events) {
    const chain = chains.get(key!) ?? [];
    chains.set(key!, chain);
    chain.push(value ? eventOf(registry, value, at, lostAt) : 'tombstone');
  }
  return chains;
}

function eventOf(registry: SimRegistry, value: Buffer, at: number, lostAt: number): PublishedEvent {
  const { schemaId, payload } = unframe(value);
  const codec = registry.codec(schemaId);
  const { before, after, op, sequence } = codec.images(payload);
  const signatureOf = (image: Buffer | null) => image && codec.values.decode(image)[VOLATILE];
  const decode = (image: Buffer) => {
    const record = codec.values.decode(image);
    delete record[VOLATILE];
    return record;
  };
  const record = after && decode(after);
  const signatures = { before: signatureOf(before), after: signatureOf(after) };
  return { op, sequence, at, lostAt, schemaId, before, after, record, signatures, decode };
}

/** The newest record of each key, as it is when asked for; only what is new is read. */
export function imagesOf(broker: SimBroker, registry: SimRegistry, topic: string) {
  const images = new Map<string, JsonObject>();
  const read = new Map<number, number>();
  let { losses } = broker;
  return (): ReadonlyMap<string, JsonObject> => {
    if (losses !== broker.losses) {
      images.clear();
      read.clear();
      ({ losses } = broker);
    }
    for (const [partition, { low, high: end }] of broker.bounds(topic)) {
      const from = read.get(partition) ?? Number(low);
      for (const { key, value } of broker.slice(topic, partition, from, Number(end))) {
        const record = value && eventOf(registry, value, 0, Infinity).record;
        if (record) images.set(String(key), record);
        else images.delete(String(key));
      }
      read.set(partition, Number(end));
    }
    return images;
  };
}

/** Whether these are the records of the list, each in its newest version. */
export function isTruth(images: ReadonlyMap<string, JsonObject>, list: SimList): boolean {
  const truth = list.truth();
  return (
    truth.size === images.size &&
    [...truth].every(([key, { version }]) => images.get(key)?.version === version)
  );
}
