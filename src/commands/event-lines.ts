import type pc from 'picocolors';
import type { Consumed } from '../consumers/consumed.ts';
import type { DeadLetter, OrderStatusChange } from '../schemas/events/own-records.ts';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import { stringifyJson } from '../schemas/json/json.ts';
import type { JsonObject } from '../schemas/json/json.ts';
import { firstPaths, statusName, OP_LABELS } from './change-labels.ts';

type Colors = ReturnType<typeof pc.createColors>;

/** A value that `replay` prints: an event of a resource, a status change, or a dead letter. */
export type ReplayedValue = ChangeEvent | OrderStatusChange | DeadLetter;

/**
 * Formats a message as JSON: partition, offset, time and key, then the fields of its value, or `tombstone` if it has none. Numbers from the
 * API are written as received.
 */
export function jsonLine({
  key,
  partition,
  offset,
  timestamp,
  headers,
  value,
}: Consumed<ReplayedValue>) {
  const place = { key, partition, offset: Number(offset), timestamp };
  const line = {
    ...place,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(value ?? { tombstone: true }),
  };
  return stringifyJson(line as unknown as JsonObject); // the value is JSON, but its interfaces have no index signature
}

/**
 * Formats a message as a readable line: time, position, key and kind of change. It contains the paths of changed fields, not their values.
 */
export function eventLine(message: Consumed<ReplayedValue>, of: string, colors: Colors): string {
  const { key, partition, offset, timestamp, value } = message;
  const time = new Date(timestamp).toISOString().replace('T', ' ').replace('Z', '');
  const place = `${partition}:${offset}`.padEnd(10);
  return `${colors.dim(time)}  ${colors.dim(place)} ${textOf(key, value, of, colors)}`;
}

function textOf(
  key: string | null,
  value: ReplayedValue | null,
  of: string,
  colors: Colors,
): string {
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
  const paths = firstPaths(changed).join(', ');
  return `${OP_LABELS[op].padEnd(9)} ${of} ${key}  ${colors.dim(paths)}`.trimEnd();
}
