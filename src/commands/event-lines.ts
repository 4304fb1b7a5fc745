import type pc from 'picocolors';
import type { Consumed } from '../consumers/consumed.ts';
import type { DeadLetter, OrderStatusChange } from '../schemas/events/own-records.ts';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import { stringifyJson } from '../schemas/json/json.ts';
import type { JsonObject } from '../schemas/json/json.ts';
import { somePaths, statusName, WORDS } from './change-words.ts';

type Colors = ReturnType<typeof pc.createColors>;

/** What `replay` shows: an event of a resource, a status change, or a dead letter. */
export type Replayed = ChangeEvent | OrderStatusChange | DeadLetter;

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
  return stringifyJson(line as unknown as JsonObject); // all JSON, by interfaces that have no index
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
  if ('reason' in value) {
    const { resource, reason, message, part, parts } = value;
    const which = part === null ? '' : ` (part ${part} of ${parts})`;
    return `${'rejected'.padEnd(9)} ${resource} ${key ?? '∅'}  ${reason}${which} ${colors.dim(message)}`;
  }
  if (!('op' in value)) {
    const { subject, subject_id, field, from, to } = value;
    const name = statusName(subject, subject_id, field);
    return `order ${key}  ${name} ${colors.dim(from ?? '∅')} → ${colors.bold(to ?? '∅')}`;
  }
  const { op, changed } = value;
  const paths = somePaths(changed).join(', ');
  return `${WORDS[op].padEnd(9)} ${of} ${key}  ${colors.dim(paths)}`.trimEnd();
}
