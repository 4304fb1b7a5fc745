import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LifeCycleModel } from '../../../src/ops/status/status-life-cycle.ts';
import type { StatusChange } from '../../../src/streams/diff/status-changes.ts';
import { scaled } from '../../support/scale.ts';

function changed(
  from: string | null,
  to: string | null,
  changedAt: number | null,
  subjectId: string | null = null,
): StatusChange {
  return { subject: 'order', subjectId, field: 'payment_status', from, to, changedAt };
}

/** Counts and medians by the names of the states. */
function named(model: LifeCycleModel) {
  const { states, changes, others } = model.status();
  const nameOf = (place: number) => states[place]!.name || `(${states[place]!.kind})`;
  return {
    states: Object.fromEntries(states.map(({ count }, place) => [nameOf(place), count])),
    changes: Object.fromEntries(
      changes.map(({ from, to, count, medianMs }) => [
        `${nameOf(from)} > ${nameOf(to)}`,
        { count, medianMs },
      ]),
    ),
    others,
  };
}

const about = (ms: number): unknown => expect.closeTo(ms, -Math.log10(ms * 0.2));

describe('LifeCycleModel', () => {
  it('counts changes, and tells how long subjects stayed before, by the times of the API', () => {
    const model = new LifeCycleModel();
    model.add('1', changed(null, 'pending', 1_000), 9_000);
    model.add('2', changed(null, 'pending', 2_000), 9_000);
    model.add('3', changed(null, 'pending', 3_000), 9_000);
    model.add('1', changed('pending', 'paid', 11_000), 99_000);
    model.add('2', changed('pending', 'paid', 22_000), 99_000);
    model.add('3', changed('pending', 'paid', 3_003_000), 99_000);
    model.add('1', changed('paid', null, null), 71_000); // by the time of its commit
    expect(named(model)).toEqual({
      states: { '(new)': 3, pending: 3, paid: 3, '(gone)': 1 },
      changes: {
        '(new) > pending': { count: 3, medianMs: null },
        'pending > paid': { count: 3, medianMs: about(20_000) },
        'paid > (gone)': { count: 1, medianMs: about(60_000) },
      },
      others: 0,
    });
  });

  it('times no stay whose beginning it has not seen', () => {
    const model = new LifeCycleModel();
    model.add('1', changed('authorized', 'paid', 1_000), 0);
    model.add('1', changed('voided', 'refunded', 2_000), 0); // something was missed in between
    expect(named(model).changes).toEqual({
      'authorized > paid': { count: 1, medianMs: null },
      'voided > refunded': { count: 1, medianMs: null },
    });
  });

  it('keeps the fulfilments of an order apart, and statuses that look like marks of its own', () => {
    const model = new LifeCycleModel();
    model.add('1', changed(null, 'open', 0, 'F-1'), 0);
    model.add('1', changed(null, 'open', 5_000, 'F-2'), 0);
    model.add('1', changed('open', '(gone)', 10_000, 'F-2'), 0);
    model.add('1', changed('(gone)', null, 20_000, 'F-2'), 0);
    expect(model.status().states.map(({ kind, name }) => [kind, name])).toEqual([
      ['new', ''],
      ['state', 'open'],
      ['state', '(gone)'],
      ['gone', ''],
    ]);
    expect(model.status().changes[1]!.medianMs).toEqual(about(5_000));
    expect(model.remembered).toBe(1);
  });

  it('comes to what a whole memory of all changes would', () => {
    const status = fc.constantFrom('a', 'b', 'c', null);
    const step = fc.record({
      key: fc.constantFrom('1', '2', '3'),
      to: status,
      afterMs: fc.nat(1e6),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const model = new LifeCycleModel();
        const histories: Record<string, { at: number; status: string | null }[]> = {};
        let at = 1;
        for (const { key, to, afterMs } of steps) {
          const history = (histories[key] ??= [{ at: 0, status: null }]);
          const from = history.at(-1)!.status;
          if (from === to) continue;
          at += afterMs;
          history.push({ at, status: to });
          model.add(key, changed(from, to, at), at);
        }

        // The oracle: all pairs of neighbours in all histories.
        const counts: Record<string, { count: number; stays: number[] }> = {};
        for (const history of Object.values(histories)) {
          for (const [nth, { at: leftAt, status: to }] of history.entries()) {
            const before = history[nth - 1];
            if (!before) continue;
            const name = `${before.status ?? '(new)'} > ${to ?? '(gone)'}`;
            const one = (counts[name] ??= { count: 0, stays: [] });
            one.count += 1;
            if (before.status !== null) one.stays.push(leftAt - before.at);
          }
        }
        const told = named(model).changes;
        expect(Object.keys(told).sort()).toEqual(Object.keys(counts).sort());
        for (const [name, { count, stays }] of Object.entries(counts)) {
          const median = stays.sort((a, b) => a - b)[Math.ceil(stays.length / 2) - 1];
          expect(told[name]!.count).toBe(count);
          if (median === undefined) expect(told[name]!.medianMs).toBeNull();
          else if (median < 1) expect(told[name]!.medianMs).toBe(0);
          else expect(told[name]!.medianMs! / median).toBeCloseTo(1, 0.5);
        }
      }),
    );
  });

  it('stays as small as it is said to, after very many changes of anything', () => {
    const model = new LifeCycleModel();
    const count = scaled(100_000, 1_000_000);
    for (let n = 0; n < count; n++) {
      // Each of a thousand after fifteen others: of the first sixteen, all pairs.
      const from = n % 1_000;
      const to = from < 16 ? (from + 1 + (Math.floor(n / 1_000) % 15)) % 16 : (from + 7) % 1_000;
      model.add(`order ${n}`, changed(`status ${from}`, `status ${to}`, n), n);
    }
    const { states, changes, others } = model.status();
    expect(model.remembered).toBeLessThanOrEqual(20_000);
    expect(model.remembered).toBeGreaterThanOrEqual(10_000);
    expect(states.filter(({ kind }) => kind === 'state')).toHaveLength(16);
    expect(states.length).toBeLessThanOrEqual(19);
    expect(changes).toHaveLength(64);
    const counted = changes.reduce((sum, { count }) => sum + count, 0);
    expect(counted + others).toBe(count);
  });

  it('forgets the subjects that entered their state first, and no others', () => {
    const model = new LifeCycleModel(4);
    model.add('old', changed(null, 'open', 0), 0);
    model.add('new', changed(null, 'open', 1_000), 0);
    model.add('old', changed('open', 'held', 2_000), 0); // entered anew
    model.add('newest', changed(null, 'open', 3_000), 0); // no room for `new`
    model.add('new', changed('open', 'shipped', 9_000), 0);
    model.add('old', changed('held', 'shipped', 8_000), 0);
    expect(named(model).changes).toMatchObject({
      'open > held': { medianMs: about(2_000) },
      'open > shipped': { medianMs: null },
      'held > shipped': { medianMs: about(6_000) },
    });
  });

  it('tells long statuses apart by their beginnings', () => {
    const model = new LifeCycleModel();
    model.add('1', changed(null, 'x'.repeat(300), 0), 0);
    expect(model.status().states[1]!.name).toBe(`${'x'.repeat(199)}…`);
  });
});
