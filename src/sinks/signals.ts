import { z } from 'zod';
import { CellarstreamError } from '../errors.ts';
import type { Message } from './sink.ts';

/** How long Kafka keeps a signal, in days: so long a request waits for a service. */
export const SIGNAL_DAYS = 7;

const ID = z.string().min(1).max(200);
const NAME = z.string().min(1).max(200);
const TIME = z.iso.datetime({ offset: true });

/** Kafka's and the API's numbers have 64 bits. */
const isLong = (text: string) => /^\d{1,19}$/.test(text) && BigInt(text) < 2n ** 63n;

const REQUEST = z
  .object({
    type: z.literal('resync'),
    /** The message's key too. */
    id: ID,
    account: NAME,
    /** Names of lists, such as `orders`. */
    resources: z.array(NAME).min(1).max(50),
    /** One order alone; as text where JSON's numbers can't hold it. */
    order_number: z
      .union([z.int().min(0), z.string().refine(isLong)])
      .nullable()
      .default(null),
    /** Only what was modified at that time or later, or has no time. */
    since: TIME.nullable().default(null),
    requested_at: TIME,
  })
  .refine(({ order_number, since }) => order_number === null || since === null, {
    path: ['since'],
    message: 'goes with no order_number',
  });

const ACK = z.object({
  type: z.literal('resync-ack'),
  /** Of the request; the message's key too. */
  id: ID,
  account: NAME,
  resource: NAME,
  status: z.enum(['done', 'refused', 'failed']),
  /** Published for it in the resource's topic. */
  events: z.int().min(0),
  message: z.string().nullable(),
  at: TIME,
});

/** Asks for what the API says now to be published again: all of it, one order, or what is newer. */
export type ResyncRequest = z.infer<typeof REQUEST>;

/** What became of a request, for one of its resources. */
export type ResyncAck = z.infer<typeof ACK>;

export type Signal = ResyncRequest | ResyncAck;

const SIGNAL = z.union([REQUEST, ACK]);

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
  const schema = type === 'resync' ? REQUEST : type === 'resync-ack' ? ACK : SIGNAL;
  const { data, error } = schema.safeParse(json);
  if (!data) {
    const { path, message: what } = error.issues[0]!;
    const isTyped = schema !== SIGNAL;
    throw unreadable(isTyped ? `${path.join('.')}: ${what}` : 'its type is not known');
  }
  if (message.key?.toString() !== data.id) throw unreadable('its key is not its id');
  return data;
}

/** A signal as a message. */
export function signalMessage(topic: string, signal: Signal): Message {
  return { topic, key: signal.id, value: Buffer.from(JSON.stringify(signal)) };
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
