// Types of an order, as the sandbox generates it.

import type { Contact } from './people.ts';
import { isObject, type JsonObject, type JsonValue } from './resources.ts';

/** An order as the API describes it. Which fields are null or absent is the sandbox's choice. */
export type OrderRecord = Partial<Contact> & {
  order_number: number;
  created_at: string;
  updated_at: string;
  order_date: string;
  subtotal_price: number;
  total_discounts: number;
  shipping_price: number;
  sales_tax: number;
  crv: number;
  total_tax: number;
  total_price: number;
  tip: number | null;
  delivery_preference: string;
  order_type: string;
  order_subtype: string | null;
  payment_status: string;
  fulfillment_status: string;
  item_count: number;
  order_items: OrderItem[];
  order_discounts: OrderDiscounts | null;
  customer_type: string | null;
  customer_tags: string[];
  class: string | null;
  notes: string | null;
  payment_type: string | null;
  order_edit?: OrderEdit[];
  club_package_info?: ClubPackage | null;
  fulfillment_info: Fulfillment[];
  tender_info: Tender[];
};

export type OrderItem = {
  product_name: string;
  variant_name: string;
  sku: string;
  product_type: string;
  quantity: number;
  price: number;
};

export type OrderDiscounts = {
  auto_discount: number | null;
  promocode_discount: number | null;
  pos_discount: number | null;
  custom_discount: number | null;
};

type OrderEdit = {
  order_number: number;
  created_at: string;
  /** Numbers of items that the edit added, deleted and updated, as text. */
  current_operation: { newItems: string; deletedItems: string; updatedItems: string };
  summary: JsonObject | null;
  custom_refund_amount: number | null;
  order_delivery_method: string | null;
  order_edit_type: string;
  status: string;
  activity: string;
  notes: string | null;
};

export type ClubPackage = {
  wine_club_name: string;
  subscription_package_type: string;
  package_type: string;
  package_status: string;
  customer_package_status: string;
  package_message: string | null;
  wine_club_order_status: string;
  compliance_status: string;
  wine_club_message: string | null;
  package_number: number;
  payment_date: string | null;
  open_at: string;
  closed_at: string | null;
  opened_date: string;
  closed_date: string | null;
  is_selection_completed: boolean;
};

export type Fulfillment = {
  fulfillment_id: string;
  fulfillment_number: string;
  status: string;
  shipment_status: string | null;
  service: string | null;
  fulfillment_type: string;
  package_slip: string | null;
  created_at: string;
  updated_at: string;
  history_created_at: string | null;
  shipping_price: number;
  notify_customer: boolean;
  tracking?: Tracking | null;
};

type Tracking = {
  company_name: string;
  tracking_number: string;
  tracking_numbers: string[];
  tracking_url: string;
  tracking_urls: string[];
};

type Tender = {
  payment_type: string;
  status: string;
  card_type: string | null;
  card_brand: string | null;
  last_four: string | null;
  amount: number;
  created_at: string;
  card_expiry?: { month: string; year: string } | null;
};

/** Whether a record has the fields that random changes rely on. Some may be missing after `replaceText`, `create` or `change`. */
export function isOrder(record: JsonValue): record is JsonObject & OrderRecord {
  return (
    isObject(record) &&
    typeof record.total_price === 'number' &&
    typeof record.item_count === 'number' &&
    Array.isArray(record.customer_tags) &&
    [record.order_items, record.fulfillment_info, record.tender_info].every(isListOfObjects) &&
    [record.order_edit ?? []].every(isListOfObjects)
  );
}

function isListOfObjects(value: JsonValue | undefined): boolean {
  return Array.isArray(value) && value.every(isObject);
}
