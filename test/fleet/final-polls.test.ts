import { map, switchMap, timer } from 'rxjs';
import { describe, it } from 'vitest';
import { FinalPolls } from '../../src/fleet/account-run.ts';
import type { Published } from '../../src/observe/hooks.ts';
import { virtualTime } from '../support/virtual-time.ts';

const page = (resource: string, others: Partial<Published> = {}): Published => ({
  ...{ resource, lane: 'poll', changes: [], statusChanges: [], unchanged: 0, known: 0, at: 0 },
  ...{ completes: true, ...others },
});
/** What is published: a poll's last page of one list or another, a page before it, one of a sweep. */
const PAGES: Record<string, Published> = {
  ...{ o: page('orders'), c: page('customers') },
  ...{ p: page('orders', { completes: false }), s: page('orders', { lane: 'sweep' }) },
};

/** The last polls are asked for after 10 ms: when that tells the lists, and when it is done. */
function askedAfter10(told: string, expected: { asked: string; done: string }): void {
  const scheduler = virtualTime();
  scheduler.run(({ hot, expectObservable }) => {
    const last = new FinalPolls(scheduler);
    hot(told, PAGES).subscribe((each) => last.hooks.onPublished?.(each));
    const done$ = timer(10, scheduler).pipe(
      switchMap(() => last.pollAll$),
      map(() => 'd'),
    );
    expectObservable(last.pollNow$.pipe(map(() => 'a'))).toBe(expected.asked);
    expectObservable(done$).toBe(expected.done);
  });
}

describe('the last polls of an account', () => {
  it('are over when each list that was polled before has been polled again', () => {
    askedAfter10('--o-c 10ms o--c', { asked: '10ms a', done: '18ms (d|)' });
    askedAfter10('--o-o 10ms o', { asked: '10ms a', done: '15ms (d|)' });
  });

  it('are not over with another page of that list', () => {
    askedAfter10('--o- 10ms ps-o', { asked: '10ms a', done: '17ms (d|)' });
  });

  it('are not waited for longer than a second', () => {
    askedAfter10('--o-c 10ms o', { asked: '10ms a', done: '1010ms (d|)' });
  });

  it('are not waited for where no list is polled', () => {
    askedAfter10('--s-p', { asked: '10ms a', done: '10ms (d|)' });
  });
});
