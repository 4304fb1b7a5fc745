import { defer, mergeMap, NEVER, of, range, Subject, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { urgentLimit, during, tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import { virtualTime } from '../../support/virtual-time.ts';

/** A request takes 10 ms; the usual lane has 2 in a second, the hurried one 4. */
const WINDOW_MS = 1_000;
const TOOK_MS = 10;

/** When so many requests begin, and how many are answered. */
function asked(
  count: number,
  haste$: (at: (ms: number) => Observable<unknown>) => Observable<unknown>,
) {
  const scheduler = virtualTime();
  const begun: number[] = [];
  let answers = 0;
  scheduler.run(() => {
    const all = tokenBucket({ capacity: 6, windowMs: WINDOW_MS, scheduler });
    const limit: Limit = urgentLimit(
      all.lane({ share: 2 }),
      all.lane({ share: 4 }),
      haste$((ms) => timer(ms, scheduler)),
    );
    const request = defer(() => {
      begun.push(scheduler.now());
      return timer(TOOK_MS, scheduler);
    });
    range(count)
      .pipe(mergeMap(() => during(limit, request)))
      .subscribe(() => (answers += 1));
  });
  return { begun, answers };
}

describe('hastened', () => {
  it('goes at the usual pace while there is no haste', () => {
    const { begun, answers } = asked(4, () => NEVER);
    expect(begun).toEqual([0, 0, WINDOW_MS + TOOK_MS, WINDOW_MS + TOOK_MS]);
    expect(answers).toBe(4);
  });

  it('has the hurried share beside the usual one while there is haste', () => {
    const { begun, answers } = asked(6, () => of(0));
    expect(begun).toEqual([0, 0, 0, 0, 0, 0]);
    expect(answers).toBe(6);
  });

  it('takes along what waits already, and asks nothing twice that is under way', () => {
    const { begun, answers } = asked(5, (at) => at(TOOK_MS / 2));
    expect(begun).toEqual([0, 0, 5, 5, 5]);
    expect(answers).toBe(5);
  });

  it('is left by who no longer wants it, in either line', () => {
    const scheduler = virtualTime();
    const begun: string[] = [];
    scheduler.run(() => {
      const all = tokenBucket({ capacity: 1, windowMs: WINDOW_MS, scheduler });
      const haste$ = new Subject<void>();
      const limit = urgentLimit(all.lane({}), all.lane({}), haste$);
      of('first')
        .pipe(limit)
        .subscribe((name) => begun.push(name));
      const waiting = of('left')
        .pipe(limit)
        .subscribe((name) => begun.push(name));
      haste$.next();
      waiting.unsubscribe();
      expect(haste$.observed).toBe(false);
    });
    expect(begun).toEqual(['first']);
  });
});
