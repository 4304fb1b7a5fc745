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
import type { CertifyAsked, Resync } from '../../account/resync-requests.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import type { Answer, ListRequest } from '../../streams/decode/answer.ts';
import type { LogicalClock } from '../../streams/http/logical-clock.ts';
import type { PagePlan } from '../../streams/http/page-plan.ts';
import { MAX_BACK_MS, serverClock } from '../../streams/http/server-clock.ts';
import { leftOut } from '../../streams/paging/standstill.ts';
import { proofLeft } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import type { KnownRecords } from '../../streams/paging/missing-keys.ts';
import { keyOfFields } from '../../streams/records/key-of.ts';
import { hastened } from '../../streams/quota/token-bucket.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import { splitPage } from '../../streams/records/records.ts';
import type { VolatileFields } from '../../streams/records/volatile-fields.ts';
import type { Cursor } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import { askedReadings } from './certify-asked.ts';
import { datedScan, orWhole } from './dated-scan.ts';
import { pollRounds } from './poll-rounds.ts';
import { pollReads } from './poll-reads.ts';
import type { PollReads } from './poll-reads.ts';
import { probeLane } from './probe-lane.ts';
import type { Brought, ReadBatch, ReadLane } from './read-batch.ts';
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
  /** What the records' keys are made of. */
  readonly keyFields: readonly string[];
  readonly lists: DecodedLists;
  /** How far reads have come by now. */
  readonly progress: () => Pick<Cursor, 'firstRead' | 'since'>;
  /** What is published, and how far sweeps have come by now. */
  readonly checkpoint: KnownRecords & { readonly sweep: SweepProgress };
  /** Pages of the initial snapshot that may be under way at once. Default 2: one asked for, one committed. */
  readonly pagesUnderWay?: number;
  /** What is to be published again, once the initial snapshot is done. Default nothing. */
  readonly resyncs$?: Observable<Resync> | undefined;
  /** Keys of records that were published as new since a local time, in ms. Default none. */
  readonly createdSince?: ((time: number) => readonly string[]) | undefined;
  /** Requests for certificates, likewise. Default none. */
  readonly certify$?: Observable<CertifyAsked> | undefined;
}

/** The pages of a list as records. */
export interface DecodedLists {
  /** The order of their requests. */
  readonly clock: LogicalClock;
  /** The fields whose change alone is no event. */
  readonly volatile: VolatileFields;
  /** Where pages are asked for. Default: found out by each scan. */
  readonly plan?: PagePlan | undefined;
  /** For the initial snapshot: nothing of it is known. */
  readonly snapshot: ListRequest;
  /** For all that is read later. */
  readonly later: ListRequest;
}

export interface ListReads {
  /** What all lanes bring, as it comes; never completes by itself. */
  readonly batches$: Observable<ReadBatch>;
  readonly refetch: Refetches['refetch'];
  /** Takes what each batch has published. */
  readonly published: PollReads['published'];
}

/**
 * How long a sweep waits for the polls that look at what changed beside it, in ms; at least three intervals of polls. Too small: an
 * anchored sweep proves nothing. Too large: polls that the API refuses hold up sweeps.
 */
const POLLS_PATIENCE_MS = 5 * 60_000;

/** A bound of dates may be exclusive, or cut to the second. */
const BOUND_MS = 1_000;

/**
 * What is asked of the API for one list, in lanes: the initial snapshot; polls beside
 * and after it, where the list takes dates; sweeps of the whole list after it, rare beside polls and
 * one after the other where there are none; single records, where they can be asked for, of
 * which two answers could not be told apart or that a sweep has missed; and what somebody wants to
 * have published again.
 */
export function listReads(options: ListReadsOptions): ListReads {
  const { task, lanes, keyFields, lists, progress, checkpoint } = options;
  const { config, hooks, scheduler } = task;
  const { windowed, byKey } = task.rules;
  const { deleteProofMs } = config.poll;
  const reads = lists.clock;
  const clock = serverClock();
  /** When nothing was read: a moment in the order of the reads. */
  const moment = () => reads.answered(reads.begin());
  const single = singleRecords({
    byKey,
    request: lists.later,
    settle: (span) => reads.settle(span.begin),
    onRefused: (error) => hooks.onRefused({ error }),
  });

  const openLane = pageLanes({
    task,
    reads,
    keyOf: keyOfFields(keyFields),
    leftOut: leftOut(lists.volatile.pointers, (fields) => hooks.onVolatile({ fields })),
    plan: lists.plan,
    paceMs: lanes.paceMs,
  });
  const open = (limit: Limit, places: number, request: ListRequest): ReadLane => {
    const lane = openLane(limit, places, request);
    const arrived = (answer: Answer): Brought => {
      const { span, serverTime, elapsedMs = 0 } = answer;
      const { age = { asOf: scheduler.now() - elapsedMs, staleMs: 0 } } = answer;
      const records = recordsOf(answer);
      const split = splitPage(records, lists.volatile);
      single.saw(records);
      clock.tell(serverTime, scheduler.now());
      const settled = lane.settling(span);
      const settle = () => {
        records.settle();
        settled();
      };
      return { ...split, span, age, settle };
    };
    const seen = (answer: Answer): Brought => {
      const brought = arrived(answer);
      clock.see(recordsOf(answer).updatedAt());
      return brought;
    };
    return { ...lane, arrived, seen };
  };
  const whole = windowed ? lanes.firstRead : lanes.whole;
  const snapshotLane = open(whole, options.pagesUnderWay ?? 2, lists.snapshot);
  const asked = askedReadings();
  const { haste$ } = asked;
  const forSweeps = hastened(lanes.sweep, lanes.ask, haste$);

  const begun = progress();
  const isDone = () => progress().firstRead.done;
  const isPolled = (): boolean => windowed && !polls.isUnpolled();
  const snapshot = snapshotReads({ task, lane: snapshotLane, clock, begun, isPolled });

  let isResyncing = false;
  const beside = () => {
    if (!isDone()) return 'first-read';
    const { sweep } = checkpoint;
    const isWaiting = proofLeft(sweep, scheduler.now(), deleteProofMs) > 0;
    const isAsking = byKey !== undefined && sweep.phase === 'removing';
    return isResyncing || (!isWaiting && (isAsking || asked.isAsked())) ? 'asking' : 'nothing';
  };
  /** Whether a window that begins there has what changed during the snapshot: stamps may be too far behind for it. */
  const reaches = (from: number) => {
    const began = progress().firstRead.startedAt ?? MAX_BACK_MS;
    return from <= (clock.newest() ?? began - MAX_BACK_MS);
  };
  const rounds = pollRounds(scheduler);
  const pollsPatienceMs = Math.max(POLLS_PATIENCE_MS, 3 * (config.poll.intervalMs ?? 0));
  /** Whether the poll that goes on finds what the initial snapshot has missed: it began behind it. */
  let catchesUp = false;
  const polls = pollReads({
    task,
    clock,
    rounds,
    open: () => ({
      newest: open(lanes.poll, 2, lists.later),
      back: open(lanes.lookBack, 1, lists.later),
    }),
    probe: probeLane({
      lane: open(lanes.poll, 1, lists.later),
      request: lists.later,
      pageSize: config.poll.pageSize,
    }),
    since$: snapshot.began$.pipe(map((began) => begun.since ?? began)),
    spacingMs: () => lanes.spacingMs(beside()),
    onPoll: (from) => (catchesUp = isDone() && reaches(from)),
    catchesUp: () => catchesUp,
  });
  const { dates, unpolled$ } = polls;
  /**
   * The limit of a lane that may read the whole list: `usual` beside polls. Without polls, sweeps follow one another at the pace of the quota and
   * with the rank of polls, so a lane of a lower rank might never get a request.
   */
  const besidePolls = (usual: Limit): Limit =>
    windowed ? hastened(usual, lanes.whole, unpolled$.pipe(filter(Boolean))) : lanes.whole;
  // Records whose answers always differ are refetched without end: in the lane of polls, refetches would leave no quota for sweeps.
  const refetchLane = open(besidePolls(lanes.lookBack), 1, lists.later);
  const sweepLane = open(besidePolls(forSweeps), 1, lists.later);
  const resyncLane = open(besidePolls(lanes.ask), 1, lists.later);

  const sweeps$ = sweepReads({
    task,
    lane: sweepLane,
    lanes,
    checkpoint,
    single,
    isPolled,
    unpolled$: unpolled$.pipe(skip(1), filter(Boolean)),
    done$: snapshot.done$,
    moment,
    hold: ({ begin }) => reads.hold(begin),
    asked,
    createdSince: options.createdSince,
    certify$: options.certify$,
    // Without polls nothing looks at what has changed, and what waits for that goes on without it.
    polled$: windowed
      ? defer(() => (isPolled() ? rounds.after$ : EMPTY)).pipe(
          takeUntil(unpolled$.pipe(filter(Boolean))),
          takeUntil(timer(pollsPatienceMs, scheduler)),
        )
      : undefined,
  });

  /** Begins before what is wanted: the rest is left out by `updated_at`. A list that refuses the dates is read whole. */
  const scanFrom = (since: number) => {
    const now = clock.latest(scheduler.now());
    const { dates: window } = dates.windowOf(dates.fromStamp(since - BOUND_MS), now);
    const whole = () => resyncLane.scan({});
    return datedScan(resyncLane, dates, window, now).pipe(orWhole(resyncLane, whole));
  };
  const again = refetches({ single, ...refetchLane, arrived: refetchLane.seen, scheduler });

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
        permits: resyncLane.permits,
        limit: resyncLane.limit,
        moment,
        arrived: resyncLane.seen,
        settling: resyncLane.settling,
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
    published: polls.published,
  };
}
