import type { Consumed } from '../consumers/consumed.ts';
import type { ListDescription, StatusTable } from '../description/description.ts';
import type { Published } from '../observe/hooks.ts';
import type { ChangeEvent, Op } from '../schemas/events/envelope.ts';
import type { DeadLetter, StatusChangeEvent } from '../schemas/events/own-records.ts';
import { stringifyJson } from '../schemas/json/json.ts';
import type { JsonObject } from '../schemas/json/json.ts';
import type { StatusChange } from '../streams/diff/status-changes.ts';
import type { Colors } from './terminal.ts';

/** A value that `replay` prints: an event of a resource, a status change, or a dead letter. */
export type ReplayedValue = ChangeEvent | StatusChangeEvent | DeadLetter;

/** Printed label and color of each kind of event. */
const OPS = {
  r: { label: 'read', color: 'blue' },
  c: { label: 'created', color: 'green' },
  u: { label: 'updated', color: 'yellow' },
  d: { label: 'deleted', color: 'red' },
} as const satisfies Record<Op, { label: string; color: keyof Colors }>;

const PATHS_SHOWN = 4;

/**
 * Formats a message as JSON: key, partition, offset, timestamp, headers if there are any, then the fields of the value. A message without a
 * value has `tombstone: true` instead of these fields. Numbers from the API are written as received.
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

/**
 * Formats a message as a readable line. The line of an event contains the paths of changed fields, but not their values, which may be
 * personal.
 *
 * @param of Name of the topic, without the prefix.
 * @param statuses The list's status fields if the topic is a list's topic of status changes; otherwise undefined.
 */
export function eventLine(
  message: Consumed<ReplayedValue>,
  of: string,
  colors: Colors,
  statuses?: StatusTable,
): string {
  const { partition, offset, timestamp } = message;
  const time = new Date(timestamp).toISOString().replace('T', ' ').replace('Z', '');
  const position = `${partition}:${offset}`.padEnd(10);
  return `${colors.dim(time)}  ${colors.dim(position)} ${textOf(message, of, colors, statuses)}`;
}

function textOf(
  { key, value }: Consumed<ReplayedValue>,
  of: string,
  colors: Colors,
  statuses?: StatusTable,
): string {
  if (value === null) return `${'tombstone'.padEnd(9)} ${of} ${key}`;
  if ('reason' in value) {
    const { resource, reason, message, part, parts } = value;
    const which = part === null ? '' : ` (part ${part} of ${parts})`;
    return `${'rejected'.padEnd(9)} ${resource} ${key ?? '∅'}  ${reason}${which} ${colors.dim(message)}`;
  }
  if (!('op' in value)) {
    const status = { ...value, subjectId: value.subject_id };
    const record = statuses?.subjects.find(({ path }) => path.length === 0)?.name ?? 'record';
    return `${record} ${key}  ${statusText(status, colors, statuses)}`;
  }
  const { op, changed } = value;
  return `${OPS[op].label.padEnd(9)} ${of} ${key}  ${colors.dim(firstPaths(changed).join(', '))}`.trimEnd();
}

/**
 * Formats a line for each created, updated or deleted record: its key, its status changes with values, and the paths of other changed
 * fields except the modification time. The values of these fields are left out, because they may be personal.
 */
export function changeLines(
  published: Published,
  { updated, statuses: table }: Pick<ListDescription, 'updated' | 'statuses'>,
  colors: Colors,
  time: string,
): string[] {
  const { changes, statusChanges, resource } = published;
  return changes
    .filter(({ op }) => op !== 'r')
    .map(({ op, key, changed }) => {
      const statuses = statusChanges.filter((status) => status.key === key);
      const reportedPaths = new Set(statuses.map(({ change }) => pathOf(change, table)));
      const otherPaths = changed.filter(
        (path) => !reportedPaths.has(path) && !updated.includes(path.split('.').at(-1)!),
      );
      const details = [
        ...statuses.map(({ change }) => statusText(change, colors, table)),
        ...firstPaths(otherPaths),
      ].join(colors.dim(', '));
      const { label, color } = OPS[op];
      const what = `${colors.dim(time)} ${colors[color](label.padEnd(7))} ${resource} ${key}`;
      return details === '' ? what : `${what}  ${details}`;
    });
}

/**
 * Returns the path of a status subject (the record or a part of it) within the record, as member names. The path is empty for the record
 * itself, and `[subject]` for a subject that `table` does not contain.
 */
function subjectPath(subject: string, table: StatusTable | undefined): readonly string[] {
  return table?.subjects.find(({ name }) => name === subject)?.path ?? [subject];
}

/** Path of a status field within a record, in the notation of an event's `changed`: `lines[7].status`. */
function pathOf({ subject, subjectId, field }: StatusChange, table?: StatusTable): string {
  const path = subjectPath(subject, table).join('.');
  if (path === '') return field;
  return `${path}${idText(subjectId)}.${field}`;
}

/** The parts of a status change that a printed line shows. */
type StatusText = Pick<StatusChange, 'subject' | 'subjectId' | 'field' | 'from' | 'to'>;

/** Formats a status and its values, such as `line[7].status open → sent`; the subject is left out for a status of the record itself. */
function statusText(
  { subject, subjectId, field, from, to }: StatusText,
  colors: Colors,
  table?: StatusTable,
): string {
  const isOfRecord = subjectPath(subject, table).length === 0;
  const name = isOfRecord ? field : `${subject}${idText(subjectId)}.${field}`;
  return `${name} ${colors.dim(from ?? '∅')} → ${colors.bold(to ?? '∅')}`;
}

const idText = (id: string | null) => (id === null ? '' : `[${id}]`);

/** Returns the first {@link PATHS_SHOWN} paths of an event's changed fields. If there are more, adds how many, as in `3 more`. */
function firstPaths(paths: readonly string[]): readonly string[] {
  const more = paths.length - PATHS_SHOWN;
  return more > 0 ? [...paths.slice(0, PATHS_SHOWN), `${more} more`] : paths;
}
