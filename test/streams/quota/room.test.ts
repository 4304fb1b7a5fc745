import { map, mergeMap, tap } from 'rxjs';
import { describe, it } from 'vitest';
import { room } from '../../../src/streams/quota/room.ts';
import { virtualTime } from '../../support/virtual-time.ts';

describe('room', () => {
  it('lets as many in as there are places, the others when a place is given back, in turn', () => {
    const scheduler = virtualTime();
    scheduler.run(({ hot, cold, expectObservable }) => {
      const places = room(2);
      const source = cold('  (abcd|)       ');
      const left = hot('     -----1---2----');
      const expected = '     (ab) -c---(d|)';
      left.subscribe(() => places.leave());

      const entered = source.pipe(mergeMap((name) => places.enter.pipe(map(() => name))));
      expectObservable(entered).toBe(expected);
    });
  });

  it('emits once and completes, and takes a place for each subscription', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const { enter } = room(2);
      const entered = enter.pipe(map(() => 'a'));

      expectObservable(entered).toBe('        (a|)');
      expectObservable(entered, '--^').toBe(' --(a|)');
      expectObservable(entered, '---^').toBe('-');
    });
  });

  it('has no place for who has left the line', () => {
    const scheduler = virtualTime();
    scheduler.run(({ hot, expectObservable }) => {
      const places = room(1);
      const place = (name: string) => places.enter.pipe(map(() => name));
      hot('                             -----1     ').subscribe(() => places.leave());

      expectObservable(place('a')).toBe('(a|)       ');
      expectObservable(place('b'), '     ^--!       ').toBe('-');
      expectObservable(place('c'), '     -^         ').toBe('-----(c|)');
    });
  });

  it('keeps the place of who is in, unsubscribed or not, until it is given back', () => {
    const scheduler = virtualTime();
    scheduler.run(({ hot, expectObservable }) => {
      const places = room(1);
      const place = (name: string) => places.enter.pipe(map(() => name));
      hot('                          ----1').subscribe(() => places.leave());

      expectObservable(place('a'), ' ^!   ').toBe('(a|)');
      expectObservable(place('b'), ' --^  ').toBe('----(b|)');
    });
  });

  it('gains no places by leaving more often than entering', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const places = room(1);
      places.leave();
      places.leave();
      const source = cold('(abc|)');
      expectObservable(source.pipe(mergeMap((name) => places.enter.pipe(map(() => name))))).toBe(
        'a',
      );
    });
  });

  it('serves the line though places are given back while entering', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const places = room(1);
      const source = cold('  (abc|)');
      const expected = '     (abc|)';
      const entered = source.pipe(
        mergeMap((name) => places.enter.pipe(map(() => name))),
        tap(() => places.leave()),
      );
      expectObservable(entered).toBe(expected);
    });
  });
});
