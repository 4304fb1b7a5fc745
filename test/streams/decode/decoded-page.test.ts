import { describe, expect, it } from 'vitest';
import { stepwise } from '../../../src/streams/decode/decoded-page.ts';
import { virtualTime } from '../../support/virtual-time.ts';

describe('stepwise', () => {
  it('emits what a work comes to, with a turn of the event loop at each stop', () => {
    const time = virtualTime();
    time.run(({ expectObservable, flush }) => {
      const log: string[] = [];
      const work = function* () {
        log.push('first');
        time.schedule(() => log.push('other work'), 0);
        yield;
        log.push('second');
        return 'w';
      };
      expectObservable(stepwise(work, time)).toBe('(w|)');
      flush();
      expect(log).toEqual(['first', 'other work', 'second']);
    });
  });

  it('does it anew for each subscriber, and no further than it is wanted', () => {
    const time = virtualTime();
    time.run(({ expectObservable, flush }) => {
      let steps = 0;
      const work = function* () {
        for (;;) {
          steps += 1;
          if (steps === 3) return steps;
          yield;
        }
      };
      const work$ = stepwise(work, time);
      work$.subscribe().unsubscribe();
      expectObservable(work$).toBe('(w|)', { w: 3 });
      flush();
      expect(steps).toBe(3); // one of the first, two of the second
    });
  });

  it('errors with what it throws', () => {
    const time = virtualTime();
    time.run(({ expectObservable }) => {
      const work = function* (): Generator<void, never> {
        yield;
        throw new RangeError('too far');
      };
      expectObservable(stepwise(work, time)).toBe('#', undefined, new RangeError('too far'));
    });
  });
});
