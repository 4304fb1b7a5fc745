import { createHash } from 'node:crypto';
import { VERSION } from '../../core/version.ts';
import type { RecordSchema } from '../../schemas/avro/avro-schema.ts';
import { longOf } from '../../schemas/avro/field-codecs.ts';
import type { ChangeFacts, EnvelopeCodec } from '../../schemas/events/envelope.ts';
import { statusChangeCodec, statusChangeType } from '../../schemas/events/own-records.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { frame } from '../../schemas/registry/wire.ts';
import { maxEventBytes } from '../../sinks/producer/record-batch.ts';
import type { Message } from '../../sinks/sink.ts';
import type { SchemaTopic } from '../../sinks/topics/destination.ts';
import type { ImageUpdate } from '../../state/store.ts';
import type { Change } from '../../streams/diff/change.ts';
import { statusChanges } from '../../streams/diff/status-changes.ts';
import type { KeyedStatusChange, StatusChange } from '../../streams/diff/status-changes.ts';
import type { RejectFilter, RejectedRecord } from '../../streams/records/records.ts';
import type { KeyedRecord } from '../../streams/records/page-record.ts';
import type { SchemaEvolution } from '../codec/schema-evolution.ts';
import type { Task } from '../task.ts';
import { deadLetterMessages } from './dead-letters.ts';
import type { RecordKeys } from './record-keys.ts';

/** Messages and images that result from the changes of a page. */
export interface Publication {
  readonly messages: readonly Message[];
  readonly images: readonly ImageUpdate[];
  readonly statusChanges: readonly KeyedStatusChange[];
  readonly rejected: readonly RejectedRecord[];
  /** Keys of records whose events are too large to be published. */
  readonly unpublished: readonly string[];
  /**
   * Sequence number of the page's last event. If the page has no events: the number of the last event before the page (`sequence` of {@link
   * PublicationOptions}).
   */
  readonly sequence: number;
}

export interface PublicationOptions {
  readonly task: Pick<Task, 'account' | 'list' | 'config' | 'destination'>;
  readonly evolution: Pick<SchemaEvolution, 'current'>;
  /** Encoders of the keys of messages. Undefined if keys are text. */
  readonly recordKeys: RecordKeys | undefined;
  /** Sequence number of the task's last event before this page; the page's first event gets the next number. */
  readonly sequence: number;
  /** Records of the page as the API sent them; used for dead letters. */
  readonly records: readonly KeyedRecord[];
  readonly offset: number | null;
  readonly isNewReject: RejectFilter;
  /** Time of publication, in epoch ms. */
  readonly now: number;
}

/**
 * Turns a page's changes and rejected records into messages. Each event gets the next sequence number. A change whose event is too large
 * for a message is rejected, unless it is a deletion. Each newly rejected record gets a dead letter.
 */
export function publicationOf(
  changes: readonly Change[],
  others: readonly RejectedRecord[],
  options: PublicationOptions,
): Publication {
  const { task, evolution, recordKeys, records, isNewReject, offset, now } = options;
  const { account, list, config, destination } = task;
  const { deadLetters } = destination;
  const { prefix } = config.topics;
  const origin = { account: account.name, resource: list.name, prefix, version: VERSION };
  const topic = destination.records(list.name);
  const maxBytes = maxEventBytes(destination.maxMessageBytes.get(topic));
  const statusTopic = destination.statusChanges.get(list.name);
  const statusTo = statusTopic && list.statuses && { ...statusTopic, schema: list.statuses.schema };
  const messages: Message[] = [];
  const images: ImageUpdate[] = [];
  const keyedStatuses: KeyedStatusChange[] = [];
  const rejected: RejectedRecord[] = others.filter(isNewReject);
  let { sequence } = options;

  /**
   * Keys with a change whose event is too large. Later changes of these keys in the page are omitted too, because their `before` is not
   * published.
   */
  const leftOut = new Set<string>();
  for (const change of changes) {
    const { key, op } = change;
    if (leftOut.has(key)) continue;
    const { schemaId, codec } = evolution.current!; // defined: a change's image has been encoded in it
    const to = { topic, schemaId };
    const events = changeMessages(change, sequence + 1, { to, codec, origin, now });
    const isTooLarge = events.some(({ value }) => value && value.length > maxBytes);
    // A deletion contains an image that has been published before, so its event is hardly larger than that one's.
    if (isTooLarge && op !== 'd') {
      // The record's stored image is not replaced, so that the record is published once it is small enough.
      const raw = records.findLast((each) => each.key === key)?.json ?? change.after;
      const reject: RejectedRecord = { reason: 'too-large', raw, key };
      if (isNewReject(reject)) rejected.push(reject);
      leftOut.add(key);
      continue;
    }
    sequence += 1;
    const keyBytes = recordKeys?.events(key);
    messages.push(...(keyBytes ? events.map((event) => ({ ...event, keyBytes })) : events));
    for (const status of statusTo ? statusChanges(change, list, config.description.times) : []) {
      const record = { key, image: change.after!, sequence };
      const message = statusMessage(status, record, { to: statusTo!, origin, now });
      const statusKey = recordKeys?.statusChanges(key);
      messages.push(statusKey ? { ...message, keyBytes: statusKey } : message);
      keyedStatuses.push({ key, change: status });
    }
    const { after: bytes } = change.images;
    images.push({ key, sequence, image: bytes && { schemaId, bytes } });
  }
  const maxLetterBytes = maxEventBytes(destination.maxMessageBytes.get(deadLetters.topic));
  const at = { to: deadLetters, resource: list.name, offset, now, maxBytes: maxLetterBytes };
  for (const record of rejected) messages.push(...deadLetterMessages(record, at));
  const unpublished = [...leftOut];
  return { messages, images, statusChanges: keyedStatuses, rejected, unpublished, sequence };
}

/** Account, list and software that events come from. */
export interface EventOrigin {
  readonly account: string;
  readonly resource: string;
  /** The prefix of the account's topics. */
  readonly prefix: string;
  readonly version: string;
}

const CONNECTOR = 'cellarstream';

/** Returns the fields of a change's event, except `before` and `after`. `now` is in epoch ms. */
export function changeFacts(
  { op, images, changed, updatedAt }: Change,
  sequence: number,
  origin: EventOrigin,
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
      snapshot: op === 'r' && images.before === null ? 'true' : 'false', // `false` for republished records, which have a `before`
      sequence,
      db: origin.prefix,
      table: origin.resource,
    },
  };
}

/** Returns the messages of a change in its resource's topic: the event, and after a deletion a tombstone. */
export function changeMessages(
  change: Change,
  sequence: number,
  at: {
    readonly to: SchemaTopic;
    readonly codec: EnvelopeCodec;
    readonly origin: EventOrigin;
    readonly now: number;
  },
): Message[] {
  const { codec, origin, now } = at;
  const { topic, schemaId } = at.to;
  const { key, op, images } = change;
  const event = { ...images, ...changeFacts(change, sequence, origin, now) };
  const message: Message = { topic, key, value: codec.message(schemaId, event) };
  return op === 'd' ? [message, { topic, key, value: null }] : [message];
}

/**
 * Number of ms by which a status change's message has a later timestamp than the event of its record. A stream-table join by timestamps
 * thus reads the record first.
 */
const STATUS_CHANGE_OFFSET_MS = 1;

/** Returns a status change as a CloudEvent in binary mode, with its attributes as headers. */
export function statusMessage(
  status: StatusChange,
  record: { readonly key: string; readonly image: JsonObject; readonly sequence: number },
  at: {
    readonly to: SchemaTopic & { readonly schema: RecordSchema };
    readonly origin: EventOrigin;
    readonly now: number;
  },
): Message {
  const { to, origin, now } = at;
  const { subject, subjectId, field, from, to: value, changedAt } = status;
  const { key, image, sequence } = record;
  const identity = [origin.account, key, subject, subjectId, field, sequence];
  const id = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 32);
  const event = {
    event_id: id,
    key,
    subject,
    subject_id: subjectId,
    field,
    from,
    to: value,
    changed_at: changedAt,
    observed_at: now,
  };
  const codec = statusChangeCodec(to.schema);
  const keyValues = codec.keyFields.map((name) => [name, longOf(image[name])] as const);
  return {
    topic: to.topic,
    key,
    value: frame(to.schemaId, codec.encode({ ...Object.fromEntries(keyValues), ...event })),
    timestampOffset: STATUS_CHANGE_OFFSET_MS,
    headers: {
      ce_id: id,
      ce_type: statusChangeType(to.schema),
      ce_source: `/cellarstream/${origin.account}/${origin.resource}`,
      ce_specversion: '1.0',
      ce_time: new Date(changedAt ?? now).toISOString(),
      'content-type': 'application/vnd.confluent.avro',
    },
  };
}
