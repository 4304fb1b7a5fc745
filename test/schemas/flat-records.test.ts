import { describe, expect, it } from 'vitest';
import { deadLetterCodec } from '../../src/schemas/dead-letter.ts';
import type { DeadLetter } from '../../src/schemas/dead-letter.ts';
import { orderStatusChangeCodec } from '../../src/schemas/order-status-change.ts';
import type { OrderStatusChange } from '../../src/schemas/order-status-change.ts';

const change: OrderStatusChange = {
  event_id: '5f0c',
  order_number: 100_234,
  subject: 'fulfillment',
  subject_id: 'F-12',
  field: 'shipment_status',
  from: null,
  to: 'delivered',
  changed_at: null,
  observed_at: 1_714_564_800_000,
};

const letter: DeadLetter = {
  resource: 'orders',
  reason: 'no-key',
  message: 'the record has no order_number',
  raw: '{"a":1}',
  offset: 2_000,
  observed_at: 1_714_564_800_000,
  sha256: null,
  length: null,
  part: null,
  parts: null,
};

describe('orderStatusChangeCodec', () => {
  const codec = orderStatusChangeCodec;
  const { schema } = codec;

  it('reads what it wrote', () => {
    const full = { ...change, from: 'shipped', changed_at: -1, subject_id: null };
    expect(codec.decode(codec.encode(change))).toEqual(change);
    expect(codec.decode(codec.encode(full))).toEqual(full);
  });

  it('has the fields of the contract, in its order', () => {
    expect(`${schema.namespace}.${schema.name}`).toBe('cellarstream.orders.OrderStatusChange');
    expect(schema.fields.map(({ name }) => name)).toEqual(Object.keys(change));
    expect(schema.fields.every(({ doc }) => doc)).toBe(true);
  });

  it('refuses what is not of its types', () => {
    expect(() => codec.encode({ ...change, observed_at: 1.5 })).toThrow();
    expect(() => codec.encode({ ...change, to: 7 as unknown as string })).toThrow();
  });
});

describe('deadLetterCodec', () => {
  const codec = deadLetterCodec;
  const { schema } = codec;

  it('reads what it wrote', () => {
    const part = { ...letter, offset: null, sha256: 'ab', length: 2 ** 40, part: 1, parts: 3 };
    expect(codec.decode(codec.encode(letter))).toEqual(letter);
    expect(codec.decode(codec.encode(part))).toEqual(part);
  });

  it('has the fields of the contract, in its order', () => {
    expect(`${schema.namespace}.${schema.name}`).toBe('cellarstream.DeadLetter');
    expect(schema.fields.map(({ name }) => name)).toEqual(Object.keys(letter));
    expect(schema.fields.every(({ doc }) => doc)).toBe(true);
  });
});
