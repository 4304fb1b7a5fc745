import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject, JsonNumber } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { Change, Operation } from '../../../src/streams/diff/change.ts';
import { orderStatus } from '../../../src/exports/order-status.ts';
import { STATUS_FIELDS } from '../../../src/description/wine/order-status.ts';
import { statusChanges } from '../../../src/streams/diff/status-changes.ts';
import type { StatusChange } from '../../../src/streams/diff/status-changes.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { scaled } from '../../support/scale.ts';
import { ORDERS } from '../../support/orders.ts';

function change(op: Operation, before: JsonObject | null, after: JsonObject | null): Change {
  const images = { before: null, after: null };
  return { key: '1', op, before, after, images, changed: [], updatedAt: null };
}
const updated = (before: JsonObject, after: JsonObject) =>
  statusChanges(change('u', before, after), ORDERS);

/** `fulfillment F-1 status: open > sent`, with dashes for null. */
const inShort = ({ subject, subjectId, field, from, to }: StatusChange) =>
  `${subject} ${subjectId ?? '-'} ${field}: ${from ?? '-'} > ${to ?? '-'}`;

const FULL: JsonObject = {
  payment_status: 'paid',
  fulfillment_status: 'open',
  order_edit: [{ created_at: '2026-03-01T00:00:00Z', status: 'done' }],
  fulfillment_info: [
    { fulfillment_id: 'F-1', status: 'open', shipment_status: 'packed' },
    { fulfillment_id: 'F-2', status: 'sent', shipment_status: null },
  ],
  club_package_info: {
    package_status: 'open',
    customer_package_status: 'chosen',
    wine_club_order_status: 'waiting',
    compliance_status: 'fine',
  },
};

describe('statusChanges', () => {
  it('knows nine fields', () => {
    expect(Object.values(STATUS_FIELDS).flat()).toHaveLength(9);
  });

  it('gives one for each field of a created order that is set, from null', () => {
    expect(statusChanges(change('c', null, FULL), ORDERS).map(inShort)).toEqual([
      'order - payment_status: - > paid',
      'order - fulfillment_status: - > open',
      'order_edit 2026-03-01T00:00:00Z status: - > done',
      'fulfillment F-1 status: - > open',
      'fulfillment F-1 shipment_status: - > packed',
      'fulfillment F-2 status: - > sent',
      'club_package - package_status: - > open',
      'club_package - customer_package_status: - > chosen',
      'club_package - wine_club_order_status: - > waiting',
      'club_package - compliance_status: - > fine',
    ]);
  });

  it('gives none for an initial snapshot and for a deletion', () => {
    expect(statusChanges(change('r', null, FULL), ORDERS)).toEqual([]);
    expect(statusChanges(change('d', FULL, null), ORDERS)).toEqual([]);
  });

  it('gives one for each field that differs', () => {
    const [edit] = FULL.order_edit as JsonObject[];
    const [first, second] = FULL.fulfillment_info as JsonObject[];
    const club = FULL.club_package_info as JsonObject;
    const after = {
      ...FULL,
      payment_status: 'refunded',
      order_edit: [{ ...edit, status: 'void' }],
      fulfillment_info: [{ ...first, shipment_status: 'sent' }, second!],
      club_package_info: { ...club, compliance_status: null, notes: 'x' },
      total_price: 7,
    };
    expect(updated(FULL, after).map(inShort)).toEqual([
      'order - payment_status: paid > refunded',
      'order_edit 2026-03-01T00:00:00Z status: done > void',
      'fulfillment F-1 shipment_status: packed > sent',
      'club_package - compliance_status: fine > -',
    ]);
  });

  it('gives none where nothing but other fields differs', () => {
    expect(updated(FULL, { ...FULL, notes: 'x', updated_at: '2026-03-05T00:00:00Z' })).toEqual([]);
    expect(updated({ payment_status: null }, {})).toEqual([]);
  });

  it('goes to null for an element that is no object any more', () => {
    const before = { fulfillment_info: [{ status: 'open' }], updated_at: '2026-03-05T00:00:00Z' };
    expect(updated(before, { ...before, fulfillment_info: [null] })).toMatchObject([
      { subjectId: '#1', from: 'open', to: null, changedAt: Date.UTC(2026, 2, 5) },
    ]);
  });

  it('gives none for arrays in another order', () => {
    const order_edit = [
      { created_at: 'a', status: 'x' },
      { created_at: 'b', status: 'y' },
    ];
    const before = { ...FULL, order_edit };
    const after = {
      ...FULL,
      order_edit: [...order_edit].reverse(),
      fulfillment_info: [...(FULL.fulfillment_info as JsonValue[])].reverse(),
    };
    expect(updated(before, after)).toEqual([]);
  });

  it('comes from null for a new subject, and goes to null for one that has vanished', () => {
    const [first, second] = FULL.fulfillment_info as JsonObject[];
    const before = { fulfillment_info: [first!] };
    const after = { fulfillment_info: [second!], club_package_info: { package_status: 'open' } };
    expect(updated(before, after).map(inShort)).toEqual([
      'fulfillment F-2 status: - > sent',
      'club_package - package_status: - > open',
      'fulfillment F-1 status: open > -',
      'fulfillment F-1 shipment_status: packed > -',
    ]);
    expect(updated(FULL, {}).map(({ to }) => to)).toEqual(Array(10).fill(null));
  });

  it('tells edits of one time apart by their count', () => {
    const edits = (...states: string[]) => ({
      order_edit: states.map((status) => ({ created_at: 't', status })),
    });
    expect(updated(edits('a', 'b'), edits('a', 'c', 'd')).map(inShort)).toEqual([
      'order_edit t#2 status: b > c',
      'order_edit t#3 status: - > d',
    ]);
  });

  it.each<[JsonValue, string | null]>([
    [7, '7'],
    [true, 'true'],
    [{ code: 'x', n: [1] }, '{"code":"x","n":[1]}'],
    [[], '[]'],
    ['', ''],
    [new JsonNumber('12345678901234567890'), '12345678901234567890'],
    [null, null],
  ])('gives a status that is no text as its JSON: %s', (value, text) => {
    const [found] = updated({ payment_status: 'paid' }, { payment_status: value });
    expect(found).toMatchObject({ from: 'paid', to: text });
  });

  it.each<[string, JsonObject]>([
    ['null', { order_edit: null, fulfillment_info: null, club_package_info: null }],
    ['texts', { order_edit: 'x', fulfillment_info: 'x', club_package_info: 'x' }],
    ['numbers', { order_edit: [7], fulfillment_info: [null], club_package_info: 7 }],
    ['empty', { order_edit: [], fulfillment_info: [{}], club_package_info: {} }],
  ])('finds no status where subjects are %s', (_, after) => {
    expect(updated({}, after)).toEqual([]);
    expect(updated(after, {})).toEqual([]);
  });

  it('takes no inherited property for a status', () => {
    expect(updated({}, Object.create({ payment_status: 'x' }) as JsonObject)).toEqual([]);
  });

  describe('changedAt', () => {
    const order = Date.UTC(2026, 2, 5, 12);
    const own = Date.UTC(2026, 2, 5, 11);
    const made = Date.UTC(2026, 2, 5, 10);
    const iso = (ms: number) => new Date(ms).toISOString();
    const timeOf = (before: JsonObject, after: JsonObject) => {
      const [found, ...others] = updated(before, { ...after, updated_at: iso(order) });
      expect(others).toEqual([]);
      return found!.changedAt;
    };
    const fulfilment = (fields: JsonObject): JsonObject => ({
      fulfillment_info: [{ fulfillment_id: 'F-1', ...fields }],
    });
    const edit = (status: string): JsonObject => ({
      order_edit: [{ created_at: iso(made), status }],
    });

    it('is when the order was updated, for its own fields and its package', () => {
      expect(timeOf({}, { payment_status: 'paid' })).toBe(order);
      expect(timeOf({}, { club_package_info: { package_status: 'open' } })).toBe(order);
    });

    it('is when a fulfilment was updated, or else the order', () => {
      const after = fulfilment({ status: 'sent', updated_at: iso(own) });
      expect(timeOf(fulfilment({ status: 'open' }), after)).toBe(own);
      expect(timeOf({}, after)).toBe(own);
      expect(timeOf({}, fulfilment({ status: 'sent' }))).toBe(order);
      expect(timeOf(after, {})).toBe(order); // it vanished: it can't tell when
    });

    it('is when an edit was made, if it is new, else when the order was updated', () => {
      expect(timeOf({}, edit('open'))).toBe(made);
      expect(timeOf(edit('open'), edit('done'))).toBe(order);
    });

    it('is when the order was updated, even for an order that has just been made', () => {
      const after = { payment_status: 'paid', created_at: iso(made), updated_at: iso(order) };
      const [found] = statusChanges(change('c', null, after), ORDERS);
      expect(found!.changedAt).toBe(order);
    });

    it('is null when nobody tells', () => {
      expect(updated({}, { payment_status: 'paid' })[0]!.changedAt).toBeNull();
    });
  });

  it('turns the statuses before into the statuses after', () => {
    const status = fc.constantFrom<JsonValue>('open', 'sent', 'done', null, 7);
    const some = (model: Record<string, fc.Arbitrary<JsonValue>>) =>
      fc.record(model, { requiredKeys: [], noNullPrototype: true }) as fc.Arbitrary<JsonObject>;
    const named = (field: string, model: Record<string, fc.Arbitrary<JsonValue>>) =>
      fc.array(
        fc
          .tuple(fc.constantFrom('A', 'B', 'C', 'D'), some(model))
          .map(([id, fields]): JsonObject => ({ ...fields, [field]: id })),
        { maxLength: 5 },
      );
    const order: fc.Arbitrary<JsonObject> = some({
      payment_status: status,
      fulfillment_status: status,
      notes: status,
      order_edit: named('created_at', { status }),
      fulfillment_info: named('fulfillment_id', { status, shipment_status: status }),
      club_package_info: fc.option(
        some(Object.fromEntries(STATUS_FIELDS.club_package.map((field) => [field, status]))),
      ),
    });
    fc.assert(
      fc.property(order, order, (before, after) => {
        const statuses = statusesOf(before);
        for (const { subject, subjectId, field, from, to } of updated(before, after)) {
          const name = `${subject}/${subjectId ?? ''}/${field}`;
          expect(statuses.get(name) ?? null).toBe(from);
          expect(from).not.toBe(to);
          if (to === null) statuses.delete(name);
          else statuses.set(name, to);
        }
        expect([...statuses].sort()).toEqual([...statusesOf(after)].sort());
        expect(updated(after, after)).toEqual([]);
      }),
      { numRuns: scaled(250, 1_000) },
    );
  });
});

describe('orderStatus', () => {
  it('maps each change to its status changes', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const a = change('c', null, { payment_status: 'paid' });
      const b = change('r', null, { payment_status: 'paid' });
      const source = cold(' a-b-|', { a, b });
      const subs = '        ^---!';
      const expected = '    x-y-|';

      const values = { x: statusChanges(a, ORDERS), y: [] };
      expectObservable(source.pipe(orderStatus())).toBe(expected, values);
      expectSubscriptions(source.subscriptions).toBe(subs);
      expectObservable(cold<Change>('-').pipe(orderStatus())).toBe('-');
      expectObservable(cold<Change>('--#').pipe(orderStatus())).toBe('--#');
    });
  });
});

/** The statuses that are set, by subject, identity and field; worked out without the code at hand. */
function statusesOf(order: JsonObject): Map<string, string> {
  const found = new Map<string, string>();
  const add = (prefix: string, fields: readonly string[], from: JsonValue | undefined) => {
    if (!isJsonObject(from)) return;
    for (const field of fields) {
      const value = from[field] as string | number | null | undefined;
      if (value !== null && value !== undefined) found.set(`${prefix}/${field}`, String(value));
    }
  };
  const addAll = (subject: string, array: string, id: string, fields: readonly string[]) => {
    const met: string[] = [];
    for (const element of (order[array] ?? []) as JsonObject[]) {
      const name = element[id] as string;
      met.push(name);
      const count = met.filter((other) => other === name).length;
      add(`${subject}/${name}${count > 1 ? `#${count}` : ''}`, fields, element);
    }
  };
  add('order/', ['payment_status', 'fulfillment_status'], order);
  addAll('order_edit', 'order_edit', 'created_at', ['status']);
  addAll('fulfillment', 'fulfillment_info', 'fulfillment_id', ['status', 'shipment_status']);
  const club = [
    'package_status',
    'customer_package_status',
    'wine_club_order_status',
    'compliance_status',
  ];
  add('club_package/', club, order.club_package_info);
  return found;
}
