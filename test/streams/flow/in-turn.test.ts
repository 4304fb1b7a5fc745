import { lastValueFrom, Observable, Subject, take, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { inTurn } from '../../../src/streams/flow/in-turn.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const all = <T>(source: ReturnType<typeof inTurn<number, T>>) =>
  lastValueFrom(source.pipe(toArray()));

describe('inTurn', () => {
  it('begins each when the one before is done', () => {
    virtualTime().run(({ cold, expectObservable }) => {
      const answers = { a: cold('--x--|'), b: cold('(y|)'), c: cold('-z-|') };
      expectObservable(inTurn(['a', 'b', 'c'] as const, (name) => answers[name])).toBe('--x--yz-|');
    });
  });

  it('takes a value when it is its turn, and none behind an error', () => {
    const taken: number[] = [];
    function* numbers() {
      for (let number = 1; number < 5; number++) {
        taken.push(number);
        yield number;
      }
    }
    const gate = new Subject<string>();
    const seen: string[] = [];
    inTurn<number, string>(numbers(), (number) =>
      number < 3 ? gate : throwError(() => new Error('third')),
    ).subscribe({
      next: (text) => seen.push(text),
      error: (error: Error) => seen.push(error.message),
    });
    expect(taken).toEqual([1]);
    gate.next('a');
    expect(taken).toEqual([1]);
    gate.complete();
    expect(taken).toEqual([1, 2, 3]);
    expect(seen).toEqual(['a', 'third']);
  });

  it('passes on what the handler and the values throw', async () => {
    const failing = inTurn([1, 2], (number) => {
      if (number === 2) throw new Error('handler');
      return [number];
    });
    await expect(all(failing)).rejects.toThrow('handler');
  });

  it('bears any number that are done at once, behind one that is not', async () => {
    const numbers = Array.from({ length: 100_000 }, (_, nth) => nth);
    const results = await all(
      inTurn(numbers, (number) => (number === 0 ? Promise.resolve(0) : [number])),
    );
    expect(results).toEqual(numbers);
  });

  it('ends what emits at once when nobody wants more', () => {
    const gate = new Subject<number>();
    const given: number[] = [];
    let isOver = false;
    const atOnce = new Observable<number>((subscriber) => {
      for (let nth = 0; nth < 100 && !subscriber.closed; nth++) {
        given.push(nth);
        subscriber.next(nth);
      }
      return () => (isOver = true);
    });
    inTurn([gate, atOnce], (source) => source)
      .pipe(take(2))
      .subscribe();
    gate.complete();
    expect(given).toEqual([0, 1]);
    expect(isOver).toBe(true);
  });

  it('ends what is under way when nobody listens', () => {
    const gate = new Subject<number>();
    const begun: number[] = [];
    const listening = inTurn([1, 2], (number) => {
      begun.push(number);
      return gate;
    }).subscribe();
    listening.unsubscribe();
    expect(gate.observed).toBe(false);
    gate.complete();
    expect(begun).toEqual([1]);
  });
});
