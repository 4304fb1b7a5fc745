import { filter, ignoreElements, map, merge, NEVER, skip, switchMap, take, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { AccountList } from '../../account/account.ts';
import { pageLanes } from '../../account/page-lane.ts';
import type { PageLane } from '../../account/page-lane.ts';
import type { Lanes } from '../../account/quotas.ts';
import type { CertifyJob, ResyncJob } from '../../account/signal-jobs.ts';
import { canProveAbsence } from '../../description/levels.ts';
import type { Published } from '../../observe/hooks.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import type { Answer, ListRequest } from '../../streams/decode/response.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import { MAX_BACK_MS, ServerClock } from '../../streams/http/server-clock.ts';
import type { KnownRecords } from '../../streams/paging/missing-keys.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import { ignoredFields } from '../../streams/paging/standstill.ts';
import { proofRemainingMs } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { sweeps } from '../../streams/paging/sweeps.ts';
import { keyOfFields } from '../../streams/records/key-of.ts';
import { urgentLimit } from '../../streams/quota/token-bucket.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import { splitPageRecords } from '../../streams/records/records.ts';
import type { Cursor } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import { CertificateRequests } from './certificate-requests.ts';
import { datedScan, orFullScan } from './dated-scan.ts';
import { PollReads } from './poll-reads.ts';
import { probeLane } from './probe-lane.ts';
import type { ReadBatch, ReadLane, ReadResult, ResyncBatch, SweepBatch } from './read-batch.ts';
import { Refetches } from './refetches.ts';
import type { ScheduledRefetch } from './refetches.ts';
import { resyncReads } from './resync-reads.ts';
import { retryRefusedLane } from './retry-refused-lane.ts';
import { SingleRecords } from './single-records.ts';
import { SnapshotReads } from './snapshot-reads.ts';
import { sweepBatch } from './sweep-reads.ts';

export interface ListReadsOptions {
  readonly task: Pick<
    Task,
    'account' | 'list' | 'config' | 'hooks' | 'scheduler' | 'phase' | 'pollNow$'
  >;
  readonly lanes: Lanes;
  readonly keyFields: readonly string[];
  readonly lists: DecodedLists;
  /** Returns the progress of the initial snapshot (`firstRead`) and of the polls (`since`) after the newest batch, committed or not. */
  readonly progress: () => Pick<Cursor, 'firstRead' | 'since'>;
  readonly checkpoint: { readonly store: KnownRecords; readonly sweep: SweepProgress };
  /**
   * Maximum number of pages of the initial snapshot that are between their request and their commit. Default 2: one page is requested while
   * another is committed.
   */
  readonly snapshotPageSlots?: number;
  /** Requests for resyncs, handled once the initial snapshot is done. */
  readonly resyncs$?: Observable<ResyncJob> | undefined;
  /**
   * Returns the keys of records that this process has published as new since `time` (epoch ms by the local clock) and has not published as
   * deleted since then.
   */
  readonly createdSince?: ((time: number) => readonly string[]) | undefined;
  /** Requests for a certificate (message about a completed full scan), handled once the initial snapshot is done. */
  readonly certifications$?: Observable<CertifyJob> | undefined;
}

/** Functions that request the decoded pages of a list, and the state that all reads of the list share. */
export interface DecodedLists
  extends Pick<AccountList, 'clock' | 'volatile'>, Partial<Pick<AccountList, 'plan'>> {
  /** Requests a page for the initial snapshot. All records of the page are decoded, even unchanged ones. */
  readonly snapshot: ListRequest;
  /**
   * Requests a page for any read except the initial snapshot. A record is not decoded if the digest of its bytes is the one stored with its
   * published image.
   */
  readonly afterSnapshot: ListRequest;
}

/**
 * Time by which a resync reads further back than requested, in ms. The server may exclude the lower bound, or truncate it to the second.
 */
const DATE_BOUND_MARGIN_MS = 1_000;

/**
 * Reads one list from the API, with concurrent streams of requests (lanes):
 *
 * - the initial snapshot;
 * - polls and probes of the date parameters, if the list supports dates;
 * - after the snapshot, recurring full scans (sweeps) and requested resyncs;
 * - single records, if they can be requested by key: uncertain ones, and those that a sweep did not show.
 */
export class ListReads {
  /** Results of all reads of the list, in the order of their arrival; never completes. */
  readonly batches$: Observable<ReadBatch>;
  readonly #options: ListReadsOptions;
  readonly #clock = new ServerClock();
  readonly #single: SingleRecords;
  readonly #openPageLane: ReturnType<typeof pageLanes>;
  readonly #certificates = new CertificateRequests();
  readonly #snapshot: SnapshotReads;
  readonly #polls: PollReads;
  /** Requests single records again if their content is uncertain. Undefined for a list without dates: its next sweep reads such records. */
  readonly #refetches: Refetches | undefined;
  #isResyncing = false;

  constructor(options: ListReadsOptions) {
    this.#options = options;
    const { task, lanes, lists } = options;
    const { hooks, scheduler, list } = task;
    const { dates, one } = list;
    this.#single = new SingleRecords({
      one,
      request: lists.afterSnapshot,
      settle: (span) => lists.clock.settle(span.begin),
      onRefused: (error) => hooks.onRefused({ error }),
    });
    this.#openPageLane = pageLanes({
      task,
      logicalClock: lists.clock,
      keyOf: keyOfFields(options.keyFields),
      leftOut: ignoredFields(lists.volatile.pointers, (fields) => hooks.onVolatile({ fields })),
      plan: lists.plan,
      requestIntervalMs: lanes.requestIntervalMs,
    });
    const progress = options.progress();
    const snapshotLimit = dates ? lanes.initialSnapshot : lanes.fullScan;
    this.#snapshot = new SnapshotReads({
      task,
      lane: this.#open(snapshotLimit, options.snapshotPageSlots ?? 2, lists.snapshot),
      clock: this.#clock,
      progress,
      isPolled: () => this.#isPolled,
    });
    this.#polls = this.#pollReads(progress.since);
    // Records that differ in every response are refetched again and again; in the lane of polls, they would leave no quota for sweeps.
    const refetchLane = this.#open(this.#besidePolls(lanes.lookback), 1);
    this.#refetches = dates ? new Refetches(this.#single, refetchLane, scheduler) : undefined;
    const others$ = merge(this.#resyncs(), this.#sweeps(), this.#snapshot.batches$);
    this.batches$ = this.#refetches
      ? merge(this.#refetches.batches$, this.#polls.batches$, others$)
      : others$;
  }

  /**
   * Requests a single record by its key, at once or at the time in `later`: see {@link Refetches.refetch}. Does nothing for a list without
   * dates.
   */
  refetch(key: string, later?: ScheduledRefetch): void {
    this.#refetches?.refetch(key, later);
  }

  /** Checks published changes. If polls should have read one of them earlier, the list's date parameters are probed again. */
  onPublished(published: Pick<Published, 'lane' | 'changes'>): void {
    this.#polls.onPublished(published);
  }

  get #isPolled(): boolean {
    return this.#options.task.list.dates !== undefined && !this.#polls.isUnpolled;
  }

  get #isDone(): boolean {
    return this.#options.progress().firstRead.done;
  }

  #open(limit: Limit, slots: number, request = this.#options.lists.afterSnapshot): ReadLane {
    const lane = this.#openPageLane(limit, slots, request);
    const split = (answer: Answer) => this.#split(answer, lane);
    const splitAndTellClock = (answer: Answer): ReadResult => {
      const result = split(answer);
      this.#clock.see(recordsOf(answer).updatedAt());
      return result;
    };
    const nothing = { keyed: [], runs: [], rejected: [], rejectedAt: [] };
    const noRecords = (span = this.#emptySpan()) => ({
      ...nothing,
      span,
      settle: lane.settler(span),
    });
    return { ...lane, split, splitAndTellClock, noRecords };
  }

  #split(answer: Answer, lane: PageLane): ReadResult {
    const { task, lists } = this.#options;
    const { scheduler } = task;
    const { span, serverTime, elapsedMs = 0 } = answer;
    const { age = { asOf: scheduler.now() - elapsedMs, staleMs: 0 } } = answer;
    const records = recordsOf(answer);
    const split = splitPageRecords(records, lists.volatile);
    this.#single.observe(records);
    this.#clock.tell(serverTime, scheduler.now());
    const settleRead = lane.settler(span);
    const settle = () => {
      records.settle();
      settleRead();
    };
    return { ...split, span, age, settle };
  }

  /** Returns the quota limit for reads other than polls: `usual` while polls of the list work, else `lanes.fullScan`. */
  #besidePolls(usual: Limit): Limit {
    const { task, lanes } = this.#options;
    // In a lane of lower priority than the frequent sweeps of an unpolled list, requests might never be sent.
    if (!task.list.dates) return lanes.fullScan;
    return urgentLimit(usual, lanes.fullScan, this.#polls.unpolled$.pipe(filter(Boolean)));
  }

  /** Returns a new span (begin and end on the list's logical clock) for a batch without a response. */
  readonly #emptySpan = () => {
    const { clock } = this.#options.lists;
    return clock.answered(clock.begin());
  };

  #pollReads(since: number | null): PollReads {
    const { task, lanes, lists } = this.#options;
    return new PollReads({
      task,
      clock: this.#clock,
      open: () => ({ newest: this.#open(lanes.poll, 2), back: this.#open(lanes.lookback, 1) }),
      probe: probeLane(this.#open(lanes.poll, 1), lists.afterSnapshot, task.config.poll.pageSize),
      since$: this.#snapshot.pollStart$.pipe(map((began) => since ?? began)),
      spacingMs: () => lanes.pollSpacingMs(this.#concurrentReads()),
      catchesUp: (from) => this.#isDone && this.#reachesSnapshot(from),
    });
  }

  #concurrentReads(): Parameters<Lanes['pollSpacingMs']>[0] {
    if (!this.#isDone) return 'first-read';
    const { task, checkpoint } = this.#options;
    const { sweep } = checkpoint;
    const { deleteProofMs } = task.config.poll;
    const isWaiting = proofRemainingMs(sweep, task.scheduler.now(), deleteProofMs) > 0;
    const isAsking = task.list.one !== undefined && sweep.phase === 'removing';
    return this.#isResyncing || (!isWaiting && (isAsking || this.#certificates.hasPending()))
      ? 'asking'
      : 'nothing';
  }

  /** Whether a poll window that begins at `from` (epoch ms) is sure to include every change made during the snapshot. */
  #reachesSnapshot(from: number): boolean {
    const began = this.#options.progress().firstRead.startedAt ?? MAX_BACK_MS;
    // If no record was modified since `from`, the server's modification times lag behind its clock.
    return from <= (this.#clock.newest() ?? began - MAX_BACK_MS);
  }

  /** Scans the whole list (sweep) repeatedly after the snapshot: at long intervals while polls work, else at the interval of polls. */
  #sweeps(): Observable<SweepBatch> {
    const { task, lanes, checkpoint, createdSince, certifications$ = NEVER } = this.#options;
    const { hooks, scheduler } = task;
    const { one } = task.list;
    const { intervalMs, sweepIntervalMs, deleteLimitPercent, deleteProofMs } = task.config.poll;
    const certificates = this.#certificates;
    const limit = urgentLimit(lanes.sweep, lanes.singleRecords, certificates.urgent$);
    const lane = this.#open(this.#besidePolls(limit), 1);
    const isPolled = () => this.#isPolled;
    const sweeping = () =>
      sweeps({
        progress: () => checkpoint.sweep,
        scan: (position, onTrouble) => {
          if (position === null) certificates.scanStarted();
          return lane.scan({}, { from: position, onTrouble });
        },
        pageSlots: lane.pageSlots,
        records: checkpoint.store,
        createdSince,
        ...(one && {
          single: {
            canRequest: (key) => this.#single.canRequest(key),
            request: (key) => this.#single.request(key, lanes.singleRecords),
          },
        }),
        ...(task.list.dates && { pollsCompleted$: this.#polls.pollsCompleted$ }),
        emptySpan: this.#emptySpan,
        pace: {
          get intervalMs() {
            return isPolled() ? sweepIntervalMs : (intervalMs ?? 0);
          },
          spacingMs: () => (isPolled() ? 0 : lanes.requestIntervalMs),
          startNow$: merge(
            certificates.startNow$,
            this.#polls.unpolled$.pipe(skip(1), filter(Boolean)),
          ),
        },
        deletions: {
          proofMs: deleteProofMs,
          limitPercent: deleteLimitPercent,
          canProve: canProveAbsence(task.list),
          onHeld: (held) => hooks.onHeld({ ...held, limitPercent: deleteLimitPercent }),
          onCut: (total) => hooks.onTrouble({ trouble: 'cut', offset: total }),
        },
        scheduler,
      }).pipe(retryRefusedLane(task, isPolled, lane));
    const hold = ({ begin }: Span) => this.#options.lists.clock.hold(begin);
    const batchOf = sweepBatch(lane, () => certificates.scanEnded(), one ? undefined : hold);
    return merge(
      certifications$.pipe(
        tap((request) => certificates.add(request)),
        ignoreElements(),
      ),
      this.#snapshot.done$.pipe(take(1), switchMap(sweeping), map(batchOf)),
    );
  }

  #resyncs(): Observable<ResyncBatch> {
    const { task, lanes, resyncs$ = NEVER } = this.#options;
    const lane = this.#open(this.#besidePolls(lanes.singleRecords), 1);
    return this.#snapshot.done$.pipe(
      take(1),
      switchMap(() =>
        resyncReads({
          requests$: resyncs$,
          scan: (since) =>
            since === null || !this.#isPolled ? lane.scan({}) : this.#scanFrom(since, lane),
          single: task.list.one && this.#single,
          singleLists: task.config.description.lists.flatMap(({ name, one }) => (one ? name : [])),
          lane,
          onBegin: ({ id }) => {
            this.#isResyncing = true;
            task.hooks.onResync({ id, status: 'begun', events: 0, message: null });
          },
        }),
      ),
      tap(({ step }) => (this.#isResyncing &&= !step.outcome)),
    );
  }

  /**
   * Scans the records modified at or after `since` (epoch ms), and a few earlier ones. Scans the whole list instead if a request with dates
   * finally fails.
   */
  #scanFrom(since: number, lane: ReadLane): Observable<ScanPage> {
    const { dates } = this.#polls;
    const now = this.#clock.latest(this.#options.task.scheduler.now());
    const { dates: window } = dates.windowOf(dates.fromStamp(since - DATE_BOUND_MARGIN_MS), now);
    return datedScan(lane, dates, window, now).pipe(orFullScan(lane, () => lane.scan({})));
  }
}
