import { createHash } from 'node:crypto';
import type { ChangeFacts, EnvelopeCodec } from '../../schemas/events/envelope.ts';
import { deadLetterCodec } from '../../schemas/events/dead-letter.ts';
import type { DeadLetter } from '../../schemas/events/dead-letter.ts';
import { longOf } from '../../schemas/avro/field-codecs.ts';
import { stringifyJson } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { orderStatusChangeCodec } from '../../schemas/events/order-status-change.ts';
import { frame } from '../../schemas/registry/wire.ts';
import type { Change } from '../../streams/diff/change.ts';
import type { StatusChange } from '../../resources/orders/order-status.ts';
import { offsetOf } from '../../streams/records/records.ts';
import type { RejectedRecord } from '../../streams/records/records.ts';
import type { Message } from '../../sinks/sink.ts';
import type { SchemaTopic } from '../../sinks/topics/destination.ts';

/** Whose events they are. */
export interface Origin {
  readonly account: string;
  readonly resource: string;
  /** Of this software. */
  readonly version: string;
}

const CONNECTOR = 'cellarstream';

/** What an event says of a change beside its images; `now` is ms since the epoch. */
export function changeFacts(
  { op, images, changed, updatedAt }: Change,
  sequence: number,
  origin: Origin,
  now: number,
): ChangeFacts {
  return {
    op,
    ts_ms: now,
    changed,
    source: {
      connector: CONNECTOR,
      version: origin.version,
      name: origin.account,
      resource: origin.resource,
      ts_ms: updatedAt,
      snapshot: op === 'r' && images.before === null ? 'true' : 'false', // one that is repeated is none
      sequence,
    },
  };
}

/** A change of a record, in the topic of its resource; after a deletion follows a tombstone. */
export function changeMessages(
  change: Change,
  sequence: number,
  at: {
    readonly to: SchemaTopic;
    readonly codec: EnvelopeCodec;
    readonly origin: Origin;
    readonly now: number;
  },
): Message[] {
  const { to, codec, origin, now } = at;
  const { topic, schemaId } = to;
  const event = { ...change.images, ...changeFacts(change, sequence, origin, now) };
  const message: Message = { topic, key: change.key, value: codec.message(schemaId, event) };
  return change.op === 'd' ? [message, { topic, key: change.key, value: null }] : [message];
}

/** A status change as a CloudEvent in binary mode: its attributes are headers. */
export function statusMessage(
  status: StatusChange,
  order: {
    readonly key: string;
    /** Its `order_number` as the API sent it. */
    readonly number: JsonValue | undefined;
    readonly sequence: number;
  },
  at: { readonly to: SchemaTopic; readonly origin: Origin; readonly now: number },
): Message {
  const { to, origin, now } = at;
  const { subject, subjectId, field, from, to: value, changedAt } = status;
  const identity = [origin.account, order.key, subject, subjectId, field, order.sequence];
  const id = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 32);
  const event = orderStatusChangeCodec.encode({
    event_id: id,
    order_number: longOf(order.number),
    subject,
    subject_id: subjectId,
    field,
    from,
    to: value,
    changed_at: changedAt,
    observed_at: now,
  });
  return {
    topic: to.topic,
    key: order.key,
    value: frame(to.schemaId, event),
    headers: {
      ce_id: id,
      ce_type: 'cellarstream.OrderStatusChange',
      ce_source: `/cellarstream/${origin.account}/${origin.resource}`,
      ce_specversion: '1.0',
      ce_time: new Date(changedAt ?? now).toISOString(),
      'content-type': 'application/vnd.confluent.avro',
    },
  };
}

/**
 * A record that can't be published, with the reason: one message, or numbered parts of it where its
 * text is longer than `MAX_PART_CHARS`.
 */
export function deadLetterMessages(
  rejected: RejectedRecord,
  at: {
    readonly to: SchemaTopic;
    readonly resource: string;
    /** Of the page that it came on; what has one of its own goes by that. */
    readonly offset: number;
    readonly now: number;
    /** Of one message. */
    readonly maxBytes: number;
  },
): Message[] {
  const { to, resource, now } = at;
  const { reason, key } = rejected;
  const offset = offsetOf(rejected, at.offset);
  const maxChars = Math.min(MAX_PART_CHARS, Math.floor(at.maxBytes / MAX_CHAR_BYTES));
  const text = rejected.reason === 'unreadable' ? rejected.raw : stringifyJson(rejected.raw);
  const letter = { resource, reason, message: REASONS[reason], offset, observed_at: now };
  const message = (part: Pick<DeadLetter, 'raw' | 'sha256' | 'length' | 'part' | 'parts'>) => ({
    topic: to.topic,
    key,
    value: frame(to.schemaId, deadLetterCodec.encode({ ...letter, ...part })),
  });
  if (text.length <= maxChars) {
    return [message({ raw: text, sha256: null, length: null, part: null, parts: null })];
  }
  const sha256 = createHash('sha256').update(text).digest('hex');
  const length = Buffer.byteLength(text);
  const pieces = text.match(piecesOf(maxChars)) ?? [];
  return pieces.map((raw, place) =>
    message({ raw, sha256, length, part: place + 1, parts: pieces.length }),
  );
}

const MAX_PART_CHARS = 200_000;
/** In UTF-8, with room for what a letter says beside its text. */
const MAX_CHAR_BYTES = 4;
/** By code points, of two chars at most: no piece begins or ends within one. */
const piecesOf = (maxChars: number) => new RegExp(`.{1,${Math.floor(maxChars / 2)}}`, 'gsu');

const REASONS: Readonly<Record<RejectedRecord['reason'], string>> = {
  'not-an-object': 'the element of data is not an object',
  'no-key': 'the record has no usable key: an integer, or a text that is not empty nor too long',
  'conflicting-duplicate':
    'another record of the same page has its key, with other content: the first one stays',
  'too-large': 'the event is larger than a message may be; what was published before stays',
  unreadable:
    'the record is not JSON: raw is its text, or its SHA-256 and length where fields of the list are hidden',
};
