import { describe, expect, it } from 'vitest';
import { CopyCheck } from '../../src/consumers/copy-check.ts';
import { scaled } from '../support/scale.ts';
import { tallyOf, WrittenList } from './written-list.ts';
import type { Rows } from './written-list.ts';

const SEEDS = scaled(300, 10_000);

/** Keys by what is wrong with them. */
interface Wrong {
  readonly missing: readonly string[];
  readonly stale: readonly string[];
  readonly tooMany: readonly string[];
}

/** What is found of a copy that is held against a certificate of a moment. */
function found(
  list: WrittenList,
  moment: number,
  copy: Iterable<readonly [string, number]>,
): Wrong {
  const check = new CopyCheck(list.positionsAt(moment));
  for (const event of list.events) check.event(event);
  const stale: string[] = [];
  const tooMany: string[] = [];
  for (const [key, sequence] of copy) {
    const finding = check.row(key, sequence);
    if (finding === 'stale') stale.push(key);
    if (finding === 'too many') tooMany.push(key);
  }
  const keys = [...new Set(list.events.map(({ key }) => key))];
  const missing = keys.filter((key) => check.isMissing(key));
  expect(check.missing()).toBe(missing.length);
  return sorted({ missing, stale, tooMany });
}

function sorted({ missing, stale, tooMany }: Wrong): Wrong {
  return { missing: missing.toSorted(), stale: stale.toSorted(), tooMany: tooMany.toSorted() };
}

/** A copy that was taken at the moment or behind it, of each partition at a time of its own. */
function honestCopy(list: WrittenList, moment: number): Map<string, number> {
  const at = () => (list.chance.is(0.3) ? moment : list.moment(moment));
  return new Map([...list.rowsAt(at(), 0), ...list.rowsAt(at(), 1)]);
}

/** Breaks a copy; what is to be found then. Undefined where there is nothing to break in this way. */
type Corruption = (
  list: WrittenList,
  moment: number,
  copy: Map<string, number>,
) => Partial<Wrong> | undefined;

const none = (keys: readonly string[]) => keys.length === 0;
/** Keys that no later event deletes. */
const staying = (list: WrittenList, moment: number, rows: Rows) => {
  const later = list.events.slice(moment);
  const isDeleted = (key: string) => later.some((one) => one.key === key && one.event?.op === 'd');
  return [...rows.keys()].filter((key) => list.rowsAt(moment).has(key) && !isDeleted(key));
};
const sequencesOf = (list: WrittenList, moment: number, key: string) =>
  list.events
    .slice(0, moment)
    .flatMap((one) =>
      one.key === key && one.event && one.event.op !== 'd' ? [one.event.source.sequence] : [],
    );
/** Keys that are neither in the copy, nor of the certificate, nor written later. */
const gone = (list: WrittenList, moment: number, copy: Rows) =>
  [...new Set(list.events.slice(0, moment).map(({ key }) => key))].filter(
    (key) =>
      !copy.has(key) &&
      !list.rowsAt(moment).has(key) &&
      !list.events.slice(moment).some((one) => one.key === key),
  );

const CORRUPTIONS: Readonly<Record<string, Corruption>> = {
  'an event is left out': (list, moment, copy) => {
    const keys = staying(list, moment, copy);
    if (none(keys)) return undefined;
    const key = list.chance.pick(keys);
    copy.delete(key);
    return { missing: [key] };
  },
  'an older event is kept': (list, moment, copy) => {
    const older = (key: string) => {
      const certified = list.rowsAt(moment).get(key);
      return sequencesOf(list, moment, key).filter((sequence) => sequence !== certified);
    };
    const keys = [...copy.keys()].filter((key) => older(key).length > 0);
    if (none(keys)) return undefined;
    const key = list.chance.pick(keys);
    copy.set(key, list.chance.pick(older(key)));
    return { stale: [key] };
  },
  'a ghost is there': (_list, _moment, copy) => {
    copy.set('ghost', [...copy.values()][0] ?? 1);
    return { tooMany: ['ghost'] };
  },
  'two keys are swapped': (list, _moment, copy) => {
    const [one, other] = [...copy.keys()].sort(() => list.chance.next() - 0.5);
    if (one === undefined || other === undefined) return undefined;
    const [first, second] = [copy.get(one)!, copy.get(other)!];
    copy.set(one, second).set(other, first);
    return { stale: [one, other] };
  },
  'a tombstone was ignored': (list, moment, copy) => {
    const keys = gone(list, moment, copy);
    if (none(keys)) return undefined;
    const key = list.chance.pick(keys);
    copy.set(key, sequencesOf(list, moment, key).at(-1)!);
    return { tooMany: [key] };
  },
};

describe('a copy', () => {
  it(`that is honest is never accused: ${SEEDS} of them`, () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const list = new WrittenList(seed);
      const moment = list.moment();
      const right = { missing: [], stale: [], tooMany: [] };
      expect([seed, found(list, moment, honestCopy(list, moment))]).toEqual([seed, right]);
    }
  });

  const kinds = Object.entries(CORRUPTIONS);
  it.each(kinds)(
    `is found out when %s, by its key: ${SEEDS / kinds.length} of them`,
    (_, break_) => {
      let [seed, broken] = [0, 0];
      for (; broken < SEEDS / kinds.length; seed++) {
        const list = new WrittenList(seed);
        const moment = list.moment();
        const copy = honestCopy(list, moment);
        const expected = break_(list, moment, copy);
        if (!expected) continue;
        broken += 1;
        const wrong = sorted({ missing: [], stale: [], tooMany: [], ...expected });
        expect([seed, found(list, moment, copy)]).toEqual([seed, wrong]);
      }
      expect(seed).toBeLessThan(10 * SEEDS); // most lists can be broken so
    },
  );

  it.each(kinds)('of the moment that is certified has another digest when %s', (_, break_) => {
    for (let seed = 0; seed < SEEDS / kinds.length; seed++) {
      const list = new WrittenList(seed);
      const moment = list.moment();
      const copy = list.rowsAt(moment);
      const certified = tallyOf(copy);
      const check = new CopyCheck(list.positionsAt(moment));
      for (const event of list.events) check.event(event);
      const tally = check.certified.tally(0).copy();
      tally.merge(check.certified.tally(1));
      expect([seed, tally.toJSON()]).toEqual([seed, certified]);
      if (break_(list, moment, copy)) expect(tallyOf(copy)).not.toEqual(certified);
    }
  });

  it('has one row of a key', () => {
    const list = new WrittenList(1);
    const moment = list.events.length;
    const rows = [...list.rowsAt(moment)];
    const [key] = rows[0]!;
    const wrong = { missing: [], stale: [], tooMany: [key] };
    expect(found(list, moment, [...rows, rows[0]!])).toEqual(wrong);
  });
});
