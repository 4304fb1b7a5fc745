import { createHash } from 'node:crypto';
import { deadLetterCodec } from '../../schemas/events/own-records.ts';
import type { DeadLetter } from '../../schemas/events/own-records.ts';
import { stringifyJson } from '../../schemas/json/json.ts';
import { frame } from '../../schemas/registry/wire.ts';
import type { Message } from '../../sinks/sink.ts';
import type { SchemaTopic } from '../../sinks/topics/destination.ts';
import { listedOffset } from '../../streams/records/records.ts';
import type { RejectedRecord } from '../../streams/records/records.ts';

/**
 * Returns the dead letter of a rejected record: one message, or several numbered ones if the record's text is too long for one (see
 * `MAX_PART_CHARS` and `maxBytes`).
 */
export function deadLetterMessages(
  rejected: RejectedRecord,
  at: {
    readonly to: SchemaTopic;
    readonly resource: string;
    /** List offset of the record's page; null if it was on no page. Ignored if the record is unreadable: `rejected` has its offset. */
    readonly offset: number | null;
    readonly now: number;
    /** Maximum size of one dead letter message, in bytes. */
    readonly maxBytes: number;
  },
): Message[] {
  const { to, resource, now } = at;
  const { reason, key } = rejected;
  const offset = listedOffset(rejected, at.offset);
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
  return pieces.map((raw, index) =>
    message({ raw, sha256, length, part: index + 1, parts: pieces.length }),
  );
}

/** Maximum length of a record's text in one dead letter message, in UTF-16 code units. A small `maxBytes` lowers this maximum. */
const MAX_PART_CHARS = 200_000;
/** Bytes of a message that are reserved for each UTF-16 code unit of text: UTF-8 needs 3 at most, the rest is for the other fields. */
const MAX_CHAR_BYTES = 4;
/** Returns a pattern that matches pieces of text of at most `maxChars` UTF-16 code units, without splitting a surrogate pair. */
const piecesOf = (maxChars: number) => new RegExp(`.{1,${Math.floor(maxChars / 2)}}`, 'gsu'); // the pattern counts code points

const REASONS: Readonly<Record<RejectedRecord['reason'], string>> = {
  'not-an-object': 'the element of data is not an object',
  'no-key':
    'the record has no usable key, which is an integer, or a text neither empty nor too long',
  'conflicting-duplicate':
    'another record of the same page has the same key and other content: only the first is published',
  'too-large': 'the event exceeds the maximum message size; the version published before stays',
  unreadable:
    'the record is not JSON: raw is its text, or its SHA-256 and length where fields of the list are hidden; or every page that holds it fails, and raw says after which key it stands',
};
