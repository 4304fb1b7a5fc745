import { map, mergeMap, tap } from 'rxjs';
import { describe, it } from 'vitest';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import { virtualTime } from '../../support/virtual-time.ts';

describe('permits', () => {
  it('lets as many in as there are places, the others when a place is given back, in turn', () => {
    const scheduler = virtualTime();
    scheduler.run(({ hot, cold, expectObservable }) => {
      const places = pageSlots(2);
      const source = cold('  (abcd|)       ');
      const left = hot('     -----1---2----');
      const expected = '     (ab) -c---(d|)';
      left.subscribe(() => places.release());

      const entered = source.pipe(mergeMap((name) => places.acquire.pipe(map(() => name))));
      expectObservable(entered).toBe(expected);
    });
  });

  it('emits once and completes, and takes a place for each subscription', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { acquire: enter } = pageSlots(2);
      const entered = enter.pipe(map(() => 'a'));

      expectObservable(entered).toBe('        (a|)');
      expectObservable(entered, '--^').toBe(' --(a|)');
      expectObservable(entered, '---^').toBe('-');
    });
  });

  it('has no place for who has left the line', () => {
    const scheduler = virtualTime();
    scheduler.run(({ hot, expectObservable }) => {
      const places = pageSlots(1);
      const place = (name: string) => places.acquire.pipe(map(() => name));
      hot('                             -----1     ').subscribe(() => places.release());

      expectObservable(place('a')).toBe('(a|)       ');
      expectObservable(place('b'), '     ^--!       ').toBe('-');
      expectObservable(place('c'), '     -^         ').toBe('-----(c|)');
    });
  });

  it('keeps the place of who is in, unsubscribed or not, until it is given back', () => {
    const scheduler = virtualTime();
    scheduler.run(({ hot, expectObservable }) => {
      const places = pageSlots(1);
      const place = (name: string) => places.acquire.pipe(map(() => name));
      hot('                          ----1').subscribe(() => places.release());

      expectObservable(place('a'), ' ^!   ').toBe('(a|)');
      expectObservable(place('b'), ' --^  ').toBe('----(b|)');
    });
  });

  it('gains no places by leaving more often than entering', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const places = pageSlots(1);
      places.release();
      places.release();
      const source = cold('(abc|)');
      expectObservable(source.pipe(mergeMap((name) => places.acquire.pipe(map(() => name))))).toBe(
        'a',
      );
    });
  });

  it('serves the line though places are given back while entering', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const places = pageSlots(1);
      const source = cold('  (abc|)');
      const expected = '     (abc|)';
      const entered = source.pipe(
        mergeMap((name) => places.acquire.pipe(map(() => name))),
        tap(() => places.release()),
      );
      expectObservable(entered).toBe(expected);
    });
  });
});
