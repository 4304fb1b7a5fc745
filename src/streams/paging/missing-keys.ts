// Iterates over the keys that the newest sweep has not seen.

import { concatMap, defer, EMPTY, from, of, reduce, repeat, switchMap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { isHeldBack } from './deletion-limit.ts';
import type { MissingKeyCounts, SeenMarks } from './deletion-limit.ts';
import { deletedUnlessSeenSince } from './sweep-progress.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** A slice of the published keys that no read has shown since a given sweep began. */
export interface UnseenSlice {
  readonly keys: readonly string[];
  /** Argument `after` with which {@link KnownRecords.unseen} returns the next slice; undefined after the last one. */
  readonly next: string | undefined;
}

/** The keys of all published records, with the sweeps that saw them last. */
export interface KnownRecords extends SeenMarks {
  /** Number of published records. */
  count(): number;
  /**
   * Returns the next slice of the keys that no read has shown since full scan (sweep) number `since` began: those after the key `after`.
   * The slice is small enough not to block the event loop for long.
   */
  unseen(since: number, after: string | undefined): UnseenSlice;
}

interface MissingKeysOptions {
  readonly progress: () => SweepProgress;
  readonly records: KnownRecords;
  /**
   * Whether a missing key may be published as deleted once its absence is proven. False if its record can't be requested, in a list whose
   * records can otherwise be requested singly.
   */
  readonly isDeletable: (key: string) => boolean;
  readonly proofMs: number;
  readonly scheduler: SchedulerLike;
}

export type MissingKeys = ReturnType<typeof missingKeys>;

/** Creates functions that go through the missing keys, slice by slice: published keys that the newest full scan (sweep) has not shown. */
export function missingKeys(options: MissingKeysOptions) {
  const { progress, records, isDeletable, proofMs, scheduler } = options;

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
          return work(keys.filter(isDeletable));
        }),
        // Not by recursion: if a long list is missing entirely, there are thousands of slices.
        repeat({ delay: () => (after === undefined ? EMPTY : of(undefined)) }),
      );
    });
  const isFree = (key: string) => {
    const held = progress().heldBack.filter((each) => !each.isConfirmed);
    return !isHeldBack(key, held, records);
  };

  return {
    /** Counts the published keys that the newest full scan has not shown. */
    count: (): Observable<MissingKeyCounts> =>
      defer(() => {
        const { judged, heldBack } = progress();
        const none: MissingKeyCounts = { all: 0, fresh: 0, heldBack: heldBack.map(() => 0) };
        return stretches((keys) => of(keys)).pipe(
          reduce(
            (sum, keys) => ({
              all: sum.all + keys.length,
              fresh: sum.fresh + keys.filter((key) => !records.isUnseen(key, judged)).length,
              heldBack: heldBack.map(
                (each, nth) =>
                  sum.heldBack[nth]! +
                  keys.filter((key) => isHeldBack(key, [each], records)).length,
              ),
            }),
            none,
          ),
        );
      }),
    /** Counts the published keys that the newest full scan has not shown and whose deletions are not held back by the deletion limit. */
    countFree: (): Observable<number> =>
      stretches((keys) => of(keys.filter(isFree).length)).pipe(
        reduce((sum, more) => sum + more, 0),
      ),
    /** Runs `work` for each key that the newest full scan has not shown and whose deletion is not held back, starting after `after`. */
    each: <T>(work: (key: string) => Observable<T>, after?: string): Observable<T> =>
      stretches((keys) => from(keys.filter(isFree)).pipe(concatMap(work)), after),
    /**
     * Calls `work` with the keys whose records are proven to be deleted, except those held back by the deletion limit. Passes them in
     * slices; each call waits until the observable of the previous one has completed. `since` is the number of a full scan (sweep): no read
     * has shown the keys since it began.
     */
    proven: <T>(
      work: (gone: { readonly keys: readonly string[]; readonly since: number }) => Observable<T>,
    ): Observable<T> =>
      defer(() => {
        const since = deletedUnlessSeenSince(progress(), proofMs);
        if (since === undefined) return EMPTY;
        return stretches((keys) => {
          const absent = keys.filter((key) => isFree(key) && records.isUnseen(key, since));
          return absent.length > 0 ? work({ keys: absent, since }) : EMPTY;
        });
      }),
  };
}
