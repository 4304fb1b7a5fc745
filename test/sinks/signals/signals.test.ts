import { describe, expect, it } from 'vitest';
import { parseSignal, signalMessage } from '../../../src/sinks/signals/signals.ts';
import type {
  CertifyAck,
  CertifyRequest,
  PermitsRequest,
  ResyncAck,
  ResyncRequest,
} from '../../../src/sinks/signals/signals.ts';

const request: ResyncRequest = {
  type: 'resync',
  id: 'r-1',
  account: 'estate',
  resources: ['orders', 'customers'],
  order_number: null,
  since: null,
  requested_at: '2026-01-01T00:00:00Z',
};
const ack: ResyncAck = {
  type: 'resync-ack',
  id: 'r-1',
  account: 'estate',
  resource: 'orders',
  status: 'done',
  events: 3,
  message: null,
  at: '2026-01-01T00:00:01Z',
};
const certify: CertifyRequest = {
  type: 'certify',
  id: 'r-1',
  account: 'estate',
  resources: ['orders', 'customers'],
  requested_at: '2026-01-01T00:00:00Z',
};
const certified: CertifyAck = {
  type: 'certify-ack',
  id: 'r-1',
  account: 'estate',
  resource: 'orders',
  status: 'done',
  number: 12,
  message: null,
  at: '2026-01-01T00:00:01Z',
};
/** A request for permits of an API with a quota for each of its 30 lists. */
const permits: PermitsRequest = {
  type: 'permits',
  id: 'r-1',
  account: 'estate',
  asker: 'guest',
  quotas: Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`list-${n}`, 1])),
  requested_at: '2026-01-01T00:00:00Z',
};
const read = (value: unknown, key = 'r-1') =>
  parseSignal({ key: Buffer.from(key), value: Buffer.from(JSON.stringify(value)) });

describe('signals', () => {
  it.each([
    request,
    ack,
    certify,
    certified,
    { ...request, resources: ['orders'], order_number: 7 },
    { ...request, resources: Array.from({ length: 60 }, (_, n) => `list-${n}`) },
    permits,
  ])('are read as they were written: %o', (signal) => {
    const { topic, key, value } = signalMessage('wine.signals', signal);
    expect([topic, key]).toEqual(['wine.signals', 'r-1']);
    expect(parseSignal({ key: Buffer.from(key!), value })).toEqual(signal);
  });

  it('may leave out what is null, and have more than is known', () => {
    const short = { ...request, order_number: undefined, since: undefined };
    expect(read({ ...short, note: 'from the night shift' })).toEqual(request);
    const long = { ...request, order_number: '9007199254740993', resources: ['orders'] };
    expect(read(long)).toEqual(long);
  });

  it.each([
    ['its type is not known', { ...request, type: 'restart' }],
    ['its type is not known', null],
    ['its key is not its id', { ...request, id: 'r-2' }],
    ['resources: ', { ...request, resources: [] }],
    ['resources.0: ', { ...request, resources: [7] }],
    ['order_number: ', { ...request, order_number: 1.5 }],
    ['order_number: ', { ...request, order_number: 9_007_199_254_740_992 }],
    ['order_number: ', { ...request, order_number: '12a' }],
    ['since: ', { ...request, since: 'Rosa Lind' }],
    [
      'since: must not be set together with order_number',
      { ...request, order_number: 7, since: request.requested_at },
    ],
    ['account: ', { ...request, account: undefined }],
    ['status: ', { ...ack, status: 'perhaps' }],
    ['events: ', { ...ack, events: -1 }],
  ])('are none: %s', (why, value) => {
    expect(() => read(value)).toThrow(`no signal: ${why}`);
    expect(() => read(value)).not.toThrow('Rosa');
  });

  it.each([['{'], ['']])('are none where there is no JSON: %j', (text) => {
    const value = text === '' ? null : Buffer.from(text);
    expect(() => parseSignal({ key: null, value })).toThrow('no signal: it is not JSON');
  });
});
