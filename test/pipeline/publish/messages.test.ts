import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deadLetterCodec } from '../../../src/schemas/events/dead-letter.ts';
import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import { orderStatusChangeCodec } from '../../../src/schemas/events/order-status-change.ts';
import { orderSchema } from '../../../src/resources/orders/order.ts';
import { unframe } from '../../../src/schemas/registry/wire.ts';
import {
  changeMessages,
  deadLetterMessages,
  statusMessage,
} from '../../../src/pipeline/publish/messages.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import type { StatusChange } from '../../../src/resources/orders/order-status.ts';
import type { RejectedJson } from '../../../src/streams/records/records.ts';

const codec = createEnvelopeCodec(orderSchema, 'orders');
const origin = { account: 'estate', resource: 'orders', version: '1.2.3' };
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
      { key: '100234', number: 100_234, sequence: 42, ...of },
      { to, origin: { ...origin, account }, now: 1_700_000_000_500 },
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
      expect(decoded(message({}, { number }).value).order_number).toBeNull();
    },
  );
});

describe('deadLetterMessages', () => {
  const letters = (raw: string) =>
    deadLetterMessages(
      { reason: 'too-large', raw, key: 'k' },
      { to, resource: 'orders', offset: 90, maxBytes: 800_000, now: 9 },
    ).map(({ key, value }) => ({ key, ...deadLetterCodec.decode(unframe(value!).payload) }));

  it('is one message with the JSON as it came', () => {
    expect(letters('é')).toEqual([
      expect.objectContaining({
        key: 'k',
        reason: 'too-large',
        raw: '"é"',
        offset: 90,
        parts: null,
      }),
    ]);
  });

  it('is the text of what is no JSON, as it came, with its own place in the list', () => {
    const [message] = deadLetterMessages(
      { reason: 'unreadable', raw: '{"id":NaN}', key: null, offset: 97 },
      { to, resource: 'orders', offset: 90, maxBytes: 800_000, now: 9 },
    );
    expect(deadLetterCodec.decode(unframe(message!.value!).payload)).toMatchObject({
      reason: 'unreadable',
      raw: '{"id":NaN}',
      offset: 97,
      message: expect.stringContaining('not JSON') as unknown,
    });
  });

  it('says why in words, for every reason, and has the key where there is one', () => {
    const letter = (reason: RejectedJson['reason'], key: string | null) => {
      const messages = deadLetterMessages(
        { reason, raw: {}, key },
        { to, resource: 'orders', offset: 90, maxBytes: 800_000, now: 9 },
      );
      return {
        key: messages[0]!.key,
        ...deadLetterCodec.decode(unframe(messages[0]!.value!).payload),
      };
    };
    const said = [
      letter('not-an-object', null),
      letter('no-key', null),
      letter('conflicting-duplicate', '100234'),
      letter('too-large', '100234'),
    ];
    expect(said.map(({ key, reason, message }) => [key, reason, message])).toEqual([
      [null, 'not-an-object', expect.stringContaining('not an object')],
      [null, 'no-key', expect.stringContaining('no usable key')],
      ['100234', 'conflicting-duplicate', expect.stringContaining('same page')],
      ['100234', 'too-large', expect.stringContaining('larger than a message')],
    ]);
  });

  it('is numbered parts of a text that is too long, each of which a message holds', () => {
    const raw = `${'🍷 wine, '.repeat(80_000)}\n`;
    const parts = letters(raw);
    const text = parts.map((part) => part.raw).join('');
    expect(JSON.parse(text)).toBe(raw);
    expect(parts.map(({ part }) => part)).toEqual(parts.map((_, place) => place + 1));
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      expect(Buffer.byteLength(part.raw)).toBeLessThan(900_000);
      expect(part).toMatchObject({
        parts: parts.length,
        length: Buffer.byteLength(text),
        sha256: createHash('sha256').update(text).digest('hex'),
      });
    }
  });
});
