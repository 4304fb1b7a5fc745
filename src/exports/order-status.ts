import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { listNamed } from '../description/description.ts';
import type { StatusField, StatusSubject } from '../description/wine/order-status.ts';
import { WINE } from '../description/wine/wine.ts';
import type { Change } from '../streams/diff/change.ts';
import { statusChanges } from '../streams/diff/status-changes.ts';
import type { StatusChange as RecordStatusChange } from '../streams/diff/status-changes.ts';

/** A change of one status field of an order, or of a part of an order. */
export interface StatusChange extends RecordStatusChange {
  readonly subject: StatusSubject;
  readonly field: StatusField;
}

/**
 * RxJS operator that maps each change of an order to an array of the status changes in it, which may be empty. Changes of the initial
 * snapshot (`r`) and deletions (`d`) have none.
 */
export function orderStatus(): OperatorFunction<Change, readonly StatusChange[]> {
  const orders = listNamed(WINE, 'orders');
  return map((change) => statusChanges(change, orders) as StatusChange[]);
}
