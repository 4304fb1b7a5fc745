import { isObject, type JsonValue, type JsonObject } from './resources.ts';

/** A change of a status field of an order. */
export interface StatusChange {
  readonly subject: 'order' | 'order_edit' | 'fulfillment' | 'club_package';
  /**
   * Identity of the order's changed part: an edit's `created_at`, or a fulfillment's `fulfillment_id`. Null for the order itself and its
   * club package. If several edits have the same `created_at`, the second gets `#2` appended, and so on.
   */
  readonly subject_id: string | null;
  readonly field: string;
  /** Status before the change; null if there was none, for example because this part of the order is new. */
  readonly from: string | null;
  /** Status after the change; null if there is none, for example because this part of the order was removed. */
  readonly to: string | null;
}

type Statuses = Map<string, Omit<StatusChange, 'from' | 'to'> & { value: string }>;

/** Returns the differences between the status fields of two versions of an order. Pass null for a version that does not exist. */
export function statusChanges(before: JsonValue, after: JsonValue): StatusChange[] {
  const old = statusesOf(before);
  const young = statusesOf(after);
  return [...new Set([...old.keys(), ...young.keys()])].flatMap((name) => {
    const from = old.get(name)?.value ?? null;
    const to = young.get(name)?.value ?? null;
    if (from === to) return [];
    const { subject, subject_id, field } = (young.get(name) ?? old.get(name))!;
    return [{ subject, subject_id, field, from, to }];
  });
}

function statusesOf(order: JsonValue): Statuses {
  const found: Statuses = new Map();
  const note = (
    subject: StatusChange['subject'],
    subject_id: string | null,
    holder: JsonValue | undefined,
    fields: readonly string[],
  ) => {
    for (const field of fields) {
      const value = isObject(holder) ? holder[field] : undefined;
      if (typeof value !== 'string') continue;
      found.set(JSON.stringify([subject, subject_id, field]), {
        subject,
        subject_id,
        field,
        value,
      });
    }
  };
  if (!isObject(order)) return found;
  note('order', null, order, ['payment_status', 'fulfillment_status']);
  const times = new Map<string, number>();
  for (const edit of listOf(order.order_edit)) {
    const at = textOf(edit, 'created_at');
    const seen = (times.get(at) ?? 0) + 1;
    times.set(at, seen);
    note('order_edit', seen > 1 ? `${at}#${seen}` : at, edit, ['status']);
  }
  for (const parcel of listOf(order.fulfillment_info)) {
    const id = textOf(parcel, 'fulfillment_id');
    note('fulfillment', id, parcel, ['status', 'shipment_status']);
  }
  note('club_package', null, order.club_package_info, [
    'package_status',
    'customer_package_status',
    'wine_club_order_status',
    'compliance_status',
  ]);
  return found;
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function textOf(holder: JsonValue, field: string): string {
  const value = isObject(holder) ? holder[field] : undefined;
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

const PATH = /^(?:(order_edit|fulfillment_info|club_package_info)(?:\[(.+)\])?\.)?(\w+)$/;
const IDENTITY: Readonly<Record<string, string>> = {
  order_edit: 'created_at',
  fulfillment_info: 'fulfillment_id',
};

/**
 * Sets a field of an order or of one of its parts. Example of a path: `fulfillment_info[F-100001-1].status`.
 *
 * @throws RangeError if the path is malformed or the order has no such part.
 */
export function setStatus(order: JsonObject, path: string, value: string | null): void {
  const [, part, identity, field] = PATH.exec(path) ?? [];
  if (field === undefined)
    throw new RangeError(
      `setStatus of the sandbox: ${path} is not a path such as payment_status or fulfillment_info[F-100001-1].status`,
    );
  const holder = part === undefined ? order : partOf(order[part], IDENTITY[part], identity);
  if (!holder)
    throw new RangeError(
      `setStatus of the sandbox: the order has no part that matches the path ${path}`,
    );
  holder[field] = value;
}

/**
 * Returns the first object in `part` (an object, or an array of objects) whose field `name` equals `identity`; undefined if none matches.
 * If `name` or `identity` is undefined, every object matches.
 */
function partOf(
  part: JsonValue | undefined,
  name: string | undefined,
  identity: string | undefined,
): JsonObject | undefined {
  const parts = (Array.isArray(part) ? part : [part]).filter(isObject);
  return identity === undefined || name === undefined
    ? parts[0]
    : parts.find((candidate) => candidate[name] === identity);
}
