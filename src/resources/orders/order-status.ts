import { map, type OperatorFunction } from 'rxjs';
import { isJsonObject, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { StatusSubject } from '../../schemas/events/own-records.ts';
import { instantOf } from '../../schemas/avro/instant.ts';
import type { Change } from '../../streams/diff/change.ts';
import { byIdentity, type Identities } from '../../streams/diff/changed-paths.ts';

export type { StatusSubject };

/** Arrays of an order whose elements are matched by a field instead of by index, and the names of these fields. */
export const ORDER_IDENTITIES: Identities = {
  fulfillment_info: 'fulfillment_id',
  order_edit: 'created_at',
};

/**
 * Status fields of orders whose changes are published, by the kind of object that they belong to. The sandbox (`sandbox/status-changes.ts`)
 * and the oracles of the tests have lists of their own on purpose (CONTRIBUTING.md).
 */
export const STATUS_FIELDS = {
  order: ['payment_status', 'fulfillment_status'],
  order_edit: ['status'],
  fulfillment: ['status', 'shipment_status'],
  club_package: [
    'package_status',
    'customer_package_status',
    'wine_club_order_status',
    'compliance_status',
  ],
} as const satisfies Record<StatusSubject, readonly string[]>;

/** Name of a status field of an order, or of a part of an order. */
export type StatusField = (typeof STATUS_FIELDS)[StatusSubject][number];

/** A change of one status field of an order, or of a part of an order. */
export interface StatusChange {
  readonly subject: StatusSubject;
  /**
   * Identity of the part of the order: a fulfilment's `fulfillment_id`, an edit's `created_at`; null for the order itself and for its club
   * package.
   */
  readonly subjectId: string | null;
  readonly field: StatusField;
  /** Previous status; null if the order or its part is new, or the field was not set. */
  readonly from: string | null;
  /** New status; null if the part of the order was removed, or the field is not set any more. */
  readonly to: string | null;
  /**
   * When the status changed, in epoch ms: `updated_at` of a fulfilment, `created_at` of a new edit, otherwise `updated_at` of the order.
   * Null if the API sent no valid time.
   */
  readonly changedAt: number | null;
}

/** A status change of an order, with the order's key. */
export interface KeyedStatusChange {
  readonly key: string;
  readonly change: StatusChange;
}

/**
 * Returns the status changes in a change of an order: one for each status field that differs, of the order itself and of its parts. Within
 * each of these objects the fields have the order of {@link STATUS_FIELDS}. A created order has a status change for each field that is set;
 * an event of the initial snapshot (`r`) and a deletion (`d`) have none. Fulfilments and edits are matched by identity, so a reordered
 * array causes no status change.
 */
export function statusChanges(change: Change): StatusChange[] {
  if (change.op === 'r' || change.op === 'd') return []; // without decoding the images
  const { before, after } = change;
  if (!after) return [];
  const was = subjectsOf(before);
  const is = subjectsOf(after);
  const orderTime = instantOf(after, 'updated_at');

  const changes: StatusChange[] = [];
  for (const id of new Set([...is.keys(), ...was.keys()])) {
    const [old, now] = [was.get(id), is.get(id)];
    const { subject, subjectId } = (now ?? old)!;
    for (const field of STATUS_FIELDS[subject]) {
      const from = statusOf(old?.record, field);
      const to = statusOf(now?.record, field);
      if (from === to) continue;
      const changedAt = (now && ownTime(now, old === undefined)) ?? orderTime;
      changes.push({ subject, subjectId, field, from, to, changedAt });
    }
  }
  return changes;
}

/** Maps each change of an order to its status changes. */
export function orderStatus(): OperatorFunction<Change, readonly StatusChange[]> {
  return map(statusChanges);
}

interface Subject {
  readonly subject: StatusSubject;
  readonly subjectId: string | null;
  /** The order or its part that has the status; undefined for a club package that the order lacks. */
  readonly record: JsonValue | undefined;
}

function subjectsOf(order: JsonObject | null): ReadonlyMap<string, Subject> {
  const subjects = new Map<string, Subject>();
  if (!order) return subjects;
  const add = (subject: StatusSubject, subjectId: string | null, record: JsonValue | undefined) => {
    subjects.set(`${subject} ${subjectId ?? ''}`, { subject, subjectId, record });
  };
  const addAll = (subject: StatusSubject, field: 'order_edit' | 'fulfillment_info') => {
    const array = order[field];
    if (!Array.isArray(array)) return;
    for (const [id, record] of byIdentity(array, ORDER_IDENTITIES[field]!))
      add(subject, id, record);
  };
  add('order', null, order);
  addAll('order_edit', 'order_edit');
  addAll('fulfillment', 'fulfillment_info');
  add('club_package', null, order.club_package_info);
  return subjects;
}

/**
 * Returns a status as text; null if it isn't set. A status that isn't a string is returned as JSON text, as the API does not document the
 * values.
 */
function statusOf(record: JsonValue | undefined, field: StatusField): string | null {
  const value = isJsonObject(record) && Object.hasOwn(record, field) ? record[field] : undefined;
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : stringifyJson(value);
}

/**
 * Time at which a part of an order changed, in epoch ms: `updated_at` of a fulfilment, `created_at` of a new edit. Null for any other part,
 * and if the time is missing.
 */
function ownTime({ subject, record }: Subject, isNew: boolean): number | null {
  if (!isJsonObject(record)) return null;
  if (subject === 'fulfillment') return instantOf(record, 'updated_at');
  if (subject === 'order_edit' && isNew) return instantOf(record, 'created_at');
  return null;
}
