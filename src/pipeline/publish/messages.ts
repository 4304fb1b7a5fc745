import { createHash } from 'node:crypto';
import { statusChanges } from '../../resources/orders/order-status.ts';
import type { KeyedStatusChange, StatusChange } from '../../resources/orders/order-status.ts';
import type { ResourceRules } from '../../resources/resources.ts';
import { longOf } from '../../schemas/avro/field-codecs.ts';
import type { ChangeFacts, EnvelopeCodec } from '../../schemas/events/envelope.ts';
import { orderStatusChangeCodec } from '../../schemas/events/own-records.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { frame } from '../../schemas/registry/wire.ts';
import { maxEventBytes } from '../../sinks/producer/record-batch.ts';
import type { Message } from '../../sinks/sink.ts';
import type { Destination, SchemaTopic } from '../../sinks/topics/destination.ts';
import type { ImageUpdate } from '../../state/store.ts';
import type { Change } from '../../streams/diff/change.ts';
import type { KnownRejects } from '../../streams/records/known-rejects.ts';
import type { KeyedRecord } from '../../streams/records/page-record.ts';
import type { RejectedRecord } from '../../streams/records/records.ts';
import type { SchemaEvolution } from '../codec/schema-evolution.ts';
import { deadLetterMessages } from './dead-letters.ts';
import type { RecordKeys } from './record-keys.ts';

/** What the changes of a page come to. */
export interface Publication {
  readonly messages: readonly Message[];
  readonly images: readonly ImageUpdate[];
  readonly statusChanges: readonly KeyedStatusChange[];
  /** What goes to dead letters. */
  readonly rejected: readonly RejectedRecord[];
  /** Keys of records that are too large. */
  readonly unpublished: readonly string[];
  /** The sequence of its last event. */
  readonly sequence: number;
}

export interface PublicationOptions {
  readonly destination: Destination;
  readonly rules: ResourceRules;
  readonly evolution: Pick<SchemaEvolution, 'current'>;
  readonly origin: Origin;
  readonly recordKeys: RecordKeys;
  /** The sequence of the event before the first. */
  readonly sequence: number;
  /** Of the page, as the API sent them. */
  readonly records: readonly KeyedRecord[];
  readonly offset: number;
  /** Rejects that are not news make no dead letters. */
  readonly isNews: KnownRejects;
  /** Published at: ms since the epoch. */
  readonly now: number;
}

/**
 * Changes of a resource, and records that can't be published, as messages; each event with the next
 * sequence. A change whose event no batch can hold goes to dead letters instead, and its image stays
 * as it was: once the record is small enough, it is published.
 */
export function publicationOf(
  changes: readonly Change[],
  others: readonly RejectedRecord[],
  options: PublicationOptions,
): Publication {
  const { destination, rules, evolution, origin, recordKeys, records, isNews, offset, now } =
    options;
  const { deadLetters } = destination;
  const topic = destination.records(rules.resource);
  const maxBytes = maxEventBytes(destination.maxMessageBytes.get(topic));
  const statuses = rules.statusFields && destination.statusChanges;
  const messages: Message[] = [];
  const images: ImageUpdate[] = [];
  const found: KeyedStatusChange[] = [];
  const rejected: RejectedRecord[] = others.filter(isNews);
  let { sequence } = options;

  /** Keys of which a change is left out: what follows it says nothing of what is published. */
  const leftOut = new Set<string>();
  for (const change of changes) {
    const { key, op } = change;
    if (leftOut.has(key)) continue;
    const { schemaId, codec } = evolution.current()!; // what was read into a change has a schema
    const to = { topic, schemaId };
    const events = changeMessages(change, sequence + 1, { to, codec, origin, now });
    const isTooLarge = events.some(({ value }) => value && value.length > maxBytes);
    // What a deletion shows has been published before: it is not much larger now.
    if (isTooLarge && op !== 'd') {
      const raw = records.findLast((each) => each.key === key)?.json ?? change.after;
      const reject: RejectedRecord = { reason: 'too-large', raw, key };
      if (isNews(reject)) rejected.push(reject);
      leftOut.add(key);
      continue;
    }
    sequence += 1;
    const keyBytes = recordKeys.events(key);
    messages.push(...(keyBytes ? events.map((event) => ({ ...event, keyBytes })) : events));
    for (const status of statuses ? statusChanges(change) : []) {
      const order = { key, number: change.after?.order_number, sequence };
      const message = statusMessage(status, order, { to: statuses!, origin, now });
      messages.push(keyBytes ? { ...message, keyBytes: recordKeys.statusChanges(key) } : message);
      found.push({ key, change: status });
    }
    const { after } = change.images;
    const image = after && { schemaId, bytes: after };
    images.push({ key, sequence, image });
  }
  const maxLetterBytes = maxEventBytes(destination.maxMessageBytes.get(deadLetters.topic));
  const at = {
    to: deadLetters,
    resource: origin.resource,
    offset,
    now,
    maxBytes: maxLetterBytes,
  };
  for (const record of rejected) messages.push(...deadLetterMessages(record, at));
  const unpublished = [...leftOut];
  return { messages, images, statusChanges: found, rejected, unpublished, sequence };
}

/** Whose events they are. */
export interface Origin {
  readonly account: string;
  readonly resource: string;
  /** The prefix of the account's topics. */
  readonly prefix: string;
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
      db: origin.prefix,
      table: origin.resource,
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
  const { before, after } = change.images;
  const { op, ts_ms, changed, source } = changeFacts(change, sequence, origin, now);
  const event = { before, after, op, ts_ms, changed, source };
  const message: Message = { topic, key: change.key, value: codec.message(schemaId, event) };
  return change.op === 'd' ? [message, { topic, key: change.key, value: null }] : [message];
}

/** A stream-table join that reads by timestamps has the order's event in its table before it reads the status change. */
const STATUS_CHANGE_OFFSET_MS = 1;

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
    timestampOffset: STATUS_CHANGE_OFFSET_MS,
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
