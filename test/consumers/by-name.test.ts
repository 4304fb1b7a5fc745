import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Consumed } from '../../src/consumers/consumed.ts';
import { replay } from '../../src/consumers/replay.ts';
import { subscribeGroup } from '../../src/consumers/subscribe-group.ts';
import { topicOf } from '../../src/consumers/topic.ts';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import type { DeadLetter } from '../../src/schemas/events/own-records.ts';
import { createEnvelopeCodec } from '../../src/schemas/events/envelope.ts';
import { orderSchema } from '../../src/description/wine/order.ts';
import { fakeRegistry, kafkaWith } from '../support/json-topic.ts';

const LETTER: DeadLetter = {
  ...{ resource: 'items', reason: 'no-key', message: 'the record has no usable key', raw: '{}' },
  ...{ offset: 0, observed_at: 1, sha256: null, length: null, part: null, parts: null },
};

it('a group takes a topic by its name, as a replay does: it was not another topic than undefined', async () => {
  const { kafka } = await kafkaWith('shop.others');
  const elsewhere = { kafka, registry: fakeRegistry };
  const topic = 'shop.items';
  const none = { code: 'POSITION', message: expect.stringContaining('no topic shop.items') };
  const handled = subscribeGroup({ ...elsewhere, topic, groupId: 'g' }, () => undefined);
  await expect(lastValueFrom(handled)).rejects.toMatchObject(none);
  await expect(lastValueFrom(replay({ ...elsewhere, topic }))).rejects.toMatchObject(none);
});

it('a group writes its dead letters to another topic than its own, by its name too', async () => {
  const { kafka } = await kafkaWith('shop.others');
  const options = {
    kafka,
    registry: fakeRegistry,
    topic: 'shop.items',
    groupId: 'g',
    deadLetters: 'shop.items',
  };
  expect(() => subscribeGroup(options, (event: Consumed<object>) => void event)).toThrow(
    'deadLetters must be another topic than shop.items itself',
  );
});

describe('a topic by its name', () => {
  it('has dead letters, where it has their name', () => {
    const read = topicOf('shop.dead-letters').values(deadLetterCodec.schema);
    expect(read(deadLetterCodec.encode(LETTER))).toEqual(LETTER);
  });

  it('has the events of a resource that this version has not heard of', () => {
    const codec = createEnvelopeCodec(orderSchema, 'gift-cards');
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
    const read = topicOf('shop.gift-cards').values(codec.schema);
    expect(read(codec.encode(event))).toMatchObject({ op: 'c', after: { order_number: 7 } });
  });

  it('has what its schemas say, where a consumer has put events into dead letters of its own', () => {
    const { schema } = createEnvelopeCodec(orderSchema, 'orders');
    expect(() => topicOf('shipping.dead-letters').values(schema)).not.toThrow();
  });

  it('has nothing that can be read where its schema is no envelope', () => {
    expect(() => topicOf('shop.notes').values(orderSchema)).toThrow(
      "isn't a schema of change events",
    );
  });
});
