import { describe, expect, it } from 'vitest';
import { changeName, changesOf, isSameShape, shownCycle } from '../../../src/ops/page/cycles.ts';
import type { LifeCycle } from '../../../src/ops/status/status-json.ts';

/** A life cycle in which these changes were seen, so often each; states in the order of coming. */
function cycle(field: string, ...seen: [string | null, string | null, number][]): LifeCycle {
  const names: (string | null)[] = [];
  const placeOf = (name: string | null) => {
    if (!names.includes(name)) names.push(name);
    return names.indexOf(name);
  };
  const changes = seen.map(([from, to, count]) => ({
    from: placeOf(from),
    to: placeOf(to),
    count,
    medianMs: null,
  }));
  const states = names.map(
    (name) => ({ kind: name === null ? 'new' : 'state', name: name ?? '', count: 1 }) as const,
  );
  return { resource: 'orders', subject: 'order', field, states, changes, others: 0 };
}

const BEFORE = cycle('status', [null, 'open', 9], ['open', 'paid', 5]);
/** The same of a service that began again. */
const AFTER = cycle('status', ['open', 'paid', 5], [null, 'open', 9]);

describe('life cycles on the page', () => {
  it('are drawn anew where states have other names or places, or changes other ends', () => {
    expect(isSameShape(BEFORE, cycle('status', [null, 'open', 10], ['open', 'paid', 6]))).toBe(
      true,
    );
    expect(isSameShape(BEFORE, AFTER)).toBe(false);
    expect(isSameShape(BEFORE, cycle('status', [null, 'open', 9], ['open', 'void', 5]))).toBe(
      false,
    );
    expect(isSameShape(BEFORE, { ...BEFORE, field: 'payment_status' })).toBe(false);
    const [first, second] = BEFORE.changes;
    expect(isSameShape(BEFORE, { ...BEFORE, changes: [second!, first!] })).toBe(false);
    const other = BEFORE.states.map((state) => ({ ...state, kind: 'other' as const }));
    expect(isSameShape(BEFORE, { ...BEFORE, states: other })).toBe(false);
  });

  it('have rows that keep their names when places change', () => {
    const rows = (each: LifeCycle) =>
      changesOf(each).map((change) => [changeName(change), change.count]);
    expect(rows(AFTER)).toEqual(rows(BEFORE));
    const [entered, paid] = changesOf(BEFORE);
    expect(changeName(entered!)).not.toBe(changeName(paid!));
    // An empty status is another thing than none.
    const named = cycle('status', ['', 'open', 1], [null, 'open', 1]);
    expect(new Set(changesOf(named).map(changeName)).size).toBe(2);
  });

  it('are shown as chosen; else the one with the most changes, until it has some', () => {
    const none = [cycle('a'), cycle('b')];
    const some = [cycle('a'), cycle('b', [null, 'open', 1])];
    const more = [cycle('a', [null, 'open', 7]), cycle('b', [null, 'open', 1])];
    const shown = (...of: Parameters<typeof shownCycle>) => shownCycle(...of)?.field;
    expect(shown(none, undefined, false)).toBe('a');
    expect(shown(some, 'orders order a', false)).toBe('b');
    expect(shown(more, 'orders order b', false)).toBe('b');
    expect(shown(more, undefined, false)).toBe('a');
    expect(shown(some, 'orders order a', true)).toBe('a');
    const other = { ...more[0]!, resource: 'returns' };
    expect(shownCycle([more[0]!, other], 'returns order a', true)).toBe(other);
    expect(shown([], undefined, false)).toBeUndefined();
  });
});
