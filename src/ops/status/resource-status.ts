import type { Hooks, Lane } from '../../observe/hooks.ts';
import type { Resource } from '../../resources/resources.ts';
import type { Certificate } from '../../schemas/events/certificate.ts';
import { countPage, ChangeScans, changeTime } from './hook-figures.ts';
import { MAX_COMMIT_MS } from './readiness.ts';
import { durations, quantile, snapshotRate, timeSlots } from './recent-figures.ts';
import { errorLine } from './shortened.ts';
import type {
  CertifiedStatus,
  RequestClass,
  ResourceStatus,
  RetryStatus,
  SweptStatus,
} from './status-json.ts';

interface ResourceStatusOptions {
  readonly resource: Resource;
  /** Clock: returns ms since the epoch, and never goes back. */
  readonly now: () => number;
  /** Returns how far the API's clock is ahead of this machine's, in ms. */
  readonly aheadMs: () => number;
}

export interface ListFigures extends Pick<ResourceStatus, 'lookedAt' | 'firstRead'> {
  readonly lagMs: number | null;
  readonly eventsPerSecond: number;
}

const A_SECOND_MS = 1_000;
const A_MINUTE_MS = 60_000;
/** Number of seconds over which the records and events per second of a list are averaged. */
const RATE_SECONDS = 10;
/** Length of a slot of a list's time series, in ms, and number of slots: five minutes in all. */
const SERIES = { everyMs: 5_000, count: 60 };

/** Computes the status of one list from hook events. */
export function resourceStatus(options: ResourceStatusOptions) {
  const { resource, now, aheadMs } = options;
  const requests = timeSlots({
    everyMs: A_SECOND_MS,
    count: 59, // and the current one: counting more than a minute would show more requests than the quota
    now,
    empty: (): Record<RequestClass, number> => ({ ok: 0, refused: 0, failed: 0, unanswered: 0 }),
  });
  const counts = () => ({ records: 0, events: 0, lagMs: null as number | null });
  const seconds = timeSlots({ everyMs: A_SECOND_MS, count: RATE_SECONDS, now, empty: counts });
  const series = timeSlots({ ...SERIES, now, empty: counts });
  const lags = timeSlots({ everyMs: A_MINUTE_MS, count: 4, now, empty: durations });
  const initialSnapshot = snapshotRate(now);
  const deadLetters: Record<string, number> = {};
  const looks = new ChangeScans();

  let isOpen = false;
  /** Whether this process has completed a scan of the list, or published a page of a sweep (recurring full scan) of it. */
  let follows = false;
  let retry: RetryStatus | null = null;
  let hasFailed = false;
  let lastLagMs: number | null = null;
  let known: number | null = null;
  let lookedAt: number | null = null;
  let swept: SweptStatus | null = null;
  let certified: CertifiedStatus | null = null;
  let uncertified: ResourceStatus['uncertified'] = null;
  let schemaId: number | null = null;
  let transactionMs: number | null = null;
  let commitBeganAt: number | null = null;

  const state = (): ResourceStatus['state'] => {
    if (retry) return hasFailed ? 'failed' : 'waiting';
    if (commitBeganAt !== null && now() - commitBeganAt > MAX_COMMIT_MS) return 'waiting';
    if (!isOpen) return 'taking-over';
    if (initialSnapshot.status()?.done === false) return 'first-read';
    return follows ? 'following' : 'taking-over';
  };
  const mended = () => {
    retry = null;
    hasFailed = false;
  };
  /**
   * Whether a published page of this lane (kind of reads, such as polls) shows that the retried request of the list has succeeded. A page
   * that arrives during the pause before the retry belongs to another request. While the initial snapshot runs, the retried request may be
   * its own: pages of other lanes then count only a minute after the pause.
   */
  const isMendedBy = (lane: Lane): boolean => {
    if (!retry || hasFailed || retry.what !== resource) return true;
    const mayBeOfFirstRead = lane !== 'first-read' && initialSnapshot.status()?.done === false;
    return now() - retry.nextAt >= (mayBeOfFirstRead ? A_MINUTE_MS : 0);
  };

  const recentLags = () => [...lags.past(), lags.current()];
  const perSecond = (of: 'records' | 'events') =>
    seconds.past().reduce((sum, slot) => sum + slot[of], 0) / RATE_SECONDS;

  return {
    /** Hooks that update the status; to be called with events of this list only. */
    hooks: {
      onRequest: ({ status }) => (requests.current()[classOf(status)] += 1),
      onReady: () => (isOpen = true),
      onEmpty: () => {
        mended();
        follows = true;
        known = 0;
        lookedAt = now();
      },
      onDates: (found) => looks.updateDates(found),
      onSchema: (schema) => ({ schemaId } = schema),
      onProgress: (progress) => {
        const { read, total, done } = progress;
        initialSnapshot.add({ read, total, done });
      },
      onPublished: (published) => {
        const { changes, at, completes, lane } = published;
        if (isMendedBy(lane)) mended();
        ({ known } = published);
        if (completes || lane === 'sweep') follows = true;
        if (looks.findsAllChanges(published)) lookedAt = now();
        const { read } = countPage(published);
        for (const slot of [seconds.current(), series.current()]) {
          slot.records += read;
          slot.events += changes.length;
        }
        for (const change of changes) {
          const updatedAt = changeTime(change);
          if (updatedAt === null) continue;
          lastLagMs = Math.max(0, at + aheadMs() - updatedAt);
          lags.current().add(lastLagMs);
          const slot = series.current();
          slot.lagMs = Math.max(slot.lagMs ?? 0, lastLagMs);
        }
      },
      onCommit: () => (commitBeganAt = now()),
      onCommitted: ({ outcome, elapsedMs }) => {
        commitBeganAt = null;
        if (outcome === 'committed') transactionMs = elapsedMs;
      },
      onSwept: ({ records, proof }) => (swept = { at: now(), records, proof }),
      onCertified: ({ certificate }) => {
        const { ended_at: at, total_records: total, number, read, records, proof } = certificate;
        const why = whyNotExact(certificate);
        certified = { at, number, total, read, records, proof, whyNotExact: why };
        uncertified = null;
      },
      onUncertified: ({ why }) => (uncertified = why),
      onRejected: ({ reason }) => (deadLetters[reason] = (deadLetters[reason] ?? 0) + 1),
      onRetry: ({ what, error, count, delayMs }) => {
        hasFailed = false;
        retry = { what, error: errorLine(error), count, nextAt: now() + delayMs };
      },
      onFailed: ({ error, delayMs }) => {
        const count = hasFailed ? retry!.count + 1 : 1;
        hasFailed = true;
        retry = { what: resource, error: errorLine(error), count, nextAt: now() + delayMs };
      },
    } satisfies Hooks,
    /** Returns the few figures of the list that a fleet shows for every account; the full status costs ten times as much to compute. */
    figures: (): ListFigures => ({
      lagMs: quantile(recentLags(), 0.5),
      lookedAt,
      firstRead: initialSnapshot.status(),
      eventsPerSecond: perSecond('events'),
    }),
    status: (): ResourceStatus => {
      const ofLately = recentLags();
      const points = series.past();
      const pointsOf = (of: 'records' | 'events') =>
        points.map((slot) => (slot[of] * 1_000) / SERIES.everyMs);
      return {
        resource,
        state: state(),
        retry,
        firstRead: initialSnapshot.status(),
        requests: sumOf([...requests.past(), requests.current()]),
        freshness: {
          lastMs: lastLagMs,
          p50Ms: quantile(ofLately, 0.5),
          p95Ms: quantile(ofLately, 0.95),
        },
        perSecond: { records: perSecond('records'), events: perSecond('events') },
        series: {
          everyMs: SERIES.everyMs,
          endsAt: series.endsAt(),
          recordsPerSecond: pointsOf('records'),
          eventsPerSecond: pointsOf('events'),
          lagMs: points.map(({ lagMs }) => lagMs),
        },
        known,
        lookedAt,
        swept,
        certified,
        uncertified,
        schemaId,
        deadLetters: { ...deadLetters },
        transactionMs,
        commitBeganAt,
      };
    },
  };
}

function classOf(status: number | undefined): RequestClass {
  if (status === undefined) return 'unanswered';
  if (status >= 200 && status < 300) return 'ok';
  return status === 429 ? 'refused' : 'failed';
}

function sumOf(all: readonly Record<RequestClass, number>[]): Record<RequestClass, number> {
  const sum = { ok: 0, refused: 0, failed: 0, unanswered: 0 };
  for (const one of all) for (const name of CLASSES) sum[name] += one[name];
  return sum;
}

const CLASSES: readonly RequestClass[] = ['ok', 'refused', 'failed', 'unanswered'];

/**
 * Describes in words why a certificate (the report on a full scan) does not prove that the topic holds exactly the list's records; null if
 * its proof is exact.
 */
export function whyNotExact(certificate: Certificate): string | null {
  const { proof, total_records: total, read, rejected, unpublished, held, undecided } = certificate;
  if (proof === 'exact') return null;
  const counts: readonly [number, string][] = [
    [undecided, 'undecided'],
    [held, held === 1 ? 'deletion held back' : 'deletions held back'],
    [unpublished, 'too large'],
  ];
  const whys = counts.flatMap(([n, what]) => (n > 0 ? [`${text(n)} ${what}`] : []));
  const met = read + rejected;
  if (total === null) whys.push('the total moved');
  else if (met !== total) whys.push(`${text(met)} of ${text(total)} read`);
  return whys.length > 0 ? whys.join(', ') : 'the list did not add up';
}

const text = (count: number) => count.toLocaleString('en-US');
