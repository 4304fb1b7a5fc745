import { EMPTY, map, merge, NEVER, ReplaySubject, switchMap, take, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Lanes } from '../../account/quotas.ts';
import type { Resync } from '../../account/resync-requests.ts';
import { volatilePointers } from '../../config/volatile-fields-of.ts';
import { permits as permitsFor } from '../../streams/flow/permits.ts';
import type { Permits } from '../../streams/flow/permits.ts';
import type { Answer, ListRequest } from '../../streams/http/answer.ts';
import type { LogicalClock, Span } from '../../streams/http/logical-clock.ts';
import { MAX_BEHIND_MS, serverClock } from '../../streams/http/server-clock.ts';
import { leftOut } from '../../streams/paging/left-out.ts';
import { pages } from '../../streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../../streams/paging/pages.ts';
import { poll, window } from '../../streams/paging/poll.ts';
import { proofLeft } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { sweeps } from '../../streams/paging/sweeps.ts';
import type { KnownRecords } from '../../streams/paging/sweeps.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import { keyOfFields } from '../../streams/records/key-of.ts';
import { splitRecords } from '../../streams/records/records.ts';
import { volatileFields } from '../../streams/records/volatile-fields.ts';
import type { Cursor, InitialSnapshot } from '../checkpoint/cursor.ts';
import type { Task } from '../task.ts';
import type { Brought, PollBatch, ReadBatch, SnapshotBatch } from './read-batch.ts';
import { refetches } from './refetches.ts';
import { resyncReads } from './resync-reads.ts';
import { singleRecords } from './single-records.ts';
import { sweepBatch } from './sweep-batches.ts';

export interface ListReadsOptions {
  readonly task: Pick<Task, 'account' | 'rules' | 'config' | 'hooks' | 'scheduler'>;
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
}

/** The pages of a list as records. */
export interface DecodedLists {
  /** The order of their requests. */
  readonly clock: LogicalClock;
  /** For the initial snapshot: nothing of it is known. */
  readonly snapshot: ListRequest;
  /** For all that is read later. */
  readonly later: ListRequest;
}

export interface ListReads {
  /** What all lanes bring, as it comes; never completes by itself. */
  readonly batches$: Observable<ReadBatch>;
  /** Reads a record again, by its key; one that is asked for already is not asked for twice. */
  readonly refetch: (key: string) => void;
}

/** A part of a list's quota, and pages that wait for their commit: a lane whose pages don't get there stops asking. */
interface Lane {
  readonly limit: Limit;
  readonly permits: Permits;
  readonly scan: (
    query: object,
    more?: Pick<PagesOptions, 'from' | 'onTrouble'>,
  ) => Observable<ScanPage>;
  /** What settles a read of this lane. */
  readonly settling: (span: Span) => () => void;
  /** An answer, split into what can be published and what can't. */
  readonly arrived: (answer: Answer) => Brought;
}

/** Pages that answers of five seconds take to use up a quota of 100 a minute. */
const MAX_AHEAD = 9;
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
  const { account, config, hooks, scheduler } = task;
  const { resource, windowed, byKey } = task.rules;
  const { lookbackMs, intervalMs, sweepIntervalMs, startFrom, pageSize } = config.poll;
  const { deleteLimitPercent, deleteProofMs } = config.poll;
  const keyOf = keyOfFields(keyFields);
  const pointers = volatilePointers(config, resource);
  const volatile = volatileFields(pointers);
  const anchorsWithout = leftOut(pointers, (fields) => hooks.onVolatile({ fields }));
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

  const lane = (limit: Limit, places: number, request = lists.later): Lane => {
    const permits = permitsFor(places);
    const settling = (span: Span) => () => {
      reads.settle(span.begin);
      permits.release();
    };
    return {
      limit,
      permits,
      scan: (query, more = {}) =>
        pages({
          request: (page) => request({ ...query, ...page }, limit),
          keyOf,
          pageSize,
          leftOut: anchorsWithout,
          permit: () => permits.acquire,
          ahead: {
            most: MAX_AHEAD,
            paceMs: lanes.paceMs,
            onDrop: ({ span }, offset) => {
              reads.settle(span.begin);
              hooks.onDropped({ offset });
            },
            scheduler,
          },
          ...more,
          onTrouble: (trouble, offset) => {
            hooks.onTrouble({ trouble, offset });
            more.onTrouble?.(trouble, offset);
          },
        }),
      settling,
      arrived: ({ span, data, serverTime }) => {
        const split = splitRecords(data, volatile);
        single.saw(split.keyed.map(({ key }) => key));
        clock.tell(serverTime);
        return { ...split, span, settle: settling(span) };
      },
    };
  };
  /** Polls tell the clock by themselves. */
  const seen =
    ({ arrived }: Lane) =>
    (answer: Answer): Brought => {
      const brought = arrived(answer);
      clock.see(answer.data.map(({ updatedAt }) => updatedAt));
      return brought;
    };
  const snapshotLane = lane(
    windowed ? lanes.firstRead : lanes.whole,
    options.pagesUnderWay ?? 2,
    lists.snapshot,
  );
  const pollLane = lane(lanes.poll, 2);
  const lookBackLane = lane(lanes.lookBack, 1); // polls that look back far keep no other waiting
  const sweepLane = lane(windowed ? lanes.sweep : lanes.whole, 1);
  const refetchLane = lane(lanes.poll, 1);
  const resyncLane = lane(windowed ? lanes.ask : lanes.whole, 1);

  /** Begins before what is wanted: the rest is left out by `updated_at`. */
  const windowFrom = (since: number) => window(since - BOUND_MS, clock.latest() ?? scheduler.now());
  const { firstRead: begun, since: polledUntil } = progress();
  const isDone = () => progress().firstRead.done;
  /** Where the first window begins, once it is known: at the server's time as the initial snapshot began. */
  const began$ = new ReplaySubject<number>(1);
  if (begun.startedAt !== null) began$.next(begun.startedAt);
  const done$ = new ReplaySubject<void>(1);
  if (begun.done) done$.next();

  const snapshot$ = account.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (begun.done) return EMPTY;
      clock.tell(serverTime);
      // What is modified later than its end is the polls' to read.
      const query =
        startFrom === undefined || !windowed
          ? {}
          : window(startFrom, clock.latest() ?? scheduler.now());
      let { startedAt } = begun;
      return snapshotLane.scan(query, { from: begun.position }).pipe(
        map((page): SnapshotBatch => {
          // A server may never tell its time: then nobody can say what was made after the beginning.
          startedAt ??= beginning(page.answer.serverTime, polledUntil);
          const done = page.next === undefined;
          const snapshot: InitialSnapshot = {
            startedAt,
            position: page.next ?? null,
            done,
            caughtUp: false,
          };
          const brought = seen(snapshotLane)(page.answer);
          const newest = clock.newest();
          // An empty list tells nothing of the clock that will stamp its first record.
          const slack = newest === undefined ? MAX_BEHIND_MS : 0;
          began$.next((startedAt ?? newest ?? slack) - slack);
          const settle = () => {
            brought.settle();
            if (done) done$.next();
          };
          return { lane: 'first-read', ...brought, settle, page, snapshot };
        }),
      );
    }),
  );

  let isResyncing = false;
  const beside = () => {
    if (!isDone()) return 'first-read';
    const { sweep } = checkpoint;
    const isWaiting = proofLeft(sweep, scheduler.now(), deleteProofMs) > 0;
    const isAsking = byKey !== undefined && sweep.phase === 'removing' && !isWaiting;
    return isAsking || isResyncing ? 'asking' : 'nothing';
  };
  /** Whether the poll that goes on began behind the initial snapshot. */
  let isBehind = false;
  const polls$ = began$.pipe(
    take(1),
    switchMap((startedAt) =>
      poll({
        scan: (dates) => {
          isBehind = isDone();
          return pollLane.scan(dates);
        },
        scanBack: (dates) => lookBackLane.scan(dates),
        clock,
        since: polledUntil ?? startedAt,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs }),
        spacingMs: () => lanes.spacingMs(beside()),
        scheduler,
      }),
    ),
    map(({ page, since, looksBack }): PollBatch => {
      const brought = (looksBack ? lookBackLane : pollLane).arrived(page.answer);
      return { lane: 'poll', ...brought, page, since, catchesUp: since !== undefined && isBehind };
    }),
  );

  const sweeps$ = done$.pipe(
    take(1),
    switchMap(() =>
      sweeps({
        progress: () => checkpoint.sweep,
        scan: (position, onUnsettled) =>
          sweepLane.scan(
            {},
            { from: position, onTrouble: (trouble) => trouble === 'unsettled' && onUnsettled() },
          ),
        permits: sweepLane.permits,
        records: checkpoint,
        ...(byKey && { single: { ...single, ask: (key) => single.ask(key, lanes.ask) } }),
        moment,
        pace: windowed
          ? { intervalMs: sweepIntervalMs }
          : { intervalMs: intervalMs ?? 0, spacingMs: () => lanes.paceMs },
        deletions: {
          proofMs: deleteProofMs,
          limitPercent: deleteLimitPercent,
          onHeld: (held) => hooks.onHeld({ ...held, limitPercent: deleteLimitPercent }),
        },
        scheduler,
      }),
    ),
    map(
      sweepBatch({
        moment,
        arrived: seen(sweepLane),
        settling: sweepLane.settling,
        endCatchesUp: !windowed,
      }),
    ),
  );

  const again = refetches({ single, ...refetchLane, arrived: seen(refetchLane) });

  const resyncs$ = done$.pipe(
    take(1),
    switchMap(() =>
      resyncReads({
        requests$: options.resyncs$ ?? NEVER,
        scan: (since) => resyncLane.scan(since === null || !windowed ? {} : windowFrom(since)),
        single: byKey && single,
        permits: resyncLane.permits,
        limit: resyncLane.limit,
        moment,
        arrived: seen(resyncLane),
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
      ? merge(again.batches$, polls$, resyncs$, sweeps$, snapshot$)
      : merge(resyncs$, sweeps$, snapshot$),
    refetch: again.refetch,
  };
}

/**
 * What was made after it is new. An initial snapshot that begins anew, after earlier polls, takes nothing for new
 * that they can have brought: the clock that stamps records may be ahead.
 */
function beginning(serverTime: number | undefined, since: number | null): number | null {
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
