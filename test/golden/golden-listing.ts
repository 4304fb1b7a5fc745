import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import avro from 'avsc';
import { isFramed, unframe } from '../../src/schemas/registry/wire.ts';
import type { GoldenBatch } from './golden-kafka.ts';
import type { GoldenRun } from './golden-run.ts';

/** Digest of one topic, of all schemas, or of the settings of all topics. */
export interface GoldenHash {
  /** Number of messages, schemas or topics. */
  readonly entries: number;
  /** SHA-256 of the whole listing. */
  readonly sha256: string;
  /** The first digits of the SHA-256 of the first 10, 20, ... lines of the listing, to find the first difference. */
  readonly marks: string;
}

/** A topic as text: a line for each batch, message and transaction marker. */
export interface Listing {
  readonly entries: number;
  readonly lines: readonly string[];
}

export const LINES_PER_MARK = 10;
const MARK_DIGITS = 4;

/** Everything that a run has written, by topic; beside the topics `schemas` and `topic settings`. */
export function listingsOf({ kafka, registry }: GoldenRun): ReadonlyMap<string, Listing> {
  const listings = new Map<string, Listing>();
  for (const [topic, { partitions }] of kafka.topics) {
    const lines: string[] = [];
    let entries = 0;
    for (let partition = 0; partition < partitions; partition++) {
      for (const batch of kafka.log(topic, partition)) {
        lines.push(...linesOf(partition, batch));
        entries += batch.messages.length;
      }
    }
    listings.set(topic, { entries, lines });
  }
  const schemas = registry.registrations.map(
    ({ subject, id }) => `${subject} ${id} ${registry.text(id)}`,
  );
  const settings = [...kafka.topics].map(([topic, { partitions, replication, settings: all }]) => {
    const texts = all.map(([name, value]) => `${name}=${value}`);
    return [topic, `partitions=${partitions}`, `replication=${replication}`, ...texts].join(' ');
  });
  listings.set('schemas', { entries: schemas.length, lines: schemas });
  listings.set('topic settings', { entries: settings.length, lines: settings });
  return listings;
}

export function hashOf({ entries, lines }: Listing): GoldenHash {
  const hash = createHash('sha256');
  const marks: string[] = [];
  for (const [n, line] of lines.entries()) {
    hash.update(line).update('\n');
    if ((n + 1) % LINES_PER_MARK === 0) {
      marks.push(hash.copy().digest('hex').slice(0, MARK_DIGITS));
    }
  }
  return { entries, sha256: hash.digest('hex'), marks: marks.join(' ') };
}

/** Index of the first line that may differ from the run that `expected` is of. */
export function firstDifference({ lines }: Listing, expected: GoldenHash): number {
  const found = hashOf({ entries: 0, lines }).marks.split(' ');
  const same = expected.marks.split(' ').findIndex((mark, n) => mark !== found[n]);
  const equal = same < 0 ? Math.min(found.length, expected.marks.split(' ').length) : same;
  return Math.min(equal * LINES_PER_MARK, Math.max(0, lines.length - 1));
}

/** A line of a listing with its Avro value decoded, for readers. */
export function readable(line: string, { registry }: Pick<GoldenRun, 'registry'>): string {
  const hex = / value=([0-9a-f]+)$/.exec(line)?.[1];
  const value = Buffer.from(hex ?? '', 'hex');
  if (!isFramed(value)) return line;
  const { schemaId, payload } = unframe(value);
  const type = avro.Type.forSchema(registry.schema(schemaId) as avro.Schema);
  return `${line} = schema ${schemaId} ${JSON.stringify(type.fromBuffer(payload))}`;
}

function linesOf(partition: number, { offset, transaction, content, messages }: GoldenBatch) {
  const head = `${partition}/${offset}`;
  if (messages.length === 0) return [`${head} marker ${transaction.outcome}`];
  const batch = content ? [`${head} batch ${digestOf(content)}`] : [];
  const lines = messages.map((message) => {
    const headers = message.headers.map(([name, value]) => `${name}:${textOf(value)}`).join(' ');
    return [
      `${partition}/${message.offset}`,
      transaction.outcome,
      `at=${message.timestamp}`,
      `key=${textOf(message.key)}`,
      `headers=[${headers}]`,
      `value=${textOf(message.value)}`,
    ].join(' ');
  });
  return [...batch, ...lines];
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Bytes as JSON text if they are text, else in hex. */
function textOf(bytes: Buffer | null): string {
  if (bytes === null) return 'null';
  return isUtf8(bytes) && !isFramed(bytes)
    ? JSON.stringify(bytes.toString())
    : bytes.toString('hex');
}
