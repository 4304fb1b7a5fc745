import { describe, expect, it } from 'vitest';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { envelopeSchema, sharedCodecs } from '../../../src/schemas/events/envelope.ts';

describe('sharedCodecs', () => {
  const schema = (resource: string) => structuredClone(envelopeSchema(orderSchema, resource));

  it('compiles equal schemas once, and others apart', () => {
    const compile = sharedCodecs();
    expect(compile(schema('orders'))).toBe(compile(schema('orders')));
    expect(compile(schema('customers'))).not.toBe(compile(schema('orders')));
  });

  it('remembers the newest hundred, and two hundred at most', () => {
    const compile = sharedCodecs();
    const first = compile(schema('list-0'));
    for (let n = 1; n < 100; n++) compile(schema(`list-${n}`));
    expect(compile(schema('list-0'))).toBe(first);
    for (let n = 100; n < 200; n++) compile(schema(`list-${n}`));
    expect(compile(schema('list-0'))).not.toBe(first);
  });
});
