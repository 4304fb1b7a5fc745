// Derives the changes of status fields from the changes of a list's records.

import { statusFieldName } from '../../description/description.ts';
import type { ListDescription, StatusTableSubject } from '../../description/description.ts';
import { getOwn, isJsonObject, stringifyJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import { ISO } from '../../description/time-format.ts';
import type { TimeFormat } from '../../description/time-format.ts';
import { Stamps } from '../records/stamps.ts';
import type { Change } from './change.ts';
import { byIdentity } from './changed-paths.ts';

/** A change of one status field of a record, or of an object in a record. */
export interface StatusChange {
  /** Name, in the API's description, of the kind of object that has the status field. */
  readonly subject: string;
  /** Identity, within its array, of the object that has the status field; null if that object is not an element of an array. */
  readonly subjectId: string | null;
  /** Name of the status field. A field of a nested object has the names on its path, with dots between them: `status.name`. */
  readonly field: string;
  /** Previous status; null if the object is new, or the field was not set. */
  readonly from: string | null;
  /** New status; null if the object was removed, or the field is not set any more. */
  readonly to: string | null;
  /**
   * Time of the status change, in epoch ms: from the object's time field that the API's description names, or else the modification time of
   * the record. Null if neither is valid.
   */
  readonly changedAt: number | null;
}

/** A status change with the key of its record. */
export interface KeyedStatusChange {
  readonly key: string;
  readonly change: StatusChange;
}

/** The properties of a list from which the status changes of its records are derived. */
export type StatusList = Pick<ListDescription, 'statuses' | 'arrays' | 'updated'>;

/**
 * Returns the status changes in a change of a record: one for each status field that differs. The field may be in the record itself or in
 * an object in it. A created record has one for each status field that is set; an event of the initial snapshot (`r`) and a deletion (`d`)
 * have none. Array elements are matched by identity, so a reordered array causes no change.
 *
 * @param times Notation of the times in records. Default: ISO 8601.
 */
export function statusChanges(
  change: Change,
  list: StatusList,
  times: TimeFormat = ISO,
): StatusChange[] {
  if (change.op === 'r' || change.op === 'd' || !list.statuses) return []; // without decoding the images
  const { before, after } = change;
  if (!after) return [];
  const was = objectsOf(before, list);
  const is = objectsOf(after, list);

  const changes: StatusChange[] = [];
  for (const id of new Set([...is.keys(), ...was.keys()])) {
    const [old, now] = [was.get(id), is.get(id)];
    const { subject, subjectId } = (now ?? old)!;
    for (const path of subject.fields) {
      const [from, to] = [statusAt(old?.value, path), statusAt(now?.value, path)];
      if (from === to) continue;
      const changedAt =
        ownTime(subject, old?.value, now?.value, times) ?? new Stamps(list, times).updatedAt(after);
      const field = statusFieldName(path);
      changes.push({ subject: subject.name, subjectId, field, from, to, changedAt });
    }
  }
  return changes;
}

interface StatusObject {
  readonly subject: StatusTableSubject;
  /**
   * Identity, within its array, of the object with the status fields. Null if the object is not an element of an array, or is the record
   * itself.
   */
  readonly subjectId: string | null;
  /** The object with the status fields; undefined if the record lacks it. */
  readonly value: JsonValue | undefined;
}

/** Returns the objects that may have status fields: the record, or objects in it. Map keys combine an object's kind and identity. */
function objectsOf(
  record: JsonObject | null,
  { statuses, arrays }: StatusList,
): ReadonlyMap<string, StatusObject> {
  const objects = new Map<string, StatusObject>();
  if (!record) return objects;
  for (const subject of statuses!.subjects) {
    const { name, path } = subject;
    const value = memberAt(record, path);
    const [array = ''] = path;
    if (path.length !== 1 || !Object.hasOwn(arrays, array)) {
      objects.set(JSON.stringify([name]), { subject, subjectId: null, value });
    } else if (Array.isArray(value)) {
      for (const [subjectId, element] of byIdentity(value, arrays[array]!)) {
        objects.set(JSON.stringify([name, subjectId]), { subject, subjectId, value: element });
      }
    }
  }
  return objects;
}

/** Returns the value at a path of member names; undefined if there is none, or if the path leads into an array. */
function memberAt(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  return path.reduce((at, name) => (isJsonObject(at) ? getOwn(at, name) : undefined), value);
}

/**
 * Returns a status as text; null if not set. A status that isn't a string is returned as JSON text, as APIs rarely document the values.
 */
function statusAt(object: JsonValue | undefined, field: readonly string[]): string | null {
  const value = memberAt(object, field);
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : stringifyJson(value);
}

/**
 * Returns the time of a status change, in epoch ms, from the object's time field. Null if that field has no valid time, or is a time of
 * creation (`isTimeOfNew`) and the object is not new.
 */
function ownTime(
  { time, isTimeOfNew }: StatusTableSubject,
  was: JsonValue | undefined,
  is: JsonValue | undefined,
  times: TimeFormat,
): number | null {
  if (time === undefined || !isJsonObject(is) || (isTimeOfNew && isJsonObject(was))) return null;
  return times.read(getOwn(is, time));
}
