import { describe, expect, it } from 'vitest';
import { sweepBatch } from '../../../src/pipeline/reads/sweep-reads.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { NewestReads } from '../../../src/streams/diff/newest.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import type { Span } from '../../../src/streams/http/logical-clock.ts';
import type { SweepStep } from '../../../src/streams/paging/sweeps.ts';

describe('sweepBatch', () => {
  const clock = new LogicalClock();
  const newest = new NewestReads(clock);
  const noRecords = (span = clock.answered(clock.begin())) => ({
    ...{ keyed: [], runs: [], rejected: [], rejectedAt: [], span },
    settle: () => clock.settle(span.begin),
  });
  const batchOf = sweepBatch(
    { splitAndTellClock: ({ span }) => noRecords(span), noRecords },
    () => [],
    ({ begin }) => clock.hold(begin),
  );
  const page = (span: Span): SweepStep => {
    const answer: Answer = {
      ...{ data: [], total: 0, hasNext: false },
      ...{ span, serverTime: undefined },
    };
    const scanned = { answer, offset: 0, next: undefined };
    return { kind: 'page', page: scanned, isConsistent: true, ordered: true, beganAt: 0 };
  };

  it('lets nobody forget what was read beside its last page, before the sweep has ended', () => {
    const poll = clock.begin();
    const last = clock.begin();
    const polled = clock.answered(poll);
    newest.saw('k', polled, 5, false);
    const pageBatch = batchOf(page(clock.answered(last)));
    clock.settle(poll);
    pageBatch.settle(); // no answer is waited for, or dealt with

    const { span } = pageBatch;
    const absent = batchOf({ kind: 'absent', keys: ['k'], since: 1, span });
    expect(newest.judge('k', absent.span, null)).toBe('undecided');
    absent.settle();

    batchOf({ kind: 'end', held: 0 }).settle();
    expect(clock.oldest()).toBe(Infinity);
  });
});
