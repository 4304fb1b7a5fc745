import { concatMap, defer, EMPTY, from, of, reduce, repeat, switchMap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { isIn } from './deletion-limit.ts';
import type { MissingKeys, SeenMarks } from './deletion-limit.ts';
import { seenSince } from './sweep-progress.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** Keys that are known, and have not been seen since a certain sweep. */
export interface Unseen {
  readonly keys: readonly string[];
  /** Where to go on looking; undefined at the end. */
  readonly next: string | undefined;
}

/** The published records, as far as sweeps need them. */
export interface KnownRecords extends SeenMarks {
  /** How many there are. */
  count(): number;
  /** A stretch of the keys behind `after`: so many that the caller is not held up for long. */
  unseen(since: number, after: string | undefined): Unseen;
}

interface MissingKeysOptions {
  readonly progress: () => SweepProgress;
  readonly records: KnownRecords;
  /** Whether a key can be deleted at all. */
  readonly canBeTold: (key: string) => boolean;
  readonly proofMs: number;
  readonly scheduler: SchedulerLike;
}

/** The keys that the newest sweep has not seen, worked through a stretch at a time. */
export function missingKeys(options: MissingKeysOptions) {
  const { progress, records, canBeTold, proofMs, scheduler } = options;

  const stretches = <T>(
    work: (keys: readonly string[]) => Observable<T>,
    begin?: string,
  ): Observable<T> =>
    defer(() => {
      let after = begin;
      return timer(0, scheduler).pipe(
        switchMap(() => {
          const { keys, next } = records.unseen(progress().number, after);
          after = next;
          return work(keys.filter(canBeTold));
        }),
        // Not by recursion: when all of a long list is gone, thousands of stretches are.
        repeat({ delay: () => (after === undefined ? EMPTY : of(undefined)) }),
      );
    });
  const isFree = (key: string) => {
    const held = progress().heldBack.filter((each) => !each.isConfirmed);
    return !isIn(key, held, records);
  };

  return {
    count: (): Observable<MissingKeys> =>
      defer(() => {
        const { judged, heldBack } = progress();
        const none: MissingKeys = { all: 0, fresh: 0, heldBack: heldBack.map(() => 0) };
        return stretches((keys) => of(keys)).pipe(
          reduce(
            (sum, keys) => ({
              all: sum.all + keys.length,
              fresh: sum.fresh + keys.filter((key) => !records.isUnseen(key, judged)).length,
              heldBack: heldBack.map(
                (each, nth) =>
                  sum.heldBack[nth]! + keys.filter((key) => isIn(key, [each], records)).length,
              ),
            }),
            none,
          ),
        );
      }),
    /** Number of keys that may be deleted once their absence is proven. */
    countFree: (): Observable<number> =>
      stretches((keys) => of(keys.filter(isFree).length)).pipe(
        reduce((sum, more) => sum + more, 0),
      ),
    /** Gives each key that may be deleted to `work`, behind `after`; a stretch is looked up when the one before is dealt with. */
    each: <T>(work: (key: string) => Observable<T>, after?: string): Observable<T> =>
      stretches((keys) => from(keys.filter(isFree)).pipe(concatMap(work)), after),
    /** Gives keys whose absence is proven, and the number of a sweep that none of them was seen since, to `work`, as `each` does. */
    proven: <T>(
      work: (gone: { readonly keys: readonly string[]; readonly since: number }) => Observable<T>,
    ): Observable<T> =>
      defer(() => {
        const since = seenSince(progress(), proofMs);
        if (since === undefined) return EMPTY;
        return stretches((keys) => {
          const gone = keys.filter((key) => isFree(key) && records.isUnseen(key, since));
          return gone.length > 0 ? work({ keys: gone, since }) : EMPTY;
        });
      }),
  };
}
