import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { valueSubject } from '../../../src/schemas/events/topics.ts';
import { frame } from '../../../src/schemas/registry/wire.ts';
import { writtenTopic } from './written-topic.ts';
import type { Clients } from './written-topic.ts';

export { clientsForTest } from './written-topic.ts';

export interface WrittenOrders {
  /** An order as it is now, as the service would publish it; null deletes it. */
  write(key: string, order: JsonObject | null): Promise<void>;
}

/** A topic of orders that a test writes by itself, of one partition. */
export async function writtenOrders(clients: Clients, name: string): Promise<WrittenOrders> {
  const topic = await writtenTopic(clients, name, 1, { 'cleanup.policy': 'compact' });
  const codec = createEnvelopeCodec(orderSchema, 'orders');
  const schemaId = await clients.registry.register(valueSubject(`${name}.orders`), codec.schema);
  const images = new Map<string, Buffer>();
  let sequence = 0;
  return {
    write: async (key, order) => {
      const before = images.get(key) ?? null;
      const after = order && codec.values.encode(order);
      if (after) images.set(key, after);
      else images.delete(key);
      const source = {
        connector: 'cellarstream',
        version: '0',
        name: 'test',
        resource: 'orders',
        ts_ms: null,
        snapshot: 'false',
        db: 'wine',
        table: 'orders',
        sequence: (sequence += 1),
      } as const;
      const op = after === null ? 'd' : before === null ? 'c' : 'u';
      const value = codec.encode({ before, after, op, ts_ms: Date.now(), changed: [], source });
      const event = { key, value: frame(schemaId, value) };
      await topic.send(0, after === null ? [event, { key, value: null }] : [event]);
    },
  };
}
