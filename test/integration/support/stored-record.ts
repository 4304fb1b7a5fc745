import { createHash } from 'node:crypto';

/** A record as a reader gives it. */
export interface StoredRecord {
  readonly partition: number;
  readonly offset: number;
  /** Ms since the epoch. */
  readonly timestamp: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: string, text: string])[];
}

/** What two records that are the same have in common, wherever they are; short enough to be shown. */
export function contentOf({
  key,
  value,
  headers,
}: Pick<StoredRecord, 'key' | 'value' | 'headers'>): string {
  return JSON.stringify([brief(key), brief(value), headers.map((header) => [...header])]);
}

/** All of a record, short enough to be shown. */
export function textOf(record: StoredRecord): string {
  const { partition, offset, timestamp } = record;
  return `${partition}:${offset} ${timestamp} ${contentOf(record)}`;
}

export function inOrder<T extends Pick<StoredRecord, 'partition' | 'offset'>>(
  records: readonly T[],
): T[] {
  return [...records].sort((a, b) => a.partition - b.partition || a.offset - b.offset);
}

const SHOWN_BYTES = 40;

function brief(bytes: Buffer | null): string | null {
  if (bytes === null) return null;
  if (bytes.length <= SHOWN_BYTES) return bytes.toString('latin1');
  const digest = createHash('sha256').update(bytes).digest('base64').slice(0, 12);
  return `${bytes.length} bytes, ${digest}`;
}
