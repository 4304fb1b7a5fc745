// @ts-check
// Events as the service publishes them, ready to be sent.
import { createEnvelopeCodec, frame, orderSchema } from 'cellarstream/schemas';

/** As the service's: what is around an image. */
const FACTS = {
  op: /** @type {const} */ ('r'),
  ts_ms: Date.UTC(2026, 0, 31, 12),
  changed: [],
  source: {
    connector: 'cellarstream',
    version: '0.1.0',
    name: 'default',
    resource: 'orders',
    ts_ms: Date.UTC(2026, 0, 31, 11),
    snapshot: /** @type {const} */ ('true'),
    sequence: 1,
    db: 'bench',
    table: 'orders',
  },
};

/** The records of a page. @param {string} text */
export const recordsIn = (text) =>
  /** @type {{ data: import('cellarstream/schemas').JsonObject[] }} */ (JSON.parse(text)).data;

/**
 * The first events of a page of orders, keys and framed values.
 *
 * @param {string} page
 */
export function readyEvents(page) {
  const events = createEnvelopeCodec(orderSchema, 'orders');
  return recordsIn(page).map((record) => ({
    key: JSON.stringify(record.order_number),
    value: frame(1, events.encode({ ...FACTS, before: null, after: events.values.encode(record) })),
  }));
}
