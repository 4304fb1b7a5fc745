import { describe, expect, it } from 'vitest';
import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import { orderStatusChangeCodec } from '../../../src/description/wine/order-status.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { unframe } from '../../../src/schemas/registry/wire.ts';
import { changeMessages, statusMessage } from '../../../src/pipeline/publish/messages.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import type { StatusChange } from '../../../src/streams/diff/status-changes.ts';
import { ORDERS } from '../../support/orders.ts';

const codec = createEnvelopeCodec(orderSchema, 'orders');
const origin = { account: 'estate', resource: 'orders', prefix: 'wine', version: '1.2.3' };
const to = { topic: 'wine.orders', schemaId: 7 };
const order = { order_number: 100_234, notes: 'ring twice' };
const image = codec.values.encode(order);

const change = (op: Change['op'], before: boolean, after: boolean): Change => ({
  key: '100234',
  op,
  before: before ? order : null,
  after: after ? order : null,
  images: { before: before ? image : null, after: after ? image : null },
  changed: op === 'u' ? ['notes'] : [],
  updatedAt: 5,
});

describe('changeMessages', () => {
  const messages = (what: Change) => changeMessages(what, 42, { to, codec, origin, now: 9 });
  const decoded = (value: Buffer | null) => codec.decode(unframe(value!).payload);

  it('is the envelope of the contract, under the key of the record', () => {
    const [message, ...more] = messages(change('u', true, true));
    expect(more).toEqual([]);
    expect(message).toMatchObject({ topic: 'wine.orders', key: '100234' });
    expect(unframe(message!.value!).schemaId).toBe(7);
    expect(decoded(message!.value)).toEqual({
      before: order,
      after: order,
      op: 'u',
      ts_ms: 9,
      changed: ['notes'],
      source: {
        connector: 'cellarstream',
        version: '1.2.3',
        name: 'estate',
        resource: 'orders',
        ts_ms: 5,
        snapshot: 'false',
        sequence: 42,
        db: 'wine',
        table: 'orders',
      },
    });
  });

  it('says of an r that repeats what was published that it is no snapshot', () => {
    const [message] = messages(change('r', true, true));
    const { before, after, source } = decoded(message!.value);
    expect(source.snapshot).toBe('false');
    expect(before).toEqual(after);
  });

  it.each([
    ['r', 'true'],
    ['c', 'false'],
  ] as const)('says of %s: snapshot %s', (op, snapshot) => {
    expect(decoded(messages(change(op, false, true))[0]!.value).source.snapshot).toBe(snapshot);
  });

  it('has a tombstone after a deletion, under the same key', () => {
    const [event, tombstone] = messages(change('d', true, false));
    expect(decoded(event!.value)).toMatchObject({ before: order, after: null, op: 'd' });
    expect(tombstone).toEqual({ topic: 'wine.orders', key: '100234', value: null });
  });
});

describe('statusMessage', () => {
  const status: StatusChange = {
    subject: 'fulfillment',
    subjectId: 'F-1',
    field: 'status',
    from: null,
    to: 'open',
    changedAt: 1_700_000_000_000,
  };
  const message = (what: Partial<StatusChange> = {}, of: object = {}, account = 'estate') =>
    statusMessage(
      { ...status, ...what },
      { key: '100234', image: order, sequence: 42, ...of },
      {
        to: { ...to, schema: ORDERS.statuses!.schema },
        origin: { ...origin, account },
        now: 1_700_000_000_500,
      },
    );
  const decoded = (value: Buffer | null) => orderStatusChangeCodec.decode(unframe(value!).payload);

  it('is a CloudEvent in binary mode under the order number', () => {
    const { key, headers, value } = message();
    const event = decoded(value);
    expect(key).toBe('100234');
    expect(headers).toMatchObject({
      ce_id: event.event_id,
      ce_type: expect.stringMatching(/./),
      ce_source: '/cellarstream/estate/orders',
      ce_specversion: '1.0',
      ce_time: new Date(1_700_000_000_000).toISOString(),
    });
    expect(event).toMatchObject({
      order_number: 100_234,
      subject: 'fulfillment',
      subject_id: 'F-1',
      field: 'status',
      from: null,
      to: 'open',
      changed_at: 1_700_000_000_000,
      observed_at: 1_700_000_000_500,
    });
  });

  it('has an id that is the same for the same event, and for no other', () => {
    const id = (...args: Parameters<typeof message>) => decoded(message(...args).value).event_id;
    const others = [
      id({ subject: 'order_edit' }),
      id({ subjectId: 'F-2' }),
      id({ subjectId: null }),
      id({ field: 'shipment_status' }),
      id({}, { key: '100235' }),
      id({}, { sequence: 43 }),
      id({}, {}, 'other'),
    ];
    expect(id()).toBe(id());
    expect(new Set([id(), ...others]).size).toBe(others.length + 1);
  });

  it.each([[2 ** 53 - 1], [-(2 ** 52) - 1], ['100234'], [null], [undefined], [1.5]])(
    'has no order_number where the order has %s for it',
    (number) => {
      expect(
        decoded(message({}, { image: { order_number: number } }).value).order_number,
      ).toBeNull();
    },
  );
});
