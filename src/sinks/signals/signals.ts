// Signals: requests to a running service, and its acknowledgements.

import { z } from 'zod';
import { CellarstreamError } from '../../core/errors.ts';
import type { KeyedMessage } from '../../kafka/log.ts';
import type { Message } from '../sink.ts';

/** Retention of the signals topic, in days. A request can wait for a running service for this long. */
export const SIGNAL_DAYS = 7;

/**
 * Maximum number of lists, and of quotas, in a request in the signals topic. It bounds a message's size, and no API has that many lists.
 */
const MAX_LISTS = 1_000;

const NAME = z.string().min(1).max(200);
const TIME = z.iso.datetime({ offset: true });

/** Whether a text is a non-negative integer that fits into a signed 64-bit number, as the API's numbers do. */
const isLong = (text: string) => /^\d{1,19}$/.test(text) && BigInt(text) < 2n ** 63n;

const OF_ACCOUNT = {
  /**
   * Id of the request. Its acknowledgements contain the same id. It is also the key of the messages with the request and with the
   * acknowledgements.
   */
  id: NAME,
  account: NAME,
};
const ASKS = {
  ...OF_ACCOUNT,
  /** Names of lists, such as `orders`. */
  resources: z.array(NAME).min(1).max(MAX_LISTS),
  requested_at: TIME,
};
const ACKNOWLEDGES = {
  ...OF_ACCOUNT,
  resource: NAME,
  status: z.enum(['done', 'refused', 'failed']),
  message: z.string().nullable(),
  at: TIME,
};

/**
 * Number of requests to the API for each quota, by the quota's name: `login`, the name of a list, or `all` (the quota of all lists
 * together).
 */
const QUOTAS = z
  .record(NAME, z.int().min(0).max(100))
  .refine((quotas) => Object.keys(quotas).length <= MAX_LISTS, { message: 'are too many' });

const SCHEMAS = {
  resync: z
    .object({
      type: z.literal('resync'),
      ...ASKS,
      /** Limits the request to the order with this number; null: no limit. Numbers above 2^53 - 1 are sent as text, to lose no digit. */
      order_number: z
        .union([z.int().min(0), z.string().refine(isLong)])
        .nullable()
        .default(null),
      /** Leaves out records last modified before this time, but not those without a modification time. Default null: no limit. */
      since: TIME.nullable().default(null),
    })
    .refine(({ order_number, since }) => order_number === null || since === null, {
      path: ['since'],
      message: 'must not be set together with order_number: leave out one of them',
    }),
  'resync-ack': z.object({
    type: z.literal('resync-ack'),
    ...ACKNOWLEDGES,
    /** Number of events that were published in the list's topic for the resync request. */
    events: z.int().min(0),
  }),
  certify: z.object({ type: z.literal('certify'), ...ASKS }),
  'certify-ack': z.object({
    type: z.literal('certify-ack'),
    ...ACKNOWLEDGES,
    /**
     * Number of the certificate that was requested. The certificate is committed in the same transaction as this acknowledgement. Null if
     * there is no certificate.
     */
    number: z.int().min(0).nullable(),
  }),
  permits: z.object({
    type: z.literal('permits'),
    ...OF_ACCOUNT,
    asker: NAME,
    quotas: QUOTAS,
    requested_at: TIME,
  }),
  'permits-ack': z.object({
    type: z.literal('permits-ack'),
    ...OF_ACCOUNT,
    instance: NAME,
    /**
     * Numbers of granted permits, each at most the number requested, by the name of the quota. No permits are granted for a quota that is
     * left out.
     */
    granted: QUOTAS,
    /** How long the guest may use the permits, in ms. The guest counts this time from the moment when it sent its request. */
    for_ms: z.int().min(0),
    /** Why fewer permits were granted than requested; null if all were granted. */
    message: z.string().nullable(),
    at: TIME,
  }),
} as const;

/** Request to republish whole lists, one order, or the records that were modified since a time. */
export type ResyncRequest = Signals['resync'];

export type ResyncAck = Signals['resync-ack'];

/** Request for full scans that begin after its receipt, each with a certificate (count and digest of the list's records). */
export type CertifyRequest = Signals['certify'];

export type CertifyAck = Signals['certify-ack'];

/** Request for permits to send requests to the API. It comes from a guest: a process that uses the API key beside the service. */
export type PermitsRequest = Signals['permits'];

/** The service's response to a {@link PermitsRequest}, with the permits that it grants. */
export type PermitsAck = Signals['permits-ack'];

/** Signals by the name of their type. */
export type Signals = { readonly [T in keyof typeof SCHEMAS]: z.infer<(typeof SCHEMAS)[T]> };
export type Signal = Signals[keyof Signals];

/**
 * Decodes and validates a message of the signals topic.
 *
 * @throws CellarstreamError `VALUE_UNREADABLE` if the message is no valid signal. The error's text has one line and does not quote values
 * of the message.
 */
export function parseSignal({ key, value }: Pick<KeyedMessage, 'key' | 'value'>): Signal {
  const json = parse(value?.toString() ?? '');
  const type = (json as { readonly type?: unknown } | null)?.type;
  if (!isType(type)) throw malformedSignalError('its type is not known');
  const { data, error } = SCHEMAS[type].safeParse(json);
  if (!data) {
    const { path, message: what } = error.issues[0]!;
    throw malformedSignalError(`${path.join('.')}: ${what}`);
  }
  if (key?.toString() !== data.id) throw malformedSignalError('its key is not its id');
  return data;
}

/** Encodes a signal as a message for the signals topic. */
export function signalMessage(topic: string, signal: Signal): Message {
  return { topic, key: signal.id, value: Buffer.from(JSON.stringify(signal)) };
}

function isType(type: unknown): type is keyof typeof SCHEMAS {
  return typeof type === 'string' && Object.hasOwn(SCHEMAS, type);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw malformedSignalError('it is not JSON');
  }
}

function malformedSignalError(why: string): CellarstreamError {
  return new CellarstreamError('VALUE_UNREADABLE', `no signal: ${why}`);
}
