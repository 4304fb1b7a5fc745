import pc from 'picocolors';
import type { Published } from '../observe/hooks.ts';
import type { Change, Operation } from '../streams/diff/change.ts';
import type { StatusChange } from '../resources/orders/order-status.ts';
import { somePaths, statusName, WORDS } from './change-words.ts';

type Colors = ReturnType<typeof pc.createColors>;

/**
 * A line for each change that people want to see one by one: all but initial snapshots. It names the
 * record, the status changes with their values, and the other paths without theirs: those may be
 * personal.
 */
export function changeLines(published: Published, colors: Colors, time: string): string[] {
  const { changes, statusChanges, resource } = published;
  return changes
    .filter(({ op }) => op !== 'r')
    .map((change) => {
      const own = statusChanges.filter(({ key }) => key === change.key);
      const told = new Set(own.map(({ change: status }) => pathOf(status)));
      const statuses = own.map(({ change: { subject, subjectId, field, from, to } }) => {
        const name = statusName(subject, subjectId, field);
        return `${name} ${colors.dim(from ?? '∅')} → ${colors.bold(to ?? '∅')}`;
      });
      const word = paint(change.op, colors)(WORDS[change.op].padEnd(7));
      const what = `${resource} ${change.key}`;
      const rest = [...statuses, ...otherPaths(change, told)].join(colors.dim(', '));
      return `${colors.dim(time)} ${word} ${what}${rest === '' ? '' : `  ${rest}`}`;
    });
}

/** The changed paths that no status change tells of; `updated_at` goes without saying. */
function otherPaths({ changed }: Change, told: ReadonlySet<string>): readonly string[] {
  return somePaths(changed.filter((path) => !told.has(path) && !/(^|\.)updated_at$/.test(path)));
}

/** Where in an order a status is, as `changed` names it. */
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
