// The API's lists and their keys, and the JSON and patch types of the sandbox.

/** The six lists of the API. Paths use the same names. */
export const RESOURCES = [
  'orders',
  'customers',
  'inventory',
  'wine-clubs',
  'wine-club-members',
  'products',
] as const;

/** Name of a list of the API. */
export type Resource = (typeof RESOURCES)[number];

/** An endpoint of the API, whose requests are logged and limited by a quota: a list, or the login. */
export type Endpoint = Resource | 'login';

export const ENDPOINTS: readonly Endpoint[] = ['login', ...RESOURCES];

/** Any JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
/** A JSON object. */
export type JsonObject = { [name: string]: JsonValue };

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Key of a record: a text (the field `sku`) in the list `inventory`, a number in all other lists. */
export type RecordKey = number | string;

/** How the records of a list are identified and queried. */
export interface SandboxListRules {
  /** Name of the record field that holds the key. */
  readonly keyField: string;
  /** Text before the number in a key, such as `CS-`; null if a key is just a number. */
  readonly keyPrefix: string | null;
  /** Number in the key of the first record. Later records have the following numbers. */
  readonly firstNumber: number;
  /** Whether records have `created_at` and `updated_at`. */
  readonly dated: boolean;
  /** Whether the list supports the parameters `modifiedFromDate` and `modifiedToDate`. */
  readonly windowed: boolean;
  /** Query parameter that requests a single record by the number in its key; null if the list has no such parameter. */
  readonly byNumber: string | null;
}

const UNDATED = { keyField: 'id', keyPrefix: null, dated: false, windowed: false, byNumber: null };
const DATED = { ...UNDATED, dated: true, windowed: true };

/**
 * How the sandbox identifies and queries the records of each list. The rules of orders, and the date windows of customers and products, are
 * those of the API's description. All other rules are invented.
 */
export const RULES: Readonly<Record<Resource, SandboxListRules>> = {
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

/** Change of a record: an object with the fields to set, or a function that alters the record or returns a replacement. */
export type Patch = JsonObject | ((record: JsonObject) => JsonValue | void);

/** Returns the record as changed by `patch`. Fields are set in a copy; a function may alter `record` itself or return a replacement. */
export function patched(record: JsonObject, patch: Patch): JsonValue {
  return typeof patch === 'function' ? (patch(record) ?? record) : { ...record, ...patch };
}
