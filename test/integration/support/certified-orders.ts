import type { Op } from '../../../src/schemas/events/envelope.ts';
import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import type { Certificate } from '../../../src/schemas/events/certificate.ts';
import { KeyTally } from '../../../src/schemas/events/key-tally.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { valueSubject } from '../../../src/schemas/events/topics.ts';
import { frame } from '../../../src/schemas/registry/wire.ts';
import { topicBounds } from '../../../src/kafka/client/topic-facts.ts';
import { certificateOf } from '../../support/certificate.ts';
import { writtenTopic } from './written-topic.ts';
import type { Clients } from './written-topic.ts';

export { clientsForTest } from './written-topic.ts';

/** Orders that a test publishes by itself, with certificates as the service writes them. */
export interface CertifiedOrders {
  readonly topic: string;
  readonly certificates: string;
  /** Of the live orders: key to sequence. */
  readonly live: ReadonlyMap<string, number>;
  /** An event of each of these orders, in one transaction; even numbers are in partition 0. */
  write(...numbers: readonly number[]): Promise<void>;
  delete(number: number): Promise<void>;
  /** Publishes a certificate of what is there now. */
  certify(more?: Partial<Certificate>): Promise<Certificate>;
}

const PARTITIONS = 2;
/** Without it all of a topic could be compacted at once. */
const HISTORY = { 'cleanup.policy': 'compact', 'min.compaction.lag.ms': '2592000000' };

export async function certifiedOrders(
  clients: Clients,
  prefix: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<CertifiedOrders> {
  const name = `${prefix}.orders`;
  const codec = createEnvelopeCodec(orderSchema, 'orders');
  const all = { ...HISTORY, ...settings };
  const topic = await writtenTopic(clients, name, PARTITIONS, all, codec.schema);
  const schemaId = await clients.registry.register(valueSubject(name), codec.schema);
  const certificates = await writtenTopic(clients, `${prefix}.certificates`, 1);
  const live = new Map<string, number>();
  let [sequence, number] = [0, 0];

  const event = (order: number, op: Op) => {
    const image = codec.values.encode({ order_number: order });
    const value = codec.encode({
      before: op === 'c' ? null : image,
      after: op === 'd' ? null : image,
      op,
      ts_ms: Date.now(),
      changed: [],
      source: {
        connector: 'cellarstream',
        version: '0',
        name: 'default',
        resource: 'orders',
        ts_ms: null,
        snapshot: 'false',
        db: 'wine',
        table: 'orders',
        sequence: (sequence += 1),
      },
    });
    if (op === 'd') live.delete(String(order));
    else live.set(String(order), sequence);
    return { key: String(order), value: frame(schemaId, value) };
  };
  const partitionOf = (order: number) => order % PARTITIONS;
  return {
    topic: name,
    certificates: certificates.name,
    live,
    write: async (...orders) => {
      for (const partition of [0, 1]) {
        const here = orders.filter((order) => partitionOf(order) === partition);
        if (here.length === 0) continue;
        await topic.send(
          partition,
          here.map((order) => event(order, live.has(String(order)) ? 'u' : 'c')),
        );
      }
    },
    delete: (order) =>
      topic.send(partitionOf(order), [event(order, 'd'), { key: String(order), value: null }]),
    certify: async (more) => {
      const bounds = await topicBounds({ kafka: clients.kafka }, name);
      const partitions = [...bounds].map(([partition, { high }]) => {
        const tally = new KeyTally();
        for (const [key, of] of live)
          if (partitionOf(Number(key)) === partition) tally.add(key, of);
        return [partition, { position: Number(high), ...tally.toJSON() }] as const;
      });
      const certificate = certificateOf(Object.fromEntries(partitions), {
        ...{ number: (number += 1), sequence },
        ...more,
      });
      const value = Buffer.from(JSON.stringify(certificate));
      const key = `${certificate.account}/${certificate.resource}`;
      await certificates.send(0, [{ key, value }]);
      return certificate;
    },
  };
}
