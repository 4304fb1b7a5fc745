import {
  defer,
  EMPTY,
  filter,
  map,
  merge,
  NEVER,
  skip,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { pageLanes } from '../../account/page-lane.ts';
import type { Lanes } from '../../account/quotas.ts';
import type { CertifyJob, ResyncJob } from '../../account/signal-jobs.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import type { Answer, ListRequest } from '../../streams/decode/response.ts';
import type { LogicalClock } from '../../streams/http/logical-clock.ts';
import type { PagePlan } from '../../streams/http/page-plan.ts';
import { MAX_BACK_MS, serverClock } from '../../streams/http/server-clock.ts';
import { ignoredFields } from '../../streams/paging/standstill.ts';
import { proofRemainingMs } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { KnownRecords } from '../../streams/paging/missing-keys.ts';
import { keyOfFields } from '../../streams/records/key-of.ts';
import { urgentLimit } from '../../streams/quota/token-bucket.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import { splitPageRecords } from '../../streams/records/records.ts';
import type { VolatileFields } from '../../streams/records/volatile-fields.ts';
import type { Cursor } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import { certificateRequests } from './certificate-requests.ts';
import { datedScan, orFullScan } from './dated-scan.ts';
import { pollScans } from './poll-scans.ts';
import { pollReads } from './poll-reads.ts';
import type { PollReads } from './poll-reads.ts';
import { probeLane } from './probe-lane.ts';
import type { ReadResult, ReadBatch, ReadLane } from './read-batch.ts';
import { refetches } from './refetches.ts';
import type { Refetches } from './refetches.ts';
import { resyncReads } from './resync-reads.ts';
import { singleRecords } from './single-records.ts';
import { snapshotReads } from './snapshot-reads.ts';
import { sweepReads } from './sweep-reads.ts';

export interface ListReadsOptions {
  readonly task: Pick<
    Task,
    'account' | 'rules' | 'config' | 'hooks' | 'scheduler' | 'phase' | 'pollNow$'
  >;
  readonly lanes: Lanes;
  /** Fields that form the keys of the records. */
  readonly keyFields: readonly string[];
  readonly lists: DecodedLists;
  /** Returns the current progress of the initial snapshot and the polls. */
  readonly progress: () => Pick<Cursor, 'firstRead' | 'since'>;
  /** The published records, and the current progress of sweeps. */
  readonly checkpoint: KnownRecords & { readonly sweep: SweepProgress };
  /**
   * Number of pages of the initial snapshot that may be between request and commit. Default 2: one page is requested while another is
   * committed.
   */
  readonly snapshotPageSlots?: number;
  /** Resync requests, handled once the initial snapshot is done. Default none. */
  readonly resyncs$?: Observable<ResyncJob> | undefined;
  /** Returns the keys of records published as new since a local time, in ms. Default none. */
  readonly createdSince?: ((time: number) => readonly string[]) | undefined;
  /** Requests for certificates, handled once the initial snapshot is done. Default none. */
  readonly certifications$?: Observable<CertifyJob> | undefined;
}

/** Requests for the decoded pages of a list, and what is known about the list. */
export interface DecodedLists {
  /** Logical clock that numbers the begin and the end of each of the list's reads, so that overlapping reads are recognized. */
  readonly clock: LogicalClock;
  /** Volatile fields: a change of these alone publishes no event. */
  readonly volatile: VolatileFields;
  /** Chooses the list offset and the size of the next page to request. Default: each scan detects by itself what the server supports. */
  readonly plan?: PagePlan | undefined;
  /** Requests pages of the initial snapshot, whose records are not compared with stored digests. */
  readonly snapshot: ListRequest;
  /** Requests pages of all other lanes; most records are recognized by stored digests. */
  readonly afterSnapshot: ListRequest;
}

export interface ListReads {
  /** Batches of all lanes in the order of their arrival; never completes. */
  readonly batches$: Observable<ReadBatch>;
  readonly refetch: Refetches['refetch'];
  /** To be called with what each batch has published. */
  readonly onPublished: PollReads['onPublished'];
}

/**
 * How long a sweep waits for polls to read the changes made during the sweep, in ms; three poll intervals if that is longer. Too small: a
 * sweep that relies on polls for records that moved within the list proves nothing. Too large: polls that the API refuses hold up sweeps.
 */
const POLLS_TIMEOUT_MS = 5 * 60_000;

/**
 * How much earlier than the requested time a resync begins to read, in ms: the server may treat the bound as exclusive, or truncate it to
 * the second.
 */
const DATE_BOUND_MARGIN_MS = 1_000;

/**
 * Reads one list from the API, in lanes that run concurrently: the initial snapshot; polls during and after the snapshot, if the list
 * supports dates; sweeps after the snapshot, rare with polls, back to back without; resyncs; and, if records can be requested by key,
 * refetches of records that overlapping reads left undecided or that a sweep missed.
 */
export function listReads(options: ListReadsOptions): ListReads {
  const { task, lanes, keyFields, lists, progress, checkpoint } = options;
  const { config, hooks, scheduler } = task;
  const { windowed, byKey } = task.rules;
  const { deleteProofMs } = config.poll;
  const logicalClock = lists.clock;
  const clock = serverClock();
  /** Returns the current moment of the logical clock as a span, for a batch without a read. */
  const emptySpan = () => logicalClock.answered(logicalClock.begin());
  const single = singleRecords({
    byKey,
    request: lists.afterSnapshot,
    settle: (span) => logicalClock.settle(span.begin),
    onRefused: (error) => hooks.onRefused({ error }),
  });

  const openLane = pageLanes({
    task,
    logicalClock,
    keyOf: keyOfFields(keyFields),
    leftOut: ignoredFields(lists.volatile.pointers, (fields) => hooks.onVolatile({ fields })),
    plan: lists.plan,
    requestIntervalMs: lanes.requestIntervalMs,
  });
  const open = (limit: Limit, places: number, request: ListRequest): ReadLane => {
    const lane = openLane(limit, places, request);
    const arrived = (answer: Answer): ReadResult => {
      const { span, serverTime, elapsedMs = 0 } = answer;
      const { age = { asOf: scheduler.now() - elapsedMs, staleMs: 0 } } = answer;
      const records = recordsOf(answer);
      const split = splitPageRecords(records, lists.volatile);
      single.observe(records);
      clock.tell(serverTime, scheduler.now());
      const settleRead = lane.settler(span);
      const settle = () => {
        records.settle();
        settleRead();
      };
      return { ...split, span, age, settle };
    };
    const splitAndTellClock = (answer: Answer): ReadResult => {
      const result = arrived(answer);
      clock.see(recordsOf(answer).updatedAt());
      return result;
    };
    return { ...lane, split: arrived, splitAndTellClock };
  };
  const snapshotLimit = windowed ? lanes.initialSnapshot : lanes.fullScan;
  const snapshotLane = open(snapshotLimit, options.snapshotPageSlots ?? 2, lists.snapshot);
  const certificates = certificateRequests();
  const { urgent$ } = certificates;
  const forSweeps = urgentLimit(lanes.sweep, lanes.singleRecords, urgent$);

  const initialProgress = progress();
  const isDone = () => progress().firstRead.done;
  const isPolled = (): boolean => windowed && !polls.isUnpolled();
  const snapshot = snapshotReads({
    task,
    lane: snapshotLane,
    clock,
    progress: initialProgress,
    isPolled,
  });

  let isResyncing = false;
  const concurrentReads = () => {
    if (!isDone()) return 'first-read';
    const { sweep } = checkpoint;
    const isWaiting = proofRemainingMs(sweep, scheduler.now(), deleteProofMs) > 0;
    const isAsking = byKey !== undefined && sweep.phase === 'removing';
    return isResyncing || (!isWaiting && (isAsking || certificates.hasPending()))
      ? 'asking'
      : 'nothing';
  };
  /** Whether a poll window from `from` on includes every change made during the snapshot. It may not if the server's stamps lag behind. */
  const reaches = (from: number) => {
    const began = progress().firstRead.startedAt ?? MAX_BACK_MS;
    return from <= (clock.newest() ?? began - MAX_BACK_MS);
  };
  const rounds = pollScans(scheduler);
  const pollsPatienceMs = Math.max(POLLS_TIMEOUT_MS, 3 * (config.poll.intervalMs ?? 0));
  /** Whether the running poll began after the initial snapshot ended, so that it reads what the snapshot missed. */
  let catchesUp = false;
  const polls = pollReads({
    task,
    clock,
    pollScans: rounds,
    open: () => ({
      newest: open(lanes.poll, 2, lists.afterSnapshot),
      back: open(lanes.lookback, 1, lists.afterSnapshot),
    }),
    probe: probeLane({
      lane: open(lanes.poll, 1, lists.afterSnapshot),
      request: lists.afterSnapshot,
      pageSize: config.poll.pageSize,
    }),
    since$: snapshot.pollStart$.pipe(map((began) => initialProgress.since ?? began)),
    spacingMs: () => lanes.pollSpacingMs(concurrentReads()),
    onPoll: (from) => (catchesUp = isDone() && reaches(from)),
    catchesUp: () => catchesUp,
  });
  const { dates, unpolled$ } = polls;
  /**
   * Limit of a lane that may read the whole list: `usual` while the list is polled, else `lanes.fullScan`. Without polls, sweeps follow one
   * another at the pace of the quota and with the rank of polls, so a lane of a lower rank might never get a request.
   */
  const besidePolls = (usual: Limit): Limit =>
    windowed ? urgentLimit(usual, lanes.fullScan, unpolled$.pipe(filter(Boolean))) : lanes.fullScan;
  // Records that differ in every response are refetched again and again; in the lane of polls, they would leave no quota for sweeps.
  const refetchLane = open(besidePolls(lanes.lookback), 1, lists.afterSnapshot);
  const sweepLane = open(besidePolls(forSweeps), 1, lists.afterSnapshot);
  const resyncLane = open(besidePolls(lanes.singleRecords), 1, lists.afterSnapshot);

  const sweeps$ = sweepReads({
    task,
    lane: sweepLane,
    lanes,
    checkpoint,
    single,
    isPolled,
    unpolled$: unpolled$.pipe(skip(1), filter(Boolean)),
    snapshotDone$: snapshot.done$,
    emptySpan,
    hold: ({ begin }) => logicalClock.hold(begin),
    certificates,
    createdSince: options.createdSince,
    certifications$: options.certifications$,
    // Completes without a value once polls are given up or take too long: the sweep then continues without them.
    pollsCompleted$: windowed
      ? defer(() => (isPolled() ? rounds.pollsCompleted$ : EMPTY)).pipe(
          takeUntil(unpolled$.pipe(filter(Boolean))),
          takeUntil(timer(pollsPatienceMs, scheduler)),
        )
      : undefined,
  });

  /**
   * Scans the records modified since `since`, and a few earlier ones, which are filtered by `updated_at` later. Scans the whole list if it
   * refuses dates.
   */
  const scanFrom = (since: number) => {
    const now = clock.latest(scheduler.now());
    const { dates: window } = dates.windowOf(dates.fromStamp(since - DATE_BOUND_MARGIN_MS), now);
    const fullScan = () => resyncLane.scan({});
    return datedScan(resyncLane, dates, window, now).pipe(orFullScan(resyncLane, fullScan));
  };
  const again = refetches({
    single,
    ...refetchLane,
    split: refetchLane.splitAndTellClock,
    scheduler,
  });

  const resyncs$ = snapshot.done$.pipe(
    take(1),
    switchMap(() =>
      resyncReads({
        requests$: options.resyncs$ ?? NEVER,
        scan: (since) => {
          const isWhole = since === null || !isPolled();
          return isWhole ? resyncLane.scan({}) : scanFrom(since);
        },
        single: byKey && single,
        pageSlots: resyncLane.pageSlots,
        limit: resyncLane.limit,
        emptySpan,
        split: resyncLane.splitAndTellClock,
        settler: resyncLane.settler,
        onBegin: ({ id }) => {
          isResyncing = true;
          hooks.onResync({ id, status: 'begun', events: 0, message: null });
        },
      }),
    ),
    tap(({ step }) => (isResyncing &&= !step.outcome)),
  );

  return {
    batches$: windowed
      ? merge(again.batches$, polls.batches$, resyncs$, sweeps$, snapshot.batches$)
      : merge(resyncs$, sweeps$, snapshot.batches$),
    refetch: again.refetch,
    onPublished: polls.onPublished,
  };
}
