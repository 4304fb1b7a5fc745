import type { Config } from './config.ts';
import { CellarstreamError } from '../core/errors.ts';

/**
 * Refuses settings of the contract that this version can't keep yet: better said than passed over.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
export function refuseUnsupported({ keyFields }: Config): void {
  if (!keyFields.orders || keyFields.orders.join() === 'order_number') return;
  const message = 'KEY_FIELDS_ORDERS must be order_number: orders are read again by it';
  throw new CellarstreamError('SETTINGS', message);
}
