import { delay, EMPTY, finalize, map, NEVER, of, switchMap, throwError, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId } from './moving-list.ts';

const PAGE = 10;
const OVERLAP = 1;
const STEP = PAGE - OVERLAP;

/** Pages of a list that stands still; `took` is how long each answer says that it took. */
const pageOf = (offset: number, total: number, took: number): Answer => ({
  ...answer(
    Array.from({ length: Math.min(PAGE, total - offset) }, (_, k) => ({ id: offset + k })),
    { total, hasNext: offset + PAGE < total },
  ),
  elapsedMs: took,
  span: { begin: offset, end: offset + 1 },
});

interface World {
  readonly total: number;
  readonly answerMs: number;
  /** How long a page is dealt with before the next is taken. */
  readonly commitMs?: number;
  readonly request?: (offset: number) => Observable<Answer> | undefined;
  /** Default 9. */
  readonly ahead?: number;
  readonly forMs?: number;
}

/** Reads in virtual time. Tells what was asked for when, what came, and what was given up. */
function read({ total, answerMs, commitMs = 0, request, ahead = 9, forMs }: World) {
  const scheduler = virtualTime();
  const asked: [offset: number, at: number][] = [];
  const came: [offset: number, at: number][] = [];
  const dropped: number[] = [];
  const aborted: number[] = [];
  let failed: unknown;
  let most = 0;
  scheduler.run(({ flush }) => {
    const waiting = new Set<number>();
    const reading = pages({
      request: ({ offset }) => {
        asked.push([offset, scheduler.now()]);
        waiting.add(offset);
        most = Math.max(most, waiting.size);
        let isAnswered = false;
        return (
          request?.(offset) ??
          timer(answerMs, scheduler).pipe(map(() => pageOf(offset, total, answerMs)))
        ).pipe(
          map((page) => ((isAnswered = true), page)),
          finalize(() => {
            waiting.delete(offset);
            if (!isAnswered) aborted.push(offset);
          }),
        );
      },
      keyOf: keyOfId,
      pageSize: PAGE,
      overlap: OVERLAP,
      ahead: { most: ahead, onDrop: ({ span }) => dropped.push(span.begin), scheduler },
      permit: () => timer(came.length > 0 ? commitMs : 0, scheduler),
    }).subscribe({
      next: ({ offset }) => came.push([offset, scheduler.now()]),
      error: (error: unknown) => (failed = error),
    });
    if (forMs !== undefined) timer(forMs, scheduler).subscribe(() => reading.unsubscribe());
    flush();
  });
  return { asked, came, dropped, aborted, failed, most };
}
const offsets = (pairs: readonly (readonly [number, number])[]) => pairs.map(([offset]) => offset);

describe('pages asked for ahead', () => {
  it('come one after the other where that is not asked for', () => {
    const { most, came } = read({ total: 95, answerMs: 100, ahead: 0 });
    expect(most).toBe(1);
    expect(came.at(-1)).toEqual([90, 1_100]);
  });

  it('are as many as slow answers take, and come in the order of the list', () => {
    const { most, came } = read({ total: 1_000, answerMs: 5_000, commitMs: 860 });
    expect(offsets(came)).toEqual(came.map((_, k) => k * STEP));
    expect(most).toBe(Math.ceil(5_000 / 860 + 0.5) + 1);
    const times = came.map(([, at]) => at).slice(-20);
    expect(times.at(-1)! - times[0]!).toBe(19 * 860); // no answer is waited for any more
  });

  it('are one where answers are quick: what waits costs memory', () => {
    const { most, asked, came } = read({ total: 1_000, answerMs: 50, commitMs: 860 });
    expect(most).toBe(2); // the one that is waited for, at the beginning
    const wait = came.map(([offset, at]) => at - asked.find(([each]) => each === offset)![1]);
    expect(Math.max(...wait)).toBeLessThan(2 * 860 + 50);
  });

  it('never reach over the end, nor over the most', () => {
    const { asked, most } = read({
      total: 95,
      answerMs: 5_000,
      commitMs: 1,
      ahead: 3,
    });
    expect(new Set(offsets(asked)).size).toBe(asked.length);
    expect(Math.max(...offsets(asked))).toBeLessThan(95);
    expect(most).toBe(4);
  });

  it('are given up after a wrong guess: aborted, or told of where they are answered', () => {
    // From the third page on the server gives five records a page, whatever it is asked for.
    const short = (offset: number, data: Answer) =>
      offset < 2 * STEP ? data : { ...data, data: data.data.slice(0, 5) };
    const { came, dropped, aborted } = read({
      total: 95,
      answerMs: 0,
      request: (offset) => {
        const ms =
          offset === 2 * STEP ? 900 : offset === 3 * STEP ? 100 : offset === 4 * STEP ? 9_000 : 500;
        return timer(ms).pipe(map(() => short(offset, pageOf(offset, 95, 2_000))));
      },
    });
    expect(offsets(came).slice(0, 4)).toEqual([0, STEP, 2 * STEP, 2 * STEP + 4]);
    expect(dropped).toContain(3 * STEP);
    expect(aborted).toContain(4 * STEP);
  });

  it('that fail fail the scan when their turn has come, and not before', () => {
    const { came, failed } = read({
      total: 95,
      answerMs: 100,
      request: (offset) =>
        offset === 3 * STEP ? throwError(() => new Error('refused')) : undefined,
    });
    expect(offsets(came)).toEqual([0, STEP, 2 * STEP]);
    expect(failed).toEqual(new Error('refused'));
  });

  it('that fail and are not needed are of no concern', () => {
    const { came, failed } = read({
      total: 95,
      answerMs: 100,
      // Its end moves closer: what was asked for behind it is refused.
      request: (offset) =>
        offset >= 3 * STEP
          ? timer(10).pipe(switchMap(() => throwError(() => new Error('behind the end'))))
          : timer(100).pipe(map(() => pageOf(offset, offset === 2 * STEP ? 28 : 95, 100))),
    });
    expect(offsets(came)).toEqual([0, STEP, 2 * STEP]);
    expect(failed).toBeUndefined();
  });

  it('end with their scan', () => {
    const { aborted, dropped } = read({
      total: 1_000,
      answerMs: 500,
      forMs: 1_800,
      request: (offset) =>
        offset === 4 * STEP
          ? of(pageOf(offset, 1_000, 500)).pipe(delay(1))
          : offset === 3 * STEP
            ? NEVER
            : undefined,
    });
    expect(aborted).toContain(3 * STEP);
    expect(dropped).toContain(4 * STEP);
  });

  it('complete without a page where the request does', () => {
    expect(read({ total: 95, answerMs: 1, request: () => EMPTY }).came).toEqual([]);
  });
});
