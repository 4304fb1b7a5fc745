import type { LifeCycle, LifeCycleChange, LifeCycleState } from '../status/status-json.ts';

/** All changes from one state of a life cycle to another: their number, and the median time spent in `from` before a change. */
export interface CycleChange extends Pick<LifeCycleChange, 'count' | 'medianMs'> {
  readonly from: LifeCycleState;
  readonly to: LifeCycleState;
}

/** Returns a name that identifies the life cycle of one status field: list, kind of object and field, such as `orders order status`. */
export function cycleName({ resource, subject, field }: LifeCycle): string {
  return `${resource} ${subject} ${field}`;
}

export function stateName({ kind, name }: LifeCycleState): string {
  if (kind === 'state') return name === '' ? '(empty)' : name;
  return { new: 'none before', gone: 'none any more', other: 'any other' }[kind];
}

/** Returns the changes of a life cycle with their states, the most frequent change first. */
export function changesOf({ states, changes }: LifeCycle): CycleChange[] {
  return changes
    .map(({ from, to, ...change }) => ({ ...change, from: states[from]!, to: states[to]! }))
    .toSorted((a, b) => b.count - a.count);
}

export function changesSeen({ changes, others }: LifeCycle): number {
  return changes.reduce((sum, change) => sum + change.count, others);
}

/** Returns a name for a change between two states. Each change of a life cycle has a different name. */
export function changeName({ from, to }: CycleChange): string {
  return JSON.stringify([from.kind, from.name, to.kind, to.name]);
}

/**
 * Whether the diagram of life cycle `a` can show the figures of life cycle `b`: their status field, states and changes are the same, in the
 * same order.
 */
export function isSameShape(a: LifeCycle, b: LifeCycle): boolean {
  const shape = (cycle: LifeCycle) =>
    JSON.stringify([
      cycleName(cycle),
      cycle.states.map(({ kind, name }) => [kind, name]),
      cycle.changes.map(({ from, to }) => [from, to]),
    ]);
  return shape(a) === shape(b);
}

/**
 * Chooses the life cycle that the page shows: the current one if the user chose it or if it has changes, otherwise the one with the most
 * changes.
 *
 * @param shown Name of the current life cycle, as {@link cycleName} returns it.
 * @param isChosen Whether the user chose the current life cycle.
 */
export function shownCycle(
  cycles: readonly LifeCycle[],
  shown: string | undefined,
  isChosen: boolean,
): LifeCycle | undefined {
  const current = cycles.find((cycle) => cycleName(cycle) === shown);
  if (current && (isChosen || changesSeen(current) > 0)) return current;
  return cycles.toSorted((a, b) => changesSeen(b) - changesSeen(a))[0];
}
