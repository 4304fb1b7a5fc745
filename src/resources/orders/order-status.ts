import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { isJsonObject, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { StatusSubject } from '../../schemas/events/own-records.ts';
import { instantOf } from '../../schemas/avro/instant.ts';
import type { Change } from '../../streams/diff/change.ts';
import { byIdentity } from '../../streams/diff/identity.ts';
import { ORDER_IDENTITIES } from './order-identities.ts';

export type { StatusSubject };

/**
 * The status fields that are watched, each a plain name within its subject. The sandbox (`sandbox/status-changes.ts`) and
 * the oracles of the tests have lists of their own, on purpose: CONTRIBUTING.md says which.
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

/** The plain name of a status within its subject. */
export type StatusField = (typeof STATUS_FIELDS)[StatusSubject][number];

/** One status field of one subject of an order that has changed. */
export interface StatusChange {
  readonly subject: StatusSubject;
  /** A fulfilment's `fulfillment_id`, an edit's `created_at`; null for the order and its package. */
  readonly subjectId: string | null;
  readonly field: StatusField;
  /** Null when the subject is new, or the field was not set. */
  readonly from: string | null;
  /** Null when the subject vanished, or the field is no longer set. */
  readonly to: string | null;
  /** The API's own time of the change, ms since the epoch: the nearest `updated_at`, or null. */
  readonly changedAt: number | null;
}

/** A status change, and the order that it is of. */
export interface KeyedStatusChange {
  readonly key: string;
  readonly change: StatusChange;
}

/**
 * The status changes in a change of an order: one for each field and subject that differs, in the
 * order of {@link STATUS_FIELDS}. A created order gives one for each field that is set; an order
 * that is read for the first time (`r`) and a deletion (`d`) give none. Fulfilments and edits are matched
 * by their identity, so that an array in another order changes nothing.
 */
export function statusChanges(change: Change): StatusChange[] {
  if (change.op === 'r' || change.op === 'd') return []; // without a look into its images
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

/** The status changes in each change of an order: one for each field and subject that differs. An `r` and a `d` have none. */
export function orderStatus(): OperatorFunction<Change, readonly StatusChange[]> {
  return map(statusChanges);
}

interface Subject {
  readonly subject: StatusSubject;
  readonly subjectId: string | null;
  /** Undefined for a club package that the order lacks. */
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

/** A status as text. Its values are not documented: one that is no string is given as its JSON. */
function statusOf(record: JsonValue | undefined, field: StatusField): string | null {
  const value = isJsonObject(record) && Object.hasOwn(record, field) ? record[field] : undefined;
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : stringifyJson(value);
}

/** A fulfilment tells when it was updated; an edit only when it was made. */
function ownTime({ subject, record }: Subject, isNew: boolean): number | null {
  if (!isJsonObject(record)) return null;
  if (subject === 'fulfillment') return instantOf(record, 'updated_at');
  if (subject === 'order_edit' && isNew) return instantOf(record, 'created_at');
  return null;
}
