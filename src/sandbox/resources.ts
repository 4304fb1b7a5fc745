// The lists of the API and how their records are keyed; JSON, and patches of records.

/** The six lists of the API, as they stand in its paths. */
export const RESOURCES = [
  'orders',
  'customers',
  'inventory',
  'wine-clubs',
  'wine-club-members',
  'products',
] as const;

/** A list of the API, by its name there. */
export type Resource = (typeof RESOURCES)[number];

/** What requests are counted by: a list, or the login. */
export type Endpoint = Resource | 'login';

export const ENDPOINTS: readonly Endpoint[] = ['login', ...RESOURCES];

/** Any JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A JSON object. */
export type JsonObject = { [name: string]: JsonValue };

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A record's key: a number, or the `sku` of an inventory item. */
export type RecordKey = number | string;

/** How the records of a list are known and asked for. */
export interface ResourceRules {
  /** The field that holds the key. */
  readonly keyField: string;
  /** Text before the number in the key; null when the key is the number itself. */
  readonly keyPrefix: string | null;
  /** Number of the first record; each later one has the next. */
  readonly firstNumber: number;
  /** Whether records carry `created_at` and `updated_at`. */
  readonly dated: boolean;
  /** Whether `modifiedFromDate` and `modifiedToDate` narrow the list. */
  readonly windowed: boolean;
  /** The query parameter that asks for one record by number, if there is one. */
  readonly byNumber: string | null;
}

const UNDATED = { keyField: 'id', keyPrefix: null, dated: false, windowed: false, byNumber: null };
const DATED = { ...UNDATED, dated: true, windowed: true };

/**
 * Of these only the rules of orders, and the windows of customers and products, are in the API's
 * description; the rest is made up.
 */
export const RULES: Readonly<Record<Resource, ResourceRules>> = {
  orders: {
    ...DATED,
    keyField: 'order_number',
    firstNumber: 100_001,
    byNumber: 'orderNumber',
  },
  customers: { ...DATED, firstNumber: 500_001 },
  inventory: { ...UNDATED, keyField: 'sku', keyPrefix: 'CS-', firstNumber: 100_001 },
  'wine-clubs': { ...UNDATED, firstNumber: 1 },
  'wine-club-members': { ...DATED, windowed: false, firstNumber: 700_001 },
  products: { ...DATED, firstNumber: 3_001 },
};

/** What becomes of a record: fields to set, or a function that alters it or returns another. */
export type Patch = JsonObject | ((record: JsonObject) => JsonValue | void);

/** The record after the patch, which may have altered the one before. */
export function patched(record: JsonObject, patch: Patch): JsonValue {
  return typeof patch === 'function' ? (patch(record) ?? record) : { ...record, ...patch };
}
