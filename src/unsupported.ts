import type { Config } from './config.ts';
import { CellarstreamError } from './errors.ts';

/**
 * Refuses settings of the contract that this version can't keep yet: better said than passed over.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
export function refuseUnsupported({ pii, keyFields }: Config): void {
  const problems: string[] = [];
  if ([...pii.drop, ...pii.mask, ...pii.hmac].length > 0) {
    problems.push(
      'PII_DROP, PII_MASK and PII_HMAC are not supported yet: unset them, or personal fields would be published',
    );
  }
  if (keyFields.orders && keyFields.orders.join() !== 'order_number') {
    problems.push('KEY_FIELDS_ORDERS must be order_number: orders are read again by it');
  }
  if (problems.length > 0) throw new CellarstreamError('SETTINGS', problems.join('; '));
}
