// Types of an order, with the fields that the sandbox reads or updates after it has created them.

import { isObject, type JsonObject, type JsonValue } from './resources.ts';

/** An order of the API: the fields that the sandbox reads or updates. Which ones are null or absent is the sandbox's choice. */
export type OrderRecord = JsonObject & {
  order_number: number;
  shipping_price: number;
  total_price: number;
  delivery_preference: string;
  payment_status: string;
  fulfillment_status: string;
  item_count: number;
  order_items: OrderItem[];
  customer_tags: string[];
  notes: string | null;
  payment_type: string | null;
  order_edit?: OrderEdit[];
  club_package_info?: ClubPackage | null;
  fulfillment_info: Fulfillment[];
  tender_info: (JsonObject & { status: string })[];
};

export type OrderItem = JsonObject & { sku: string; quantity: number; price: number };

type OrderEdit = JsonObject & { order_edit_type: string; status: string; activity: string };

export type ClubPackage = JsonObject & {
  package_status: string;
  customer_package_status: string;
  wine_club_order_status: string;
  compliance_status: string;
  payment_date: string | null;
  closed_at: string | null;
  closed_date: string | null;
  is_selection_completed: boolean;
};

export type Fulfillment = JsonObject & {
  status: string;
  shipment_status: string | null;
  fulfillment_type: string;
  updated_at: string;
};

/** Whether a record has the fields that random changes rely on. Some may be missing after `replaceText`, `create` or `change`. */
export function isOrder(record: JsonValue): record is OrderRecord {
  return (
    isObject(record) &&
    typeof record.total_price === 'number' &&
    typeof record.item_count === 'number' &&
    Array.isArray(record.customer_tags) &&
    [record.order_items, record.fulfillment_info, record.tender_info].every(isListOfObjects) &&
    isListOfObjects(record.order_edit ?? [])
  );
}

function isListOfObjects(value: JsonValue | undefined): boolean {
  return Array.isArray(value) && value.every(isObject);
}
