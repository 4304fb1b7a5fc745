import type pc from 'picocolors';
import type { Consumed } from '../consumers/consumed.ts';
import type { ChangeEvent, Op } from '../schemas/envelope.ts';
import { stringifyJson } from '../schemas/json.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { OrderStatusChange } from '../schemas/order-status-change.ts';

type Colors = ReturnType<typeof pc.createColors>;

/** What `replay` shows: an event of a resource, or a status change. */
export type Replayed = ChangeEvent | OrderStatusChange;

const WORDS: Readonly<Record<Op, string>> = {
  r: 'read',
  c: 'created',
  u: 'updated',
  d: 'deleted',
};
const PATHS_SHOWN = 4;

/**
 * A message as JSON: its place, time and key, then the fields of its value, or `tombstone` where it
 * has none. Numbers of the API are written as it sent them.
 */
export function jsonLine({
  key,
  partition,
  offset,
  timestamp,
  headers,
  value,
}: Consumed<Replayed>) {
  const place = { key, partition, offset: Number(offset), timestamp };
  const line = {
    ...place,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(value ?? { tombstone: true }),
  };
  return stringifyJson(line as unknown as JsonObject);
}

/** A message for people: when, where, whose, what. Of changes the paths, not the values. */
export function eventLine(message: Consumed<Replayed>, of: string, colors: Colors): string {
  const { key, partition, offset, timestamp, value } = message;
  const time = new Date(timestamp).toISOString().replace('T', ' ').replace('Z', '');
  const place = `${partition}:${offset}`.padEnd(10);
  return `${colors.dim(time)}  ${colors.dim(place)} ${textOf(key, value, of, colors)}`;
}

function textOf(key: string | null, value: Replayed | null, of: string, colors: Colors): string {
  if (value === null) return `${'tombstone'.padEnd(9)} ${of} ${key}`;
  if (!('op' in value)) {
    const { subject, subject_id, field, from, to } = value;
    const name = subject === 'order' ? field : `${subject}${mark(subject_id)}.${field}`;
    return `order ${key}  ${name} ${colors.dim(from ?? '∅')} → ${colors.bold(to ?? '∅')}`;
  }
  const { op, changed } = value;
  const more = changed.length - PATHS_SHOWN;
  const paths = [...changed.slice(0, PATHS_SHOWN), ...(more > 0 ? [`${more} more`] : [])];
  return `${WORDS[op].padEnd(9)} ${of} ${key}  ${colors.dim(paths.join(', '))}`.trimEnd();
}

function mark(subjectId: string | null): string {
  return subjectId === null ? '' : `[${subjectId}]`;
}
