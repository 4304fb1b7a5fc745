import { describe, expect, it } from 'vitest';
import { gatherFirst } from '../../../src/streams/flow/gather-first.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const three = gatherFirst<string>((gathered) => gathered.length === 3);
const joined = (values: readonly string[]) => [...values];

describe('gatherFirst', () => {
  it('gives the first values together once they are enough, each later one by itself, at once', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('-a-b-c-d-(ef)-|');
      const subs = '               ^-------------!';
      const expected = '           -----x-y-(zw)-|';
      const values = { x: ['a', 'b', 'c'], y: ['d'], z: ['e'], w: ['f'] };
      expectObservable(source.pipe(three)).toBe(expected, values);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('gives what has come by the end, though it was not enough, and nothing of nothing', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const values = { x: ['a', 'b'] };
      expectObservable(cold<string>('a-b-|').pipe(three)).toBe('----(x|)', values);
      expectObservable(cold<string>('--|').pipe(three)).toBe('  --|');
      expectObservable(cold<string>('-').pipe(three)).toBe('    -');
    });
  });

  it('asks no more whether it is enough once it was', () => {
    const asked: (readonly string[])[] = [];
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const gather = gatherFirst<string>((gathered) => {
        asked.push(joined(gathered));
        return gathered.length === 2;
      });
      const values = { x: ['a', 'b'], y: ['c'], z: ['d'] };
      expectObservable(cold<string>('abcd|').pipe(gather)).toBe('-xyz|', values);
    });
    expect(asked).toEqual([['a'], ['a', 'b']]);
  });

  it('mirrors an error, whatever it holds back, and an early unsubscription', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      expectObservable(cold<string>('a-b-#').pipe(three)).toBe('----#');
      const endless = cold<string>('a-');
      expectObservable(endless.pipe(three), '^--!').toBe('-');
      expectSubscriptions(endless.subscriptions).toBe('  ^--!');
    });
  });

  it('gathers anew for each subscription', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const gathered$ = cold<string>('abc|').pipe(three);
      expectObservable(gathered$).toBe('--x|', { x: ['a', 'b', 'c'] });
      expectObservable(gathered$, '----^').toBe('------x|', { x: ['a', 'b', 'c'] });
    });
  });
});
