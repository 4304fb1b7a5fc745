import { describe, expect, it } from 'vitest';
import { orderStatusChangeCodec as codec } from '../../../src/description/wine/order-status.ts';
import type { OrderStatusChange } from '../../../src/description/wine/order-status.ts';

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

describe('orderStatusChangeCodec', () => {
  it('reads what it wrote', () => {
    const other = { ...change, from: 'shipped', to: null, changed_at: -1, subject_id: null };

    expect(codec.decode(codec.encode(change))).toEqual(change);
    expect(codec.decode(codec.encode(other))).toEqual(other);
  });

  it('has the fields of the contract, in its order', () => {
    const { name, namespace, fields } = codec.schema;

    expect(`${namespace}.${name}`).toBe('cellarstream.orders.OrderStatusChange');
    expect(fields.map((field) => field.name)).toEqual(Object.keys(change));
    expect(fields.every(({ doc }) => doc)).toBe(true);
  });

  it('refuses what is not of its types', () => {
    expect(() => codec.encode({ ...change, observed_at: 1.5 })).toThrow();
    expect(() => codec.encode(Object.assign({ ...change }, { to: 7 }))).toThrow();
  });
});
