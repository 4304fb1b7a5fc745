// Signals: requests to a running service and its acknowledgements.

import { z } from 'zod';
import { CellarstreamError } from '../../core/errors.ts';
import type { Message } from '../sink.ts';

/** How long Kafka keeps a signal, in days: so long a request waits for a service. */
export const SIGNAL_DAYS = 7;

const ID = z.string().min(1).max(200);
const NAME = z.string().min(1).max(200);
const TIME = z.iso.datetime({ offset: true });

/** Kafka's and the API's numbers have 64 bits. */
const isLong = (text: string) => /^\d{1,19}$/.test(text) && BigInt(text) < 2n ** 63n;

const OF_ACCOUNT = {
  /** Of a request, and of what answers it; the message's key too. */
  id: ID,
  account: NAME,
};
const ASKS = {
  ...OF_ACCOUNT,
  /** Names of lists, such as `orders`. */
  resources: z.array(NAME).min(1).max(50),
  requested_at: TIME,
};
const ACKNOWLEDGES = {
  ...OF_ACCOUNT,
  resource: NAME,
  status: z.enum(['done', 'refused', 'failed']),
  message: z.string().nullable(),
  at: TIME,
};

const REQUEST = z
  .object({
    type: z.literal('resync'),
    ...ASKS,
    /** One order alone; as text where JSON's numbers can't hold it. */
    order_number: z
      .union([z.int().min(0), z.string().refine(isLong)])
      .nullable()
      .default(null),
    /** Only what was modified at that time or later, or has no time. */
    since: TIME.nullable().default(null),
  })
  .refine(({ order_number, since }) => order_number === null || since === null, {
    path: ['since'],
    message: 'goes with no order_number',
  });

const ACK = z.object({
  type: z.literal('resync-ack'),
  ...ACKNOWLEDGES,
  /** Published for it in the resource's topic. */
  events: z.int().min(0),
});

const CERTIFY = z.object({ type: z.literal('certify'), ...ASKS });

const CERTIFY_ACK = z.object({
  type: z.literal('certify-ack'),
  ...ACKNOWLEDGES,
  /** Of the certificate, which is in the same transaction; null where there is none. */
  number: z.int().min(0).nullable(),
});

/** Requests by the name of their quota: `login`, a list's, or `all` for all lists together. */
const QUOTAS = z
  .record(NAME, z.int().min(0).max(100))
  .refine((quotas) => Object.keys(quotas).length <= 20, { message: 'are too many' });

const PERMITS = z.object({
  type: z.literal('permits'),
  ...OF_ACCOUNT,
  /** Who asks. */
  asker: NAME,
  quotas: QUOTAS,
  requested_at: TIME,
});

const PERMITS_ACK = z.object({
  type: z.literal('permits-ack'),
  ...OF_ACCOUNT,
  /** Who gives them. */
  instance: NAME,
  /** No more of each than was asked for; what is left out is none. */
  granted: QUOTAS,
  /** They last so long, from when the asker sent its request. */
  for_ms: z.int().min(0),
  /** Why there are not as many as were asked for. */
  message: z.string().nullable(),
  at: TIME,
});

/** Asks for what the API says now to be published again: all of it, one order, or what is newer. */
export type ResyncRequest = z.infer<typeof REQUEST>;

/** What became of a request, for one of its resources. */
export type ResyncAck = z.infer<typeof ACK>;

/** Asks for a certificate of a complete reading that begins after the service has the request. */
export type CertifyRequest = z.infer<typeof CERTIFY>;

/** What became of it, for one of its resources. */
export type CertifyAck = z.infer<typeof CERTIFY_ACK>;

/** Asks whoever runs the account for a part of its quotas: for requests that others make. */
export type PermitsRequest = z.infer<typeof PERMITS>;

/** What of them the asker may make. */
export type PermitsAck = z.infer<typeof PERMITS_ACK>;

export type Signal =
  ResyncRequest | ResyncAck | CertifyRequest | CertifyAck | PermitsRequest | PermitsAck;

const SCHEMAS = {
  resync: REQUEST,
  'resync-ack': ACK,
  certify: CERTIFY,
  'certify-ack': CERTIFY_ACK,
  permits: PERMITS,
  'permits-ack': PERMITS_ACK,
} as const;

/**
 * Reads a message of the topic of signals.
 *
 * @throws CellarstreamError `VALUE_UNREADABLE` when it is none: in one line, without a value of it.
 */
export function parseSignal(message: {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
}): Signal {
  const json = parse(message.value?.toString() ?? '');
  const type = (json as { readonly type?: unknown } | null)?.type;
  if (!isType(type)) throw unreadable('its type is not known');
  const { data, error } = SCHEMAS[type].safeParse(json);
  if (!data) {
    const { path, message: what } = error.issues[0]!;
    throw unreadable(`${path.join('.')}: ${what}`);
  }
  if (message.key?.toString() !== data.id) throw unreadable('its key is not its id');
  return data;
}

/** A signal as a message. */
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
    throw unreadable('it is not JSON');
  }
}

function unreadable(why: string): CellarstreamError {
  return new CellarstreamError('VALUE_UNREADABLE', `no signal: ${why}`);
}
