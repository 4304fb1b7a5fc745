import { EMPTY, map, merge, NEVER, ReplaySubject, switchMap, take, tap } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Api } from '../../account/api.ts';
import type { Config } from '../../config/config.ts';
import type { Hooks, Lane } from '../../observe/hooks.ts';
import type { Lanes } from '../../account/quotas.ts';
import type { ReadBatch } from './read-batch.ts';
import { refetches } from './refetches.ts';
import { resyncReads } from './resync-reads.ts';
import type { Resync } from '../../account/resync-requests.ts';
import { RULES } from '../../resources/resources.ts';
import type { Resource } from '../../resources/resources.ts';
import type { Cursor, InitialSnapshot } from '../checkpoint/cursor.ts';
import { singleRecords } from './single-records.ts';
import { leftOut } from '../../streams/paging/left-out.ts';
import { pages } from '../../streams/paging/pages.ts';
import type { PagesOptions } from '../../streams/paging/pages.ts';
import { hidingList } from '../../streams/records/hiding-list.ts';
import type { PersonalFields } from '../../streams/records/personal-fields.ts';
import { poll, window } from '../../streams/paging/poll.ts';
import { logicalClock } from '../../streams/http/logical-clock.ts';
import type { LogicalClock, Span } from '../../streams/http/logical-clock.ts';
import { keyRecords } from '../../streams/records/records.ts';
import { keyOfFields } from '../../streams/records/key-of.ts';
import type { Answer } from '../../streams/http/request.ts';
import { permits } from '../../streams/flow/permits.ts';
import type { Permits } from '../../streams/flow/permits.ts';
import { updatedAtIn } from '../../streams/records/sent-record.ts';
import type { ElementReader } from '../../streams/records/sent-record.ts';
import { MAX_BEHIND_MS, serverClock } from '../../streams/http/server-clock.ts';
import { proofLeft } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { sweeps } from '../../streams/paging/sweeps.ts';
import type { KnownRecords } from '../../streams/paging/sweeps.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import { sweepBatch } from './sweep-batches.ts';
import { volatileFields } from '../../streams/records/volatile-fields.ts';
import { unseenFields } from '../../account/unseen-fields.ts';
import { volatilePointers } from '../../config/volatile-fields-of.ts';

export interface ResourceReadsOptions {
  readonly resource: Resource;
  readonly config: Pick<Config, 'poll' | 'pii' | 'volatileFields'>;
  readonly api: Api;
  readonly lanes: Lanes;
  /** What the records' keys are made of. */
  readonly keyFields: readonly string[];
  /** What nobody gets to see of the records; undefined when that is nothing. */
  readonly personal: PersonalFields | undefined;
  /** Reads the records of the first read, of which nothing is to be hidden. Default: they are parsed. */
  readonly readNew?: ElementReader;
  /** The same behind it, where they may be known. */
  readonly readAgain?: ElementReader;
  /** Where earlier reads have come to. */
  readonly from: Pick<Cursor, 'firstRead' | 'since'>;
  /** Whether the first read is done by now. */
  readonly firstReadDone: () => boolean;
  /** Pages of the first read that may be under way at once. Default 2: one asked for, one committed. */
  readonly pagesUnderWay?: number;
  /** How far sweeps have come by now. */
  readonly sweep: () => SweepProgress;
  /** What is published. */
  readonly records: KnownRecords;
  /** What is to be published again, once the first read is done. Default nothing. */
  readonly resyncs$?: Observable<Resync>;
  readonly scheduler: SchedulerLike;
  readonly hooks: Pick<
    Hooks,
    'onTrouble' | 'onVolatile' | 'onDropped' | 'onHeld' | 'onRefused' | 'onResync' | 'onUnseen'
  >;
}

/** Where a page waits for its commit: polls that look back far keep no other waiting. */
type Place = Lane | 'look-back';

export interface ResourceReads {
  /** What all lanes bring, as it comes; never completes by itself. */
  readonly readings$: Observable<ReadBatch>;
  /** The order of the reads, for who has to tell older answers from newer ones. */
  readonly logicalClock: LogicalClock;
  /** Reads a record again, by its key; one that is asked for already is not asked for twice. */
  readonly readAgain: (key: string) => void;
}

/** Pages that answers of five seconds take to use up a quota of 100 a minute. */
const MAX_AHEAD = 9;
/** A bound of dates may be exclusive, or cut to the second. */
const BOUND_MS = 1_000;

/**
 * What is asked of the API for one resource, in lanes: the first read of all there is; polls beside
 * and after it, where the list takes dates; sweeps of the whole list after it, rare beside polls and
 * one after the other where there are none; single records, where they can be asked for, of
 * which two answers could not be told apart or that a sweep has missed; and what somebody wants to
 * have published again.
 */
export function resourceReads(options: ResourceReadsOptions): ResourceReads {
  const { resource, config, api, lanes, from, firstReadDone, scheduler, hooks } = options;
  const { lookbackMs, intervalMs, sweepIntervalMs, startFrom, pageSize } = config.poll;
  const { deleteLimitPercent, deleteProofMs } = config.poll;
  const { windowed, byKey } = RULES[resource];
  const keyOf = keyOfFields(options.keyFields);
  const pointers = volatilePointers(config, resource);
  const volatile = volatileFields(pointers);
  const anchorsWithout = leftOut(pointers, (fields) => hooks.onVolatile?.({ resource, fields }));
  const reads = logicalClock();
  const clock = serverClock();
  const lookedAt = unseenFields({
    pii: config.pii,
    volatile: pointers,
    resource,
    onUnseen: (field) => hooks.onUnseen?.({ resource, field }),
  });
  const request = hidingList(lookedAt(api.list(resource, reads)), options.personal);
  const requestBy = (read?: ElementReader) =>
    read ? lookedAt(api.list(resource, reads, read)) : request;
  const requestNew = requestBy(options.readNew);
  const requestAgain = requestBy(options.readAgain);
  /** When nothing was read: a moment in the order of the reads. */
  const moment = () => reads.answered(reads.begin());

  const single = singleRecords({
    byKey,
    request,
    settle: (span) => reads.settle(span.begin),
    onRefused: (error) => hooks.onRefused?.({ resource, error }),
  });

  // One room a lane, not a scan: a lane that does not get its pages committed stops asking.
  const permitsOf = {
    'first-read': permits(options.pagesUnderWay ?? 2),
    poll: permits(2),
    'look-back': permits(1),
    sweep: permits(1),
    reread: permits(1),
    resync: permits(1),
  } satisfies Partial<Record<Place, Permits>>;
  const limits: Record<Exclude<Place, 'reread'>, Limit> = {
    'first-read': windowed ? lanes.firstRead : lanes.whole,
    poll: lanes.poll,
    'look-back': lanes.lookBack,
    sweep: windowed ? lanes.sweep : lanes.whole,
    resync: windowed ? lanes.ask : lanes.whole,
  };
  const scan = (
    lane: keyof typeof limits,
    query: object,
    more: Pick<Partial<PagesOptions>, 'from' | 'onTrouble'> = {},
  ) =>
    pages({
      request: (page) => {
        const ask = lane === 'first-read' ? requestNew : requestAgain;
        return ask({ ...query, ...page }, limits[lane]);
      },
      keyOf,
      pageSize,
      leftOut: anchorsWithout,
      permit: () => permitsOf[lane].acquire,
      ahead: MAX_AHEAD,
      paceMs: lanes.paceMs,
      onDrop: ({ span }, offset) => {
        reads.settle(span.begin);
        hooks.onDropped?.({ resource, offset });
      },
      scheduler,
      ...more,
      onTrouble: (trouble, offset) => {
        hooks.onTrouble?.({ resource, trouble, offset });
        more.onTrouble?.(trouble, offset);
      },
    });

  const settling = (place: Place, span: Span) => () => {
    reads.settle(span.begin);
    permitsOf[place].release();
  };
  const arrived = (lane: Lane, answer: Answer, place: Place = lane): ReadBatch => {
    const { span, data, serverTime } = answer;
    const { keyed, rejected } = keyRecords(data, keyOf, volatile);
    single.saw(keyed.map(({ key }) => key));
    clock.tell(serverTime);
    if (lane !== 'poll') clock.see(data.map(updatedAtIn)); // polls do
    const settle = settling(place, span);
    return { lane, progress: {}, records: keyed, rejected, span, settle };
  };

  /** Begins before what is wanted: the rest is left out by `updated_at`. */
  const windowFrom = (since: number) => window(since - BOUND_MS, clock.latest() ?? scheduler.now());
  /** Where the first window begins, once it is known: at the server's time as the first read began. */
  const began$ = new ReplaySubject<number>(1);
  if (from.firstRead.startedAt !== null) began$.next(from.firstRead.startedAt);
  const firstReadDone$ = new ReplaySubject<void>(1);
  if (from.firstRead.done) firstReadDone$.next();

  const firstRead$ = api.tokens.token$.pipe(
    take(1),
    switchMap(({ serverTime }) => {
      if (from.firstRead.done) return EMPTY;
      clock.tell(serverTime);
      // What is modified later than its end is the polls' to read.
      const query =
        startFrom === undefined || !windowed
          ? {}
          : window(startFrom, clock.latest() ?? scheduler.now());
      const { position, startedAt: begun } = from.firstRead;
      let startedAt = begun;
      return scan('first-read', query, { from: position }).pipe(
        map((page): ReadBatch => {
          // A server may never tell its time: then nobody can say what was made after the beginning.
          startedAt ??= beginning(page.answer.serverTime, from.since);
          const done = page.next === undefined;
          const firstRead: InitialSnapshot = {
            startedAt,
            position: page.next ?? null,
            done,
            caughtUp: false,
          };
          const next = arrived('first-read', page.answer);
          const newest = clock.newest();
          // An empty list tells nothing of the clock that will stamp its first record.
          const slack = newest === undefined ? MAX_BEHIND_MS : 0;
          began$.next((startedAt ?? newest ?? slack) - slack);
          const settle = () => {
            next.settle();
            if (done) firstReadDone$.next();
          };
          return { ...next, page, progress: { firstRead }, settle };
        }),
      );
    }),
  );

  let isResyncing = false;
  const beside = () => {
    if (!firstReadDone()) return 'first-read';
    const sweep = options.sweep();
    const isWaiting = proofLeft(sweep, scheduler.now(), deleteProofMs) > 0;
    const isAsking = byKey !== undefined && sweep.phase === 'removing' && !isWaiting;
    return isAsking || isResyncing ? 'asking' : 'nothing';
  };
  /** Whether the poll that goes on began behind the first read. */
  let isBehind = false;
  const polls$ = began$.pipe(
    take(1),
    switchMap((startedAt) =>
      poll({
        scan: (dates) => {
          isBehind = firstReadDone();
          return scan('poll', dates);
        },
        scanBack: (dates) => scan('look-back', dates),
        clock,
        since: from.since ?? startedAt,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs }),
        spacingMs: () => lanes.spacingMs(beside()),
        scheduler,
      }),
    ),
    map(({ page, since, looksBack }): ReadBatch => {
      const isLast = since !== undefined;
      const progress = isLast ? { since } : {};
      const place = looksBack ? 'look-back' : 'poll';
      const catchesUp = isLast && isBehind;
      return { ...arrived('poll', page.answer, place), page, progress, catchesUp };
    }),
  );

  const sweeps$ = firstReadDone$.pipe(
    take(1),
    switchMap(() =>
      sweeps({
        progress: options.sweep,
        scan: (position, onUnsettled) =>
          scan(
            'sweep',
            {},
            {
              from: position,
              onTrouble: (trouble) => trouble === 'unsettled' && onUnsettled(),
            },
          ),
        permits: permitsOf.sweep,
        records: options.records,
        ...(byKey && { ask: (key) => single.ask(key, lanes.ask) }),
        canBeAsked: single.canBeAsked,
        moment,
        intervalMs: windowed ? sweepIntervalMs : (intervalMs ?? 0),
        ...(!windowed && { spacingMs: () => lanes.paceMs }),
        proofMs: deleteProofMs,
        limitPercent: deleteLimitPercent,
        onHeld: (held) => hooks.onHeld?.({ resource, ...held, limitPercent: deleteLimitPercent }),
        scheduler,
      }),
    ),
    map(
      sweepBatch({
        moment,
        arrived: (answer) => arrived('sweep', answer),
        settling: (span) => settling('sweep', span),
      }),
    ),
    map((read): ReadBatch => ({ ...read, catchesUp: !windowed && read.step?.kind === 'end' })),
  );

  const again = refetches({
    single,
    limit: lanes.poll,
    permits: permitsOf.reread,
    arrived: (answer) => arrived('reread', answer),
  });

  const resyncs$ = firstReadDone$.pipe(
    take(1),
    switchMap(() =>
      resyncReads({
        requests$: options.resyncs$ ?? NEVER,
        scan: (since) => scan('resync', since === null || !windowed ? {} : windowFrom(since)),
        single: byKey && single,
        permits: permitsOf.resync,
        limit: limits.resync,
        moment,
        arrived: (answer) => arrived('resync', answer),
        settling: (span) => settling('resync', span),
        onBegin: ({ id }) => {
          isResyncing = true;
          hooks.onResync?.({ resource, id, status: 'begun', events: 0, message: null });
        },
      }),
    ),
    tap(({ resync }) => (isResyncing &&= !resync?.outcome)),
  );

  return {
    readings$: windowed
      ? merge(again.readings$, polls$, resyncs$, sweeps$, firstRead$)
      : merge(resyncs$, sweeps$, firstRead$),
    logicalClock: reads,
    readAgain: again.readAgain,
  };
}

/**
 * What was made after it is new. A first read that begins anew, after earlier polls, takes nothing for new
 * that they can have brought: the clock that stamps records may be ahead.
 */
function beginning(serverTime: number | undefined, since: number | null): number | null {
  return serverTime === undefined ? null : Math.max(serverTime, since ?? -Infinity);
}
