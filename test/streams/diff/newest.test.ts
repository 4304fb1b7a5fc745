import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NewestReads } from '../../../src/streams/diff/newest.ts';
import type { Verdict } from '../../../src/streams/diff/newest.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import type { Span } from '../../../src/streams/http/logical-clock.ts';
import { busyClock } from '../../support/busy-clock.ts';

/** Every way in which two reads can lie in time: 1 to 4 are the beginnings and ends. */
const OVERLAPS: readonly (readonly [Span, Span])[] = [1, 2, 3, 4].flatMap((begin) =>
  [1, 2, 3, 4]
    .filter((end) => end > begin)
    .map((end) => {
      const [first, last] = [1, 2, 3, 4].filter((place) => place !== begin && place !== end);
      return [
        { begin, end },
        { begin: first!, end: last! },
      ] as const;
    }),
);

const TIMES = [null, 1, 2] as const;

const CASES = OVERLAPS.flatMap(([inHand, other]) =>
  TIMES.flatMap((was) => TIMES.map((is) => ({ inHand, other, was, is }))),
);

/**
 * The verdict worked out the long way: the server read the record at some instant within each span.
 * If every pair of instants tells the same, that is so; else `updated_at` decides, if it can.
 */
function oracle({ inHand, other, was, is }: (typeof CASES)[number]): Verdict {
  const instants = ({ begin, end }: Span) => {
    const found: number[] = [];
    for (let at = begin + 0.25; at < end; at += 0.25) found.push(at);
    return found;
  };
  const orders = new Set(
    instants(inHand).flatMap((a) =>
      instants(other)
        .filter((b) => b !== a)
        .map((b) => (b > a ? 'newer' : 'older')),
    ),
  );
  if (orders.size === 1) return orders.has('newer') ? 'newer' : 'older';
  if (was === null || is === null || was === is) return 'undecided';
  return is > was ? 'newer' : 'older';
}

describe('NewestReads', () => {
  it('has a case for every overlap', () => {
    expect(OVERLAPS).toHaveLength(6);
    expect(new Set(CASES.map(oracle))).toEqual(new Set(['newer', 'older', 'undecided']));
  });

  it.each(CASES)('judges $other ($is) beside $inHand ($was)', (each) => {
    const newest = new NewestReads(busyClock());
    newest.saw('k', each.inHand, each.was, false);
    expect(newest.judge('k', each.other, each.is)).toBe(oracle(each));
  });

  it('takes a key that it knows nothing of for newer', () => {
    const newest = new NewestReads(busyClock());
    newest.saw('k', { begin: 5, end: 6 }, null, false);
    expect(newest.judge('other', { begin: 1, end: 2 }, null)).toBe('newer');
  });

  it('knows more once the same content was read twice', () => {
    const newest = new NewestReads(busyClock());
    newest.saw('k', { begin: 1, end: 9 }, null, false);
    expect(newest.judge('k', { begin: 4, end: 10 }, null)).toBe('undecided');
    expect(newest.judge('k', { begin: 0, end: 5 }, null)).toBe('undecided');

    newest.saw('k', { begin: 2, end: 3 }, null, true); // so it was there at 3
    expect(newest.judge('k', { begin: 4, end: 10 }, null)).toBe('newer');
    newest.saw('k', { begin: 6, end: 8 }, null, true); // and still at 6
    expect(newest.judge('k', { begin: 0, end: 5 }, null)).toBe('older');
    newest.saw('k', { begin: 1, end: 9 }, null, true); // which tells nothing more
    expect(newest.judge('k', { begin: 4, end: 10 }, null)).toBe('newer');
    expect(newest.judge('k', { begin: 0, end: 5 }, null)).toBe('older');
  });

  it('starts afresh with other content', () => {
    const newest = new NewestReads(busyClock());
    newest.saw('k', { begin: 1, end: 2 }, null, false);
    newest.saw('k', { begin: 3, end: 9 }, null, false);
    expect(newest.judge('k', { begin: 5, end: 10 }, null)).toBe('undecided');
  });

  /** Enough reads of other keys for a sweep. */
  const sweep = (newest: NewestReads, span: Span) => {
    for (let k = 0; k < 1_000; k++) newest.saw(`other ${k}`, span, null, false);
  };

  it('forgets what no read that is still open could overlap', () => {
    const clock = new LogicalClock();
    const newest = new NewestReads(clock);
    const [old, beside] = [clock.begin(), clock.begin()];
    const span = clock.answered(old);
    clock.begin(); // it stays open
    newest.saw('k', span, 5, false);
    clock.settle(old);
    expect(newest.judge('k', span, 4)).toBe('older');
    clock.settle(beside);
    sweep(newest, clock.answered(clock.begin()));
    expect(newest.judge('k', span, 4)).toBe('newer'); // as good as never seen
  });

  it('remembers nothing once no read is open', () => {
    const clock = new LogicalClock();
    const newest = new NewestReads(clock);
    const [one, other] = [clock.begin(), clock.begin()];
    const span = clock.answered(one);
    newest.saw('k', span, 5, false);
    clock.settle(one);
    expect(newest.judge('k', span, 4)).toBe('older');
    clock.settle(other);
    expect(newest.judge('k', span, 4)).toBe('newer');
  });

  it('remembers nothing of a read that no other overlaps', () => {
    const clock = new LogicalClock();
    const newest = new NewestReads(clock);
    const span = clock.answered(clock.begin());
    const later = clock.begin();
    newest.saw('k', span, 5, false);
    expect(newest.judge('k', span, 4)).toBe('newer'); // which nobody asks
    expect(newest.judge('k', clock.answered(later), 4)).toBe('newer');
  });

  it('remembers what a read that is still open overlaps', () => {
    const clock = new LogicalClock();
    const newest = new NewestReads(clock);
    const slow = clock.begin();
    const quick = clock.begin();
    const span = clock.answered(quick);
    newest.saw('k', span, 5, false);
    clock.settle(quick);
    sweep(newest, span);
    expect(newest.judge('k', clock.answered(slow), 4)).toBe('older');
  });

  it('never lets an older version overwrite a newer, nor drops the newest', () => {
    // A record has versions 0, 1, 2... that last for a while each; reads overlap at will. Whether
    // its `updated_at` tells or not, what is in hand never goes back, and is not behind in the end.
    const read = fc.record({ begin: fc.nat(40), wait: fc.nat(8), answer: fc.nat(8) });
    const world = fc.record({
      changes: fc.array(fc.nat(50), { maxLength: 6 }),
      reads: fc.array(read, { minLength: 1, maxLength: 12 }),
      coarse: fc.constantFrom(0, 1, 5, 20),
    });
    fc.assert(
      fc.property(world, ({ changes, reads, coarse }) => {
        const versionAt = (at: number) => changes.filter((change) => change <= at).length;
        const updatedAt = (version: number) => {
          if (coarse === 0) return null;
          const at = [...changes].sort((a, b) => a - b)[version - 1] ?? -1;
          return Math.floor(at / coarse);
        };
        type Event = { at: number; read: number; kind: 'begin' | 'end' };
        const events = reads.flatMap(({ begin, wait, answer }, read): Event[] => [
          { at: begin, read, kind: 'begin' },
          { at: begin + wait + answer + 0.75, read, kind: 'end' },
        ]);
        events.sort((a, b) => a.at - b.at);

        const clock = new LogicalClock();
        const newest = new NewestReads(clock);
        const begins = new Map<number, number>();
        let inHand: number | undefined;
        let undecided = false;
        let latest = 0;
        for (const { read, kind } of events) {
          if (kind === 'begin') {
            begins.set(read, clock.begin());
            continue;
          }
          const span = clock.answered(begins.get(read)!);
          const version = versionAt(reads[read]!.begin + reads[read]!.wait + 0.5);
          latest = Math.max(latest, version);
          const same = version === inHand;
          const verdict =
            same || inHand === undefined ? 'newer' : newest.judge('k', span, updatedAt(version));
          if (verdict === 'newer') {
            expect(version).toBeGreaterThanOrEqual(inHand ?? 0);
            newest.saw('k', span, updatedAt(version), same);
            inHand = version;
          } else if (verdict === 'older') expect(version).toBeLessThan(inHand!);
          else undecided = true;
          clock.settle(begins.get(read)!);
        }
        if (!undecided) expect(inHand).toBe(latest);
      }),
      { numRuns: 1_000 },
    );
  });

  it('judges the same of keys that were seen at once as of those that were seen one by one', () => {
    const keys = ['a', 'b', 'c', 'd'] as const;
    const span = fc.tuple(fc.nat(6), fc.integer({ min: 1, max: 6 }));
    const key = fc.constantFrom(...keys);
    const time = fc.constantFrom(null, 1, 2);
    const step = fc.oneof(
      fc.record({ all: fc.uniqueArray(key, { minLength: 1 }), span, time }),
      fc.record({ key, span, time, same: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), span, time, (steps, last, at) => {
        // None is forgotten meanwhile.
        const clock = Object.assign(busyClock(), { oldest: () => 0 });
        const [atOnce, oneByOne] = [new NewestReads(clock), new NewestReads(clock)];
        const spanOf = ([begin, length]: readonly [number, number]) => {
          return { begin, end: begin + length };
        };
        /** What is read again says what it said before. */
        const times = new Map<string, number | null>();
        const timeOf = (one: string, time: number | null, same: boolean) => {
          if (!same || !times.has(one)) times.set(one, time);
          return times.get(one) ?? null;
        };
        for (const each of steps) {
          const seen = spanOf(each.span);
          if ('key' in each) {
            const updatedAt = timeOf(each.key, each.time, each.same);
            atOnce.saw(each.key, seen, updatedAt, each.same);
            oneByOne.saw(each.key, seen, updatedAt, each.same);
          } else {
            const members = each.all.map((one) => ({
              key: one,
              updatedAt: timeOf(one, each.time, true),
            }));
            atOnce.sawAll(() => members, seen);
            for (const one of members) oneByOne.saw(one.key, seen, one.updatedAt, true);
          }
        }
        for (const each of keys) {
          expect(atOnce.judge(each, spanOf(last), at)).toBe(oneByOne.judge(each, spanOf(last), at));
        }
      }),
    );
  });

  it('remembers of keys that were seen at once no more than of others', () => {
    const clock = new LogicalClock();
    const newest = new NewestReads(clock);
    const [old, beside] = [clock.begin(), clock.begin()];
    const span = clock.answered(old);
    const open = clock.begin();
    newest.sawAll(() => [{ key: 'k', updatedAt: 5 }], span);
    clock.settle(old);
    clock.settle(beside);
    clock.begin(); // it stays open
    newest.sawAll(() => [{ key: 'other', updatedAt: 5 }], clock.answered(open));
    expect(newest.judge('k', span, 4)).toBe('newer'); // as good as never seen
  });
});
