import { describe, expect, it } from 'vitest';
import type { AvroType, FieldSchema, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';

/** The fields of an order, by type, as the API's description lists them. */
const DESCRIBED = `
integer: order_number item_count order_items[].quantity order_edit[].order_number
  club_package_info.package_number
timestamp: created_at updated_at order_date order_edit[].created_at club_package_info.payment_date
  club_package_info.open_at club_package_info.closed_at club_package_info.opened_date
  club_package_info.closed_date fulfillment_info[].created_at fulfillment_info[].updated_at
  fulfillment_info[].history_created_at tender_info[].created_at
date: date_of_birth shipping_birth_date billing_birth_date
number: subtotal_price total_discounts shipping_price sales_tax crv total_tax total_price tip
  order_items[].price order_discounts.auto_discount order_discounts.promocode_discount
  order_discounts.pos_discount order_discounts.custom_discount order_edit[].custom_refund_amount
  fulfillment_info[].shipping_price tender_info[].amount
boolean: club_package_info.is_selection_completed fulfillment_info[].notify_customer
json: order_edit[].summary
string: first_name last_name phone email delivery_preference order_type order_subtype payment_status
  fulfillment_status shipping_first_name shipping_last_name shipping_phone shipping_address_line1
  shipping_address_line2 shipping_address_city shipping_address_state shipping_address_zip_code
  billing_first_name billing_last_name billing_phone billing_address_line1 billing_address_line2
  billing_address_city billing_address_state billing_address_zip_code customer_type customer_tags[]
  class notes payment_type order_items[].product_name order_items[].variant_name order_items[].sku
  order_items[].product_type order_edit[].current_operation.newItems
  order_edit[].current_operation.deletedItems order_edit[].current_operation.updatedItems
  order_edit[].order_delivery_method order_edit[].order_edit_type order_edit[].status
  order_edit[].activity order_edit[].notes club_package_info.wine_club_name
  club_package_info.subscription_package_type club_package_info.package_type
  club_package_info.package_status club_package_info.customer_package_status
  club_package_info.package_message club_package_info.wine_club_order_status
  club_package_info.compliance_status club_package_info.wine_club_message
  fulfillment_info[].fulfillment_id fulfillment_info[].fulfillment_number fulfillment_info[].status
  fulfillment_info[].shipment_status fulfillment_info[].service fulfillment_info[].fulfillment_type
  fulfillment_info[].package_slip fulfillment_info[].tracking.company_name
  fulfillment_info[].tracking.tracking_number fulfillment_info[].tracking.tracking_numbers[]
  fulfillment_info[].tracking.tracking_url fulfillment_info[].tracking.tracking_urls[]
  tender_info[].payment_type tender_info[].status tender_info[].card_type tender_info[].card_brand
  tender_info[].last_four tender_info[].card_expiry.month tender_info[].card_expiry.year
`;

const WORDS: Readonly<Record<string, string>> = {
  long: 'integer',
  'long timestamp-millis': 'timestamp',
  'int date': 'date',
  'bytes decimal 18 4': 'number',
};

describe('orderSchema', () => {
  const fields = orderSchema.fields.slice(0, -2);

  it('has the fields of the description, no more and no fewer, in their types', () => {
    const described = new Map<string, string>();
    for (const [, type = '', paths = ''] of DESCRIBED.matchAll(/(\w+):([^:]+?)(?=\n\w|\n$)/g)) {
      for (const path of paths.trim().split(/\s+/)) described.set(path, type);
    }
    const found = new Map(leaves(fields));

    expect(described.size).toBe(110);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(described));
  });

  it('lets every field be null, and says what it is', () => {
    const nameless = everyField(fields).filter(
      ({ type, default: standard, doc }) =>
        !Array.isArray(type) || type[0] !== 'null' || standard !== null || !doc?.endsWith('.'),
    );

    expect(nameless).toEqual([]);
  });

  it('ends with nulls, which has no default, and unmapped', () => {
    const [nulls, unmapped] = orderSchema.fields.slice(-2);
    expect(nulls).toMatchObject({ name: 'nulls', type: { type: 'array', items: 'string' } });
    expect(nulls).not.toHaveProperty('default');
    const type = { type: 'map', values: 'string' };
    expect(unmapped).toMatchObject({ name: 'unmapped', type, default: {} });
  });

  it('keeps its names in one namespace, each for one record', () => {
    const names = records(orderSchema).map(({ name, namespace }) => `${namespace ?? ''}${name}`);

    expect(names[0]).toBe('cellarstream.ordersValue');
    expect(new Set(names).size).toBe(names.length);
    expect(names.slice(1).every((name) => /^[A-Z][A-Za-z]+$/.test(name))).toBe(true);
  });
});

function* leaves(fields: readonly FieldSchema[], path = ''): Generator<[string, string]> {
  for (const { name, type, contentMediaType } of fields) {
    const [, inner] = type as AvroType[];
    yield* leaf(inner!, path + name, contentMediaType);
  }
}

function* leaf(type: AvroType, path: string, media?: string): Generator<[string, string]> {
  if (typeof type === 'object' && 'items' in type) yield* leaf(type.items, `${path}[]`);
  else if (typeof type === 'object' && 'fields' in type) yield* leaves(type.fields, `${path}.`);
  else {
    const word = typeof type === 'string' ? type : Object.values(type).join(' ');
    yield [path, media === 'application/json' ? 'json' : (WORDS[word] ?? word)];
  }
}

function records(schema: RecordSchema): RecordSchema[] {
  return [schema, ...schema.fields.flatMap(({ type }) => recordsIn(type))];
}

function recordsIn(type: AvroType): RecordSchema[] {
  if (Array.isArray(type)) return (type as AvroType[]).flatMap(recordsIn);
  if (typeof type === 'object' && 'items' in type) return recordsIn(type.items);
  return typeof type === 'object' && 'fields' in type ? records(type) : [];
}

function everyField(fields: readonly FieldSchema[]): FieldSchema[] {
  return fields.flatMap((field) => [
    field,
    ...recordsIn(field.type).flatMap((record) => record.fields),
  ]);
}
