import {
  EMPTY,
  firstValueFrom,
  lastValueFrom,
  NEVER,
  of,
  Subject,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { inSteps, waitFor } from '../../../src/streams/flow/steps.ts';
import { virtualTime } from '../../support/virtual-time.ts';

describe('inSteps', () => {
  it('waits for one Observable after the other, and emits what the work returns', () => {
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const sum$ = inSteps(function* () {
        yield* waitFor(timer(2, scheduler));
        const [one, two] = [yield* waitFor(of(1)), yield* waitFor(of(2))];
        yield* waitFor(timer(1, scheduler));
        return String(one + two);
      });
      expectObservable(sum$).toBe('---(3|)');
    });
  });

  it('throws the error of an Observable at the place that waits for it', async () => {
    const caught$ = inSteps(function* () {
      try {
        return yield* waitFor(throwError(() => 'an error'));
      } catch (error) {
        return `caught ${String(error)}`;
      }
    });
    expect(await firstValueFrom(caught$)).toBe('caught an error');
  });

  it('errors with what the work throws', async () => {
    const failing$ = inSteps<string>(function* () {
      yield* waitFor(of(1));
      throw new Error('thrown');
    });
    await expect(firstValueFrom(failing$)).rejects.toThrow('thrown');
  });

  it('completes without a value when an Observable does', async () => {
    const empty$ = inSteps(function* () {
      yield* waitFor(EMPTY);
      return 'reached';
    });
    expect(await lastValueFrom(empty$, { defaultValue: 'nothing' })).toBe('nothing');
  });

  it('begins anew with each subscription', async () => {
    let begun = 0;
    const counted$ = inSteps(function* () {
      begun += 1;
      return yield* waitFor(of(begun));
    });
    expect([await firstValueFrom(counted$), await firstValueFrom(counted$)]).toEqual([1, 2]);
  });

  it.each(['while it waits', 'while it runs'])(
    'runs `finally` after an unsubscription %s',
    (when) => {
      const ended: string[] = [];
      const over$ = new Subject<void>();
      const steps$ = inSteps(function* () {
        try {
          yield* waitFor(of(1));
          if (when === 'while it runs') over$.next();
          yield* waitFor(NEVER);
        } finally {
          ended.push('ended');
        }
      });
      steps$.pipe(takeUntil(over$)).subscribe();
      over$.next();
      expect(ended).toEqual(['ended']);
    },
  );
});
