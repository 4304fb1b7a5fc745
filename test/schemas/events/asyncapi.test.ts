import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import type { AnySchemaObject } from 'ajv';
import { expect, it } from 'vitest';
import { RESOURCES } from '../../../src/sandbox/resources.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { asyncApiDocument } from '../../../src/schemas/events/asyncapi.ts';
import { envelopeSchema } from '../../../src/schemas/events/envelope.ts';
import { recordKeySchema } from '../../../src/schemas/events/record-key.ts';
import { DESK } from '../../support/desk.ts';
import { WINE } from '../../../src/description/wine/wine.ts';

const file = import.meta.resolve('@asyncapi/specs/schemas/3.0.0-without-$id.json');
const schema = JSON.parse(readFileSync(new URL(file), 'utf8')) as AnySchemaObject;
const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);

const options = {
  prefix: 'wine',
  lists: WINE.lists,
  version: '0.1.0',
  brokers: ['one:9092', 'two:9092'],
  isTls: false,
  registryUrl: 'http://registry:8081',
};
const orders = {
  key: recordKeySchema('orders', ['order_number']),
  value: envelopeSchema(orderSchema, 'orders'),
};
const none = { key: undefined, value: undefined };

it('is valid, with a channel for each topic of events', () => {
  const schemasOf = (topic: string) => (topic === 'wine.orders' ? orders : none);
  const document = asyncApiDocument({ ...options, schemasOf });
  expect(isValid(document) || isValid.errors).toBe(true);
  expect(document).toMatchObject({
    servers: { 'kafka-1': { host: 'two:9092', protocol: 'kafka' } },
    channels: {
      orders: {
        address: 'wine.orders',
        messages: {
          event: {
            payload: { schema: orders.value },
            bindings: { kafka: { key: { schema: orders.key } } },
          },
          tombstone: {},
        },
        bindings: { kafka: { topicConfiguration: { 'cleanup.policy': ['compact'] } } },
      },
      'order-status-changes': { messages: { event: { name: 'OrderStatusChange' } } },
    },
  });
  const { channels } = document as { channels: Record<string, { messages: { event: object } }> };
  expect(Object.keys(channels).sort()).toEqual(
    [...RESOURCES, 'order-status-changes', 'dead-letters'].sort(),
  );
  expect(channels.products!.messages.event).not.toHaveProperty('payload');
});

it('has a channel for the status changes of each list that has statuses', () => {
  const document = asyncApiDocument({
    ...options,
    prefix: 'desk',
    lists: DESK.lists,
    schemasOf: () => none,
  });
  expect(isValid(document) || isValid.errors).toBe(true);
  const typed = (name: string) => ({
    messages: {
      event: { name, headers: { properties: { ce_type: { const: `cellarstream.${name}` } } } },
    },
  });
  expect(document).toMatchObject({
    channels: {
      'tickets-status-changes': typed('StatusChange'),
      'machine-states': typed('MachineState'),
    },
  });
});

it('has no status changes without orders, and says that TLS is used', () => {
  const document = asyncApiDocument({
    ...options,
    lists: [{ name: 'products', statuses: undefined }],
    isTls: true,
    schemasOf: () => none,
  });
  expect(isValid(document) || isValid.errors).toBe(true);
  expect(document).toMatchObject({ servers: { 'kafka-0': { protocol: 'kafka-secure' } } });
  expect(document).not.toHaveProperty('channels.order-status-changes');
});
