import type { Consumed } from '../consumers/consumed.ts';
import type { ListDescription } from '../description/description.ts';
import type { Published } from '../observe/hooks.ts';
import type { StatusChange } from '../resources/orders/order-status.ts';
import type { ChangeEvent, Op } from '../schemas/events/envelope.ts';
import type { DeadLetter, OrderStatusChange } from '../schemas/events/own-records.ts';
import { stringifyJson } from '../schemas/json/json.ts';
import type { JsonObject } from '../schemas/json/json.ts';
import type { Colors } from './terminal.ts';

/** A value that `replay` prints: an event of a resource, a status change, or a dead letter. */
export type ReplayedValue = ChangeEvent | OrderStatusChange | DeadLetter;

/** Printed label and color of each kind of event. */
const OPS = {
  r: { label: 'read', color: 'blue' },
  c: { label: 'created', color: 'green' },
  u: { label: 'updated', color: 'yellow' },
  d: { label: 'deleted', color: 'red' },
} as const satisfies Record<Op, { label: string; color: keyof Colors }>;

const PATHS_SHOWN = 4;

/**
 * Formats a message as JSON: partition, offset, time and key, then the fields of its value, or `tombstone` if it has none. Numbers from the
 * API are written as received.
 */
export function jsonLine(message: Consumed<ReplayedValue>): string {
  const { key, partition, offset, timestamp, headers, value } = message;
  const line = {
    ...{ key, partition, offset: Number(offset), timestamp },
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(value ?? { tombstone: true }),
  };
  return stringifyJson(line as unknown as JsonObject); // the value is JSON, but its interfaces have no index signature
}

/** Formats a message as a readable line. The line contains the paths of changed fields, but not their values, which may be personal. */
export function eventLine(message: Consumed<ReplayedValue>, of: string, colors: Colors): string {
  const { partition, offset, timestamp } = message;
  const time = new Date(timestamp).toISOString().replace('T', ' ').replace('Z', '');
  const position = `${partition}:${offset}`.padEnd(10);
  return `${colors.dim(time)}  ${colors.dim(position)} ${textOf(message, of, colors)}`;
}

function textOf(
  { key, value }: Pick<Consumed<ReplayedValue>, 'key' | 'value'>,
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
    const status = { ...value, subjectId: value.subject_id };
    return `order ${key}  ${statusText(status, colors)}`;
  }
  const { op, changed } = value;
  return `${OPS[op].label.padEnd(9)} ${of} ${key}  ${colors.dim(firstPaths(changed).join(', '))}`.trimEnd();
}

/**
 * Formats a line for each change except those of initial snapshots: the record's key, its status changes with values, and the paths of
 * other changed fields without their values, which may be personal. Modification times are left out.
 */
export function changeLines(
  published: Published,
  { updated }: Pick<ListDescription, 'updated'>,
  colors: Colors,
  time: string,
): string[] {
  const { changes, statusChanges, resource } = published;
  return changes
    .filter(({ op }) => op !== 'r')
    .map(({ op, key, changed }) => {
      const statuses = statusChanges.filter((status) => status.key === key);
      const reportedPaths = new Set(statuses.map(({ change }) => pathOf(change)));
      const otherPaths = changed.filter(
        (path) => !reportedPaths.has(path) && !updated.includes(path.split('.').at(-1)!),
      );
      const details = [
        ...statuses.map(({ change }) => statusText(change, colors)),
        ...firstPaths(otherPaths),
      ].join(colors.dim(', '));
      const { label, color } = OPS[op];
      const what = `${colors.dim(time)} ${colors[color](label.padEnd(7))} ${resource} ${key}`;
      return details === '' ? what : `${what}  ${details}`;
    });
}

/** Path of a status field within an order, in the notation of an event's `changed`: `fulfillment_info[7].status`. */
function pathOf({ subject, subjectId, field }: StatusChange): string {
  const parents = {
    order: '',
    order_edit: `order_edit[${subjectId}].`,
    fulfillment: `fulfillment_info[${subjectId}].`,
    club_package: 'club_package_info.',
  };
  return parents[subject] + field;
}

/** A status change, from a message of `order-status-changes` or as the service reports it. */
type StatusText = Pick<StatusChange, 'subject' | 'subjectId' | 'from' | 'to'> & {
  readonly field: string;
};

/**
 * Formats a status and its values, such as `fulfillment[7].status open → sent`; the subject is left out for a status of the order itself.
 */
function statusText({ subject, subjectId, field, from, to }: StatusText, colors: Colors): string {
  const which = subjectId === null ? '' : `[${subjectId}]`;
  const name = subject === 'order' ? field : `${subject}${which}.${field}`;
  return `${name} ${colors.dim(from ?? '∅')} → ${colors.bold(to ?? '∅')}`;
}

/** Returns the first few paths of an event's changed fields, followed by the number of the others. */
function firstPaths(paths: readonly string[]): readonly string[] {
  const more = paths.length - PATHS_SHOWN;
  return more > 0 ? [...paths.slice(0, PATHS_SHOWN), `${more} more`] : paths;
}
