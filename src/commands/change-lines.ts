import pc from 'picocolors';
import type { Published } from '../observe/hooks.ts';
import type { Change, Operation } from '../streams/diff/change.ts';
import type { StatusChange } from '../resources/orders/order-status.ts';
import { firstPaths, statusName, OP_LABELS } from './change-labels.ts';

type Colors = ReturnType<typeof pc.createColors>;

/**
 * Formats a line for each change except those of initial snapshots: the record's key, its status changes with values, and the other changed
 * paths without values, which may be personal.
 */
export function changeLines(published: Published, colors: Colors, time: string): string[] {
  const { changes, statusChanges, resource } = published;
  return changes
    .filter(({ op }) => op !== 'r')
    .map((change) => {
      const own = statusChanges.filter(({ key }) => key === change.key);
      const reportedPaths = new Set(own.map(({ change: status }) => pathOf(status)));
      const statuses = own.map(({ change: { subject, subjectId, field, from, to } }) => {
        const name = statusName(subject, subjectId, field);
        return `${name} ${colors.dim(from ?? '∅')} → ${colors.bold(to ?? '∅')}`;
      });
      const word = paint(change.op, colors)(OP_LABELS[change.op].padEnd(7));
      const what = `${resource} ${change.key}`;
      const rest = [...statuses, ...otherPaths(change, reportedPaths)].join(colors.dim(', '));
      return `${colors.dim(time)} ${word} ${what}${rest === '' ? '' : `  ${rest}`}`;
    });
}

/** Returns the paths of a record's changed fields that no status change covers, without `updated_at`. */
function otherPaths({ changed }: Change, reportedPaths: ReadonlySet<string>): readonly string[] {
  return firstPaths(
    changed.filter((path) => !reportedPaths.has(path) && !/(^|\.)updated_at$/.test(path)),
  );
}

/** Path of a status within an order, in the notation of `changed`. */
function pathOf({ subject, subjectId, field }: StatusChange): string {
  const places = {
    order: '',
    order_edit: `order_edit[${subjectId}].`,
    fulfillment: `fulfillment_info[${subjectId}].`,
    club_package: 'club_package_info.',
  };
  return places[subject] + field;
}

function paint(op: Operation, colors: Colors): (text: string) => string {
  return { r: colors.blue, c: colors.green, u: colors.yellow, d: colors.red }[op];
}
