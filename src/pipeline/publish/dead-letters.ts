import { createHash } from 'node:crypto';
import { deadLetterCodec } from '../../schemas/events/own-records.ts';
import type { DeadLetter } from '../../schemas/events/own-records.ts';
import { stringifyJson } from '../../schemas/json/json.ts';
import { frame } from '../../schemas/registry/wire.ts';
import type { Message } from '../../sinks/sink.ts';
import type { SchemaTopic } from '../../sinks/topics/destination.ts';
import { offsetOf } from '../../streams/records/records.ts';
import type { RejectedRecord } from '../../streams/records/records.ts';

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
    'the record is not JSON: raw is its text, or its SHA-256 and length where fields of the list are hidden; or every page that holds it fails, and raw says after which key it stands',
};
