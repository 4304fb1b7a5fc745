// Iterates over the keys that the newest sweep has not seen.

import { ignoreElements, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Answer } from '../decode/response.ts';
import { isHeldBack } from './deletion-limit.ts';
import type { MissingKeyCounts, SeenMarks } from './deletion-limit.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** A slice of the published keys that no read has shown since a given sweep began. */
export interface UnseenSlice {
  readonly keys: readonly string[];
  /** Value of `after` to pass to {@link KnownRecords.unseen} for the next slice; undefined after the last slice. */
  readonly next: string | undefined;
}

/** The keys of all published records, with the sweeps that saw them last. */
export interface KnownRecords extends SeenMarks {
  /** Number of published records. */
  count(): number;
  /**
   * Returns a slice of the keys that no read has shown since full scan (sweep) number `since` began. The slice begins after the key
   * `after`, or with the first key if `after` is undefined. It is small enough not to block the event loop for long.
   */
  unseen(since: number, after: string | undefined): UnseenSlice;
}

export interface SingleReads {
  /**
   * Requests the record of a key. Emits the response once: an empty one if there is no such record, undefined if it is unknown whether
   * there is one.
   */
  readonly request: (key: string) => Observable<Answer | undefined>;
  /** Whether the record of a key can be requested. Missing keys for which this is false are not published as deleted. */
  readonly canRequest: (key: string) => boolean;
}

export interface MissingKeysOptions {
  /** Returns the stored progress. */
  readonly progress: () => SweepProgress;
  readonly records: KnownRecords;
  /** Requests for single records. Default: the API has no such requests, and sweeps alone prove deletions. */
  readonly single?: SingleReads;
  /** Clock and timers. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Goes through the missing keys (published keys that no read has shown since the newest sweep began), slice by slice. If the API has
 * requests for single records, keys that cannot be requested in this way are skipped.
 *
 * The methods are generators to be run by {@link inTurn}: they yield the pauses between slices, and the work on the keys, as Observables.
 */
export class MissingKeys {
  readonly #options: MissingKeysOptions;

  constructor(options: MissingKeysOptions) {
    this.#options = options;
  }

  /** Counts the missing keys: all, newly missing ones, and those in each held-back range. Some are skipped: see {@link MissingKeys}. */
  *count(): Generator<Observable<never>, MissingKeyCounts> {
    const { progress, records } = this.#options;
    const { judged, heldBack } = progress();
    const counts = { all: 0, fresh: 0, heldBack: heldBack.map(() => 0) };
    yield* this.#slices<never>((keys) => {
      counts.all += keys.length;
      counts.fresh += keys.filter((key) => !records.isUnseen(key, judged)).length;
      heldBack.forEach((each, nth) => {
        counts.heldBack[nth]! += keys.filter((key) => isHeldBack(key, [each], records)).length;
      });
      return [];
    });
    return counts;
  }

  /**
   * Calls `work` with the missing keys whose deletions are not held back, slice by slice, from the key after `after` on. Runs the
   * Observables that `work` returns before it continues with the next slice.
   */
  free<T>(
    work: (keys: readonly string[]) => readonly Observable<T>[],
    after?: string,
  ): Generator<Observable<T>, void> {
    const { progress, records } = this.#options;
    return this.#slices((keys) => {
      const held = progress().heldBack.filter((each) => !each.isConfirmed);
      return work(keys.filter((key) => !isHeldBack(key, held, records)));
    }, after);
  }

  *#slices<T>(
    work: (keys: readonly string[]) => readonly Observable<T>[],
    begin?: string,
  ): Generator<Observable<T>, void> {
    const { progress, records, single, scheduler } = this.#options;
    let after = begin;
    do {
      yield timer(0, scheduler).pipe(ignoreElements());
      const { keys, next } = records.unseen(progress().number, after);
      after = next;
      yield* work(single ? keys.filter(single.canRequest) : keys);
    } while (after !== undefined);
  }
}
