import { afterEach, describe, expect, it } from 'vitest';
import { RESOURCES, startSandbox } from '../../src/sandbox/index.ts';
import type { JsonObject, JsonValue, Sandbox, SandboxOptions } from '../../src/sandbox/index.ts';
import { connect, handClock } from './client.ts';

const open: Sandbox[] = [];
const clock = handClock();

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ now: clock.now, ...options });
  open.push(sandbox);
  return sandbox;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()));
});

describe('the data', () => {
  it('is byte for byte the same for the same seed, changes included', async () => {
    const bytes = async (seed: number) => {
      const sandbox = await start({ seed, quotaPerMinute: 1_000 });
      sandbox.changeSome(300);
      const { get } = await connect(sandbox);
      return Promise.all(RESOURCES.map(async (resource) => (await get(resource)).text()));
    };
    const first = await bytes(7);
    expect(await bytes(7)).toEqual(first);
    expect(await bytes(8)).not.toEqual(first);
  });

  it('is the same all day: history ends at midnight', async () => {
    const morning = await start({ now: () => Date.parse('2026-03-05T00:00:00.001Z') });
    const evening = await start({ now: () => Date.parse('2026-03-05T23:59:59.999Z') });
    for (const resource of RESOURCES) {
      expect([...morning.truth.records(resource)]).toEqual([...evening.truth.records(resource)]);
    }
  });

  it.each(RESOURCES)('%s: parses, has its key, in order', async (resource) => {
    const sandbox = await start();
    const field = { orders: 'order_number', inventory: 'sku' }[resource as string] ?? 'id';
    const keys = [...sandbox.truth.keys(resource)];
    expect([...sandbox.truth.records(resource)].map((r) => (r as JsonObject)[field])).toEqual(keys);
    expect(new Set(keys).size).toBe(sandbox.truth.count(resource));
    expect(keys).toEqual([...keys].sort((a, b) => (a < b ? -1 : 1)));
    expect([...sandbox.truth.records(resource)].map((r) => JSON.stringify(r))).toEqual(
      keys.map((key) => sandbox.truth.text(resource, key)),
    );
  });

  it.each(['ms', 'second', 'minute', 'day'] as const)(
    'lies within three years before the start, by a clock of one %s',
    async (updatedAtResolution) => {
      const { truth } = await start({ records: { orders: 1_000 }, updatedAtResolution });
      const begin = Date.parse('2023-03-06T00:00:00.000Z');
      const end = Date.parse('2026-03-05T00:00:00.000Z');
      const unit = { ms: 1, second: 1_000, minute: 60_000, day: 86_400_000 }[updatedAtResolution];
      const times = ([...truth.records('orders')] as Record<string, string>[]).map((order) => {
        const created = Date.parse(order.created_at!);
        const updated = Date.parse(order.updated_at!);
        expect(new Date(updated).toISOString()).toBe(order.updated_at);
        expect(updated % unit).toBe(0);
        expect(updated).toBeGreaterThanOrEqual(created);
        expect(updated).toBeLessThan(end);
        expect(created).toBeGreaterThanOrEqual(begin);
        return created;
      });
      expect(times).toEqual([...times].sort((a, b) => a - b));
    },
  );

  it('holds no time after the last change of its order', async () => {
    const { truth } = await start({ records: { orders: 1_000 } });
    for (const order of truth.records('orders') as Iterable<JsonObject>) {
      const stamps = JSON.stringify(order).match(/\d{4}-\d\d-\d\dT[\d:.]+Z/g)!;
      expect(stamps.every((stamp) => stamp <= (order.updated_at as string))).toBe(true);
    }
  });

  it('shows nothing of how it is made', async () => {
    const { truth } = await start({ records: { orders: 1_000 } });
    for (const resource of RESOURCES) {
      for (const key of truth.keys(resource)) {
        expect(truth.text(resource, key)).not.toMatch(/98765432198|"@|"(22|29)\d\d-/);
      }
    }
  });

  it('adds up', async () => {
    const sandbox = await start({ records: { orders: 1_000 } });
    sandbox.changeSome(500);
    for (const order of sandbox.truth.records('orders') as Iterable<JsonObject>) {
      const cents = (value: JsonValue | undefined) => Math.round(Number(value ?? 0) * 100);
      const items = order.order_items as JsonObject[];
      const subtotal = items.reduce((sum, i) => sum + cents(i.price) * Number(i.quantity), 0);
      const total =
        cents(order.subtotal_price) -
        cents(order.total_discounts) +
        cents(order.shipping_price) +
        cents(order.total_tax) +
        cents(order.tip);
      expect(cents(order.subtotal_price)).toBe(subtotal);
      expect(cents(order.total_tax)).toBe(cents(order.sales_tax) + cents(order.crv));
      expect(cents(order.total_price)).toBe(total);
      expect(order.item_count).toBe(items.reduce((sum, i) => sum + Number(i.quantity), 0));
      const discounts = Object.values((order.order_discounts ?? {}) as JsonObject);
      expect(discounts.reduce<number>((sum, d) => sum + cents(d), 0)).toBe(
        cents(order.total_discounts),
      );
      const tenders = order.tender_info as JsonObject[];
      if (tenders.length > 0) {
        expect(tenders.reduce((sum, t) => sum + cents(t.amount), 0)).toBe(total);
      }
    }
  });

  it('has every documented field of an order, of its type, and no other', async () => {
    const { truth } = await start({ records: { orders: 1_000 } });
    const seen = new Set<string>();
    for (const order of truth.records('orders')) note(order, '', seen);
    const found = [...seen].filter(
      (path) => !path.includes('summary.') && !path.endsWith(': null') && !path.includes('[]:'),
    );
    expect(found.filter((path) => !path.endsWith('array')).sort()).toEqual(documentedFields());
    expect(found.filter((path) => path.endsWith('array')).sort()).toEqual(
      ['customer_tags', 'fulfillment_info', 'order_edit', 'order_items', 'tender_info']
        .concat(
          ['tracking_numbers', 'tracking_urls'].map((n) => `fulfillment_info[].tracking.${n}`),
        )
        .map((path) => `${path}: array`)
        .sort(),
    );
  });

  it('is varied: nulls, fields that are absent, empty and long lists, all alphabets', async () => {
    const { truth } = await start({ records: { orders: 1_000 } });
    const orders = [...(truth.records('orders') as Iterable<JsonObject>)];
    const some = (test: (order: JsonObject) => boolean) => expect(orders.some(test)).toBe(true);
    const lengthOf = (value: JsonValue | undefined) => (Array.isArray(value) ? value.length : -1);

    for (const field of [
      'notes',
      'club_package_info',
      'shipping_phone',
      'order_discounts',
      'tip',
    ]) {
      some((order) => order[field] === null);
      some((order) => order[field] !== null && order[field] !== undefined);
    }
    for (const field of ['order_edit', 'club_package_info', 'shipping_first_name']) {
      some((order) => !(field in order));
    }
    for (const field of ['order_edit', 'fulfillment_info', 'tender_info', 'customer_tags']) {
      some((order) => lengthOf(order[field]) === 0);
      some((order) => lengthOf(order[field]) > 1);
    }
    const texts = orders.map((order) => JSON.stringify(order)).join('');
    for (const script of [/[À-ž]/, /[一-龠]/, /[А-я]/, /\\"/, /\\n/, /🎂/])
      expect(texts).toMatch(script);
  });
});

/** What the API's description says of an order, flat. */
function documentedFields(): string[] {
  const address = ['line1', 'line2', 'city', 'state', 'zip_code'].map((part) => `address_${part}`);
  const party = ['first_name', 'last_name', 'birth_date', 'phone', ...address];
  const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    '': {
      number:
        'order_number subtotal_price total_discounts shipping_price sales_tax crv total_tax total_price tip item_count',
      string: `created_at updated_at order_date first_name last_name date_of_birth phone email
        delivery_preference order_type order_subtype payment_status fulfillment_status customer_type
        class notes payment_type ${party.map((name) => `shipping_${name} billing_${name}`).join(' ')}`,
    },
    'order_items[].': {
      string: 'product_name variant_name sku product_type',
      number: 'quantity price',
    },
    'order_discounts.': {
      number: 'auto_discount promocode_discount pos_discount custom_discount',
    },
    'order_edit[].': {
      number: 'order_number custom_refund_amount',
      string: `created_at order_delivery_method order_edit_type status activity notes
        current_operation.newItems current_operation.deletedItems current_operation.updatedItems`,
    },
    'club_package_info.': {
      string: `wine_club_name subscription_package_type package_type package_status
        customer_package_status package_message wine_club_order_status compliance_status
        wine_club_message payment_date open_at closed_at opened_date closed_date`,
      number: 'package_number',
      boolean: 'is_selection_completed',
    },
    'fulfillment_info[].': {
      string: `fulfillment_id fulfillment_number status shipment_status service fulfillment_type
        package_slip created_at updated_at history_created_at tracking.company_name
        tracking.tracking_number tracking.tracking_url`,
      number: 'shipping_price',
      boolean: 'notify_customer',
    },
    'tender_info[].': {
      string: `payment_type status card_type card_brand last_four created_at card_expiry.month
        card_expiry.year`,
      number: 'amount',
    },
  };
  return Object.entries(fields)
    .flatMap(([part, types]) =>
      Object.entries(types).flatMap(([type, names]) =>
        names.split(/\s+/).map((name) => `${part}${name}: ${type}`),
      ),
    )
    .sort();
}

/** Every path of a value with its type. */
function note(value: JsonValue, path: string, seen: Set<string>): void {
  if (Array.isArray(value)) {
    seen.add(`${path}: array`);
    for (const element of value) note(element, `${path}[]`, seen);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      note(inner, path === '' ? name : `${path}.${name}`, seen);
    }
  } else {
    seen.add(`${path}: ${value === null ? 'null' : typeof value}`);
  }
}
