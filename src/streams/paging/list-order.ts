import { PageRecord } from '../records/page-record.ts';
import type { PageRecords } from '../records/page-records.ts';

/** How one field of a reading's records is sorted: `none` once two neighbours contradict, null before two have differed. */
export type Order = 'asc' | 'desc' | 'none' | null;

/** The orders that a reading has shown so far, and where it has come to. */
export interface ListOrder {
  readonly keys: Order;
  /** Of `updated_at`; `none` where a record has none. */
  readonly times: Order;
  /** Of the newest page's last record. */
  readonly last: ListPlace | null;
  /** Whether a record that had changed stood in front of one that had not: the list is not sorted by when its records change. */
  readonly keepsPlaces: boolean;
}

/** A record's place in a list that is sorted by its keys or by its times. */
export interface ListPlace {
  readonly key: string;
  /** `updated_at`, in epoch ms. */
  readonly time: number | null;
}

export const NO_ORDER: ListOrder = { keys: null, times: null, last: null, keepsPlaces: false };

/** The orders after one more page. Pages overlap, so each needs only be compared within itself. */
export function orderAfter(order: ListOrder, records: PageRecords): ListOrder {
  const places = placesOf(records);
  let { keys, times } = order;
  for (let nth = 1; nth < places.length && (keys !== 'none' || times !== 'none'); nth += 1) {
    const [one, other] = [places[nth - 1]!, places[nth]!];
    keys = orderWith(keys, compareKeys(one.key, other.key));
    times =
      one.time === null || other.time === null ? 'none' : orderWith(times, one.time - other.time);
  }
  return { ...order, keys, times, last: places.at(-1) ?? order.last };
}

function orderWith(order: Order, sign: number): Order {
  if (sign === 0 || order === 'none') return order;
  const next = sign < 0 ? 'asc' : 'desc';
  return order === null || order === next ? next : 'none';
}

/** Whether the list is sorted by its keys, so that no record ever moves. */
export function isByKey({ keys, times, last, keepsPlaces }: ListOrder): boolean {
  // Sorted by the newest change first, a list would show what has changed in front, and out of the order of the keys.
  if (keys === 'desc') return true;
  // Sorted by the oldest change first, it shows what has changed at its end, where a cut would hide it.
  return (
    keys === 'asc' && (keepsPlaces || times === 'desc' || (times === 'none' && hasTimes(last)))
  );
}

function hasTimes(place: ListPlace | null): boolean {
  return place !== null && place.time !== null;
}

/**
 * Whether a record that is in the list stands in front of the last one that was read.
 *
 * @param place Its key, and its time where polls keep that up to date, else null.
 */
export function isInFront({ key, time }: ListPlace, order: ListOrder): boolean {
  const { keys, times, last } = order;
  if (!last) return false;
  if (isByKey(order)) return isBefore(compareKeys(key, last.key), keys);
  if (time === null || last.time === null) return false;
  return isBefore(time - last.time, times);
}

function isBefore(sign: number, order: Order): boolean {
  return (order === 'asc' && sign < 0) || (order === 'desc' && sign > 0);
}

const WHOLE_NUMBER = /^(?:0|[1-9]\d*)$/;

/** Compares whole numbers by their value, all other keys by their characters. */
function compareKeys(one: string, other: string): number {
  if (one.length !== other.length && WHOLE_NUMBER.test(one) && WHOLE_NUMBER.test(other))
    return one.length - other.length;
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The places of a page's records, without those that have no key. */
function placesOf({ parts }: Pick<PageRecords, 'parts'>): readonly ListPlace[] {
  return parts.flatMap((part): readonly ListPlace[] =>
    part instanceof PageRecord
      ? part.key === undefined
        ? []
        : [{ key: part.key, time: part.updatedAt }]
      : part.run.members.map(({ key, updatedAt }) => ({ key, time: updatedAt })),
  );
}
