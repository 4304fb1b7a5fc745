// Sweeps a list repeatedly, and emits the missing keys whose deletion is proven.

import {
  asyncScheduler,
  defer,
  EMPTY,
  ignoreElements,
  map,
  NEVER,
  of,
  race,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { recordsOf } from '../decode/response.ts';
import type { Answer } from '../decode/response.ts';
import { inTurn } from '../flow/in-turn.ts';
import type { PageSlots } from '../flow/page-slots.ts';
import { isStale, MAX_LAG_MS } from '../http/response-age.ts';
import type { Span } from '../http/logical-clock.ts';
import { judgeMissing } from './deletion-limit.ts';
import type { LimitVerdict } from './deletion-limit.ts';
import { MissingKeys } from './missing-keys.ts';
import type { MissingKeysOptions, SingleReads } from './missing-keys.ts';
import { INCONSISTENT } from './scan-trouble.ts';
import type { ScanPage } from './pages.ts';
import type { ScanTrouble } from './scan-trouble.ts';
import {
  deletedUnlessSeenSince,
  hasReadAll,
  proofRemainingMs,
  showsAbsence,
} from './sweep-progress.ts';
import type { SweepProgress } from './sweep-progress.ts';

/** A step of a sweep: a page was read, keys were checked, or the sweep ended. Each step is stored before the next one is emitted. */
export type SweepStep =
  /** The sweep has read a page. The first such step begins the sweep. */
  | {
      readonly kind: 'page';
      readonly page: ScanPage;
      /**
       * False once the sweep may have missed records: its scan had a trouble in {@link INCONSISTENT}, a record is unreadable, or a response
       * may be older than the sweep.
       */
      readonly isConsistent: boolean;
      /** False once unchanged records have been read in a different order than earlier in the sweep. */
      readonly ordered: boolean;
      /** When the sweep began, in epoch ms on the local clock. */
      readonly beganAt: number;
    }
  /** Keys that count as seen although the sweep has not read them: their records are new, and a lagging replica may not show them yet. */
  | { readonly kind: 'spared'; readonly keys: readonly string[] }
  /** The numbers of missing keys were compared with the deletion limit (`DELETE_LIMIT_PERCENT`); `verdict` is the result. */
  | { readonly kind: 'judged'; readonly verdict: LimitVerdict }
  /** Polls have read all changes made during this sweep, so that the sweep can now prove keys absent. */
  | { readonly kind: 'polled' }
  /**
   * Keys that are proven absent, because no read has shown them since sweep number `since` began. `span`: begin and end, on the list's
   * logical clock, of the last page read by sweeps of this process; without such a page, the current time as both.
   */
  | {
      readonly kind: 'absent';
      readonly keys: readonly string[];
      readonly since: number;
      readonly span: Span;
    }
  /**
   * The record of a missing key was requested. `answer`: the response; empty if the record does not exist, undefined if that is unknown.
   */
  | {
      readonly kind: 'asked';
      readonly key: string;
      readonly since: number;
      readonly answer: Answer | undefined;
      /**
       * Whether this is the second request for the same key; the first one did not show the record. Only the second request can prove that
       * the record was deleted.
       */
      readonly again: boolean;
    }
  /**
   * The first round of requests for single records has ended: each missing key whose deletion is not held back was requested once, by this
   * or an earlier sweep.
   */
  | { readonly kind: 'asked-once' }
  /** The sweep has ended. `held`: number of deletions that are held back. */
  | { readonly kind: 'end'; readonly held: number };

/** Report that deletions are held back. `gone`: number of keys that they concern; `known`: number of published keys, including these. */
export interface HeldDeletions {
  readonly gone: number;
  readonly known: number;
}

/** How often a list is swept (read from beginning to end, to find deleted records). */
export interface SweepPace {
  /**
   * Minimum time from the start of one sweep to the start of the next, in ms; shorter if missing keys wait for proof, or if `startNow$`
   * emits. This property is read before each wait.
   */
  readonly intervalMs: number;
  /** Returns the minimum average time per request of a sweep, in ms. After faster requests, the next sweep begins later. Default: 0. */
  readonly spacingMs?: () => number;
  /** Each emission ends the wait for the next sweep. Default: never emits. */
  readonly startNow$?: Observable<unknown>;
}

/** Rules by which the record of a missing key (one that the newest full scan did not show) counts as deleted. */
export interface DeletionRules {
  /** How long a key has to stay missing before it counts as deleted, in ms. */
  readonly proofMs: number;
  /**
   * Deletion limit, in percent of the list's records, from 0 to 100; 100 turns the limit off. Deletions are held back if one of these
   * numbers of keys goes missing between two full scans:
   *
   * - more than 20 keys, and more than this percentage of the records;
   * - more than 2 keys, and more than a third of the records.
   */
  readonly limitPercent: number;
  /** Whether sweeps alone may prove deletions if the API has no requests for single records. Default true. */
  readonly canProve?: boolean;
  /** Called in each sweep that holds back deletions. */
  readonly onHeld?: (held: HeldDeletions) => void;
  /** Called in a sweep with missing keys, once the API has seemed for at least `proofMs` to cap the list at `total` records. */
  readonly onCut?: (total: number) => void;
}

export interface SweepsOptions extends MissingKeysOptions {
  /** Scans the list from a position; null is its beginning. Each page takes one of `pageSlots` until it is committed. */
  readonly scan: (
    from: SweepProgress['position'],
    onTrouble: (trouble: ScanTrouble) => void,
  ) => Observable<ScanPage>;
  /**
   * Must have exactly one page slot (capacity for one page). A step of a sweep holds the slot until the step is stored, and only then the
   * next step is emitted.
   */
  readonly pageSlots: PageSlots;
  /**
   * Returns the keys of records published as new since `time`, in epoch ms on the local clock. A lagging replica may not show those records
   * yet. Default: no keys.
   */
  readonly createdSince?: ((time: number) => readonly string[]) | undefined;
  /** Emits once polls have read all changes made before the subscription. Default: the list is not polled. */
  readonly pollsCompleted$?: Observable<unknown>;
  /**
   * Returns the span (begin and end on the logical clock) of a read that takes no time. It is used for keys that are proven absent before
   * this process has read a page.
   */
  readonly emptySpan: () => Span;
  readonly pace: SweepPace;
  readonly deletions: DeletionRules;
}

interface FirstRequest {
  /** When the response arrived, in epoch ms on the local clock. */
  readonly at: number;
  /** Number of the sweep that did not show the key and therefore requested its record. */
  readonly since: number;
}

/**
 * Number of unsuccessful sweeps in a row after which the maximum wait for the next sweep stops growing. A sweep is unsuccessful if it
 * proves none of its missing keys absent. The maximum is `proofMs` after the first such sweep, and 8 times `proofMs` after the fourth.
 */
const MAX_IN_VAIN = 4;

/**
 * Sweeps a list repeatedly (reads it from beginning to end) and detects deleted records. Never completes. After a failure, a new
 * subscription resumes from `progress`.
 *
 * Newly missing keys are first compared with the deletion limit (`deletion-limit.ts`): if many records go missing at once, an error of the
 * API is more likely than as many deletions. Missing keys within the limit are then proven absent:
 *
 * - If single records can be requested: two requests, at least `proofMs` apart, find no record, and no read shows the key in between.
 * - Otherwise by sweeps alone: see `deletedUnlessSeenSince`.
 *
 * The keys in the emitted steps are only candidates for deletion. Later stages drop those whose records were seen in the meantime.
 */
export function sweeps(options: SweepsOptions): Observable<SweepStep> {
  return new Sweeper(options).steps();
}

/**
 * Runs the sweeps (recurring full scans) of one list. The stored `phase` decides what comes next: `reading` emits the pages of a scan,
 * `removing` proves missing keys absent and ends the sweep, `done` waits for the next sweep.
 */
class Sweeper {
  readonly #options: SweepsOptions;
  readonly #scheduler: SchedulerLike;
  readonly #missing: MissingKeys;
  /**
   * Completes once all steps that this sweeper has emitted are stored. Each step holds the page slot until it is stored, so this observable
   * acquires the slot and releases it at once.
   */
  readonly #stepsDone$: Observable<never>;
  #requests = 0;
  #lastRead: Span | undefined;
  #held = 0;
  /**
   * Number of missing keys that wait for a proof by further sweeps, without those whose deletion is held back. Always 0 if single records
   * can be requested.
   */
  #waiting = 0;
  /**
   * Number of sweeps in a row that proved none of their missing keys absent, up to {@link MAX_IN_VAIN}. Sweeps that did not try are
   * ignored.
   */
  #inVain = 0;
  /** First request for the record of each missing key, by key. An entry is retained until the second request, at least `proofMs` later. */
  readonly #firstRequests = new Map<string, FirstRequest>();

  constructor(options: SweepsOptions) {
    const { pageSlots, scheduler = asyncScheduler } = options;
    this.#options = options;
    this.#scheduler = scheduler;
    this.#missing = new MissingKeys(options);
    this.#stepsDone$ = pageSlots.acquire.pipe(
      tap(() => pageSlots.release()),
      ignoreElements(),
    );
  }

  steps(): Observable<SweepStep> {
    return defer(() => inTurn(this.#sweeps(), (step$) => step$));
  }

  *#sweeps(): Generator<Observable<SweepStep>> {
    for (;;) {
      yield this.#stepsDone$;
      const { phase, position } = this.#progress;
      if (phase === 'done') {
        const startNow$ = this.#options.pace.startNow$ ?? NEVER;
        const due$ = race(timer(this.#pauseLeftMs(), this.#scheduler), startNow$);
        yield due$.pipe(take(1), ignoreElements());
        this.#requests = 0;
      }
      if (phase !== 'removing') yield this.#read(phase === 'reading' ? position : null);
      yield* this.#remove();
      yield this.#step(of({ kind: 'end', held: this.#held }));
    }
  }

  get #progress(): SweepProgress {
    return this.#options.progress();
  }

  /** Emits the step of `step$` once the only page slot (capacity for one page) is free, because the previous step has been stored. */
  #step(step$: Observable<SweepStep>): Observable<SweepStep> {
    return this.#options.pageSlots.acquire.pipe(switchMap(() => step$));
  }

  #read(position: SweepProgress['position']): Observable<SweepStep> {
    let beganAt = this.#scheduler.now();
    let isFirst = true;
    let isConsistent = true;
    let ordered = true;
    const onTrouble = (trouble: ScanTrouble) => {
      if (INCONSISTENT.has(trouble)) isConsistent = false;
      if (trouble === 'reordered') ordered = false;
    };
    return this.#options.scan(position, onTrouble).pipe(
      map((page): SweepStep => {
        this.#requests += 1;
        this.#lastRead = page.answer.span;
        // An unreadable record may be that of any missing key.
        if (!recordsOf(page.answer).isReadable) isConsistent = false;
        const { age } = page.answer;
        // A sweep begins when the server produced its first page; a response older than that shows the list as it was before.
        if (isFirst && age && !isStale(age)) beganAt = Math.min(beganAt, age.asOf);
        isFirst = false;
        if (age && age.asOf < beganAt) isConsistent = false;
        return { kind: 'page', page, isConsistent, ordered, beganAt };
      }),
    );
  }

  *#remove(): Generator<Observable<SweepStep>, void> {
    yield this.#stepsDone$;
    this.#held = 0;
    this.#waiting = 0;
    const { records, single, deletions } = this.#options;
    if (single === undefined && deletions.canProve === false) return;
    if (!showsAbsence(this.#progress, single !== undefined)) return;
    if (hasReadAll(this.#progress, records.count())) return;
    yield* this.#spare();
    yield* this.#judge();
    if ((yield* this.#countFree()) === 0) return;
    this.#reportCap();
    yield* single ? this.#requestMissing(single) : this.#proveBySweeps();
  }

  /** Emits the missing keys that count as seen, because their records were published as new after the sweep began or shortly before. */
  *#spare(): Generator<Observable<SweepStep>, void> {
    const { createdSince = () => [], records } = this.#options;
    const { number, beganAt } = this.#progress;
    const isUnseen = (key: string) => records.isUnseen(key, number);
    const keys = createdSince(beganAt - MAX_LAG_MS).filter(isUnseen);
    if (keys.length > 0) yield this.#step(of({ kind: 'spared', keys }));
  }

  *#judge(): Generator<Observable<SweepStep>, void> {
    yield this.#stepsDone$;
    const counted = yield* this.#missing.count();
    const { judged, number, heldBack } = this.#progress;
    if (counted.all === 0 && heldBack.length === 0) return;
    const { limitPercent, onHeld } = this.#options.deletions;
    const known = this.#options.records.count();
    const verdict = judgeMissing(counted, { judged, number, known, heldBack, limitPercent });
    this.#held = verdict.heldBack
      .filter(({ isConfirmed }) => !isConfirmed)
      .reduce((sum, { gone }) => sum + gone, 0);
    if (this.#held > 0) onHeld?.({ gone: this.#held, known });
    yield this.#step(of({ kind: 'judged', verdict }));
  }

  /** Counts the missing keys whose deletions are not held back by the deletion limit. */
  *#countFree(): Generator<Observable<never>, number> {
    yield this.#stepsDone$;
    let count = 0;
    yield* this.#missing.free<never>((keys) => {
      count += keys.length;
      return [];
    });
    return count;
  }

  #reportCap(): void {
    const { proofMs, onCut } = this.#options.deletions;
    const { cut } = this.#progress;
    if (cut && cut.since + proofMs <= this.#scheduler.now()) onCut?.(cut.total);
  }

  /**
   * Emits the missing keys that this and earlier sweeps prove deleted, for a list whose records can't be requested singly. If the proof
   * depends on polls, first waits until polls have read all changes made during the sweep.
   */
  *#proveBySweeps(): Generator<Observable<SweepStep>, void> {
    const { pollsCompleted$ = EMPTY, emptySpan, records, deletions } = this.#options;
    if (this.#progress.awaitsPolls) {
      const polled$ = this.#step(of({ kind: 'polled' }));
      yield pollsCompleted$.pipe(
        take(1),
        switchMap(() => polled$),
      );
    }
    yield this.#stepsDone$;
    const since = deletedUnlessSeenSince(this.#progress, deletions.proofMs);
    let isProven = false;
    if (since !== undefined) {
      yield* this.#missing.free((missing) => {
        const keys = missing.filter((key) => records.isUnseen(key, since));
        if (keys.length === 0) return [];
        isProven = true;
        const span = this.#lastRead ?? emptySpan();
        return [this.#step(of({ kind: 'absent', keys, since, span }))];
      });
    }
    this.#waiting = yield* this.#countFree();
    this.#inVain = isProven ? 0 : Math.min(MAX_IN_VAIN, this.#inVain + 1);
  }

  /**
   * Requests the record of each missing key twice, at least `proofMs` apart; the second time only if the key is still missing. Second
   * requests that are not yet allowed when the next sweep is due may be left to that sweep.
   */
  *#requestMissing({ request }: SingleReads): Generator<Observable<SweepStep>, void> {
    const requestOne = (key: string, since: number, again: boolean) =>
      this.#step(
        request(key).pipe(map((answer) => ({ kind: 'asked', key, since, answer, again }))),
      );
    const each = (work: (key: string) => Observable<SweepStep>, after?: string) =>
      this.#missing.free((keys) => keys.map((key) => defer(() => work(key))), after);
    const { number, askedUpTo, askedAt } = this.#progress;
    if (askedAt === null) {
      for (const key of this.#firstRequests.keys()) {
        if (!this.#firstRequest(key)) this.#firstRequests.delete(key);
      }
      yield* each((key) => {
        if (this.#firstRequest(key)) return EMPTY;
        return requestOne(key, number, false).pipe(
          tap(() => this.#firstRequests.set(key, { at: this.#scheduler.now(), since: number })),
        );
      }, askedUpTo ?? undefined);
      yield this.#step(of({ kind: 'asked-once' }));
    }
    if ((yield* this.#countFree()) === 0) return;
    yield timer(this.#secondRequestsInMs(), this.#scheduler).pipe(ignoreElements());
    const now = this.#scheduler.now();
    const { askedAt: askedOnceAt } = this.#progress;
    yield* each((key) => {
      // The first request for a key that is not in the map was made by an earlier process.
      const first = this.#firstRequest(key) ?? { at: askedOnceAt ?? now, since: number };
      if (first.at + this.#options.deletions.proofMs > now) return EMPTY;
      this.#firstRequests.delete(key);
      return requestOne(key, first.since, true);
    });
  }

  /**
   * Returns the first of the two requests that prove a missing key deleted. Undefined if this process has not sent it, or a read has shown
   * the key since.
   */
  #firstRequest(key: string): FirstRequest | undefined {
    const first = this.#firstRequests.get(key);
    return first && this.#options.records.isUnseen(key, first.since) ? first : undefined;
  }

  /**
   * Remaining time, in ms, until the sweep begins to request the records of missing keys for the second time. A key is deleted if neither
   * request finds its record.
   */
  #secondRequestsInMs(): number {
    const now = this.#scheduler.now();
    const tookMs = now - this.#progress.beganAt;
    const remainingMs = proofRemainingMs(this.#progress, now, this.#options.deletions.proofMs);
    return Math.min(remainingMs, Math.max(this.#pauseLeftMs(), tookMs));
  }

  /**
   * Remaining wait until the next sweep begins, in ms. While missing keys wait for further sweeps to prove their deletion, the wait has a
   * maximum.
   */
  #pauseLeftMs(): number {
    const { pace, deletions } = this.#options;
    const spacingMs = pace.spacingMs?.() ?? 0;
    const pauseMs = Math.max(pace.intervalMs, this.#requests * spacingMs);
    const dueMs = this.#progress.beganAt + pauseMs - this.#scheduler.now();
    const leftMs = Math.min(pauseMs, Math.max(0, dueMs));
    if (this.#waiting === 0) return leftMs;
    return Math.min(leftMs, deletions.proofMs * 2 ** Math.max(0, this.#inVain - 1));
  }
}
