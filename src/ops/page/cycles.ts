import type { LifeCycle, LifeCycleChange, LifeCycleState } from '../status/status-json.ts';

/** A change, with its states: their places in the life cycle are another process's other ones. */
export interface CycleChange extends Pick<LifeCycleChange, 'count' | 'medianMs'> {
  readonly from: LifeCycleState;
  readonly to: LifeCycleState;
}

/** What tells a life cycle's field from the others. */
export function cycleName({ subject, field }: Pick<LifeCycle, 'subject' | 'field'>): string {
  return `${subject} ${field}`;
}

/** What a state is called. */
export function stateName({ kind, name }: LifeCycleState): string {
  if (kind === 'state') return name === '' ? '(empty)' : name;
  return { new: 'none before', gone: 'none any more', other: 'any other' }[kind];
}

/** The changes of a life cycle, the most frequent first. */
export function changesOf({ states, changes }: LifeCycle): CycleChange[] {
  return changes
    .map(({ from, to, ...change }) => ({ ...change, from: states[from]!, to: states[to]! }))
    .toSorted((a, b) => b.count - a.count);
}

/** How many changes were seen. */
export function changesSeen({ changes, others }: LifeCycle): number {
  return changes.reduce((sum, change) => sum + change.count, others);
}

/** What tells a change from others of its field: by names, whatever their places are. */
export function changeName({ from, to }: CycleChange): string {
  return JSON.stringify([from.kind, from.name, to.kind, to.name]);
}

/**
 * Whether a diagram of the one can show the figures of the other: the same states and changes in the
 * same places. A service that began again may have met them in another order.
 */
export function isSameShape(a: LifeCycle, b: LifeCycle): boolean {
  const shape = ({ states, changes, ...cycle }: LifeCycle) =>
    JSON.stringify([
      cycleName(cycle),
      states.map(({ kind, name }) => [kind, name]),
      changes.map(({ from, to }) => [from, to]),
    ]);
  return shape(a) === shape(b);
}

/**
 * The field that is shown: the one that somebody chose; else the one that was shown, once changes of it
 * were seen; else the one with the most, and of several the first.
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
