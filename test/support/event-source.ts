import type { EventSource } from '../../src/schemas/events/envelope.ts';

/** The source of an event of an order: the service, the account, the list and the event's sequence number. */
export const orderSource = (sequence = 1): EventSource => ({
  connector: 'cellarstream',
  version: '0.1.0',
  name: 'default',
  resource: 'orders',
  ts_ms: null,
  snapshot: 'false',
  db: 'wine',
  table: 'orders',
  sequence,
});
