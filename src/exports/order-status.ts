import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { listNamed } from '../description/description.ts';
import type { StatusField, StatusSubject } from '../description/wine/order-status.ts';
import { WINE } from '../description/wine/wine.ts';
import type { Change } from '../streams/diff/change.ts';
import { statusChanges } from '../streams/diff/status-changes.ts';
import type { StatusChange } from '../streams/diff/status-changes.ts';

/** Maps each change of an order to its status changes. */
export function orderStatus(): OperatorFunction<
  Change,
  readonly StatusChange<StatusSubject, StatusField>[]
> {
  const orders = listNamed(WINE, 'orders');
  return map(
    (change) => statusChanges(change, orders) as StatusChange<StatusSubject, StatusField>[],
  );
}
