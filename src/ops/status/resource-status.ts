import type { Hooks, Lane } from '../../observe/hooks.ts';
import type { Resource } from '../../resources/resources.ts';
import type { Certificate } from '../../schemas/events/certificate.ts';
import { countPage, Looks, newUpdatedAt } from './hook-figures.ts';
import { MAX_COMMIT_MS } from './readiness.ts';
import { durations, quantile, snapshotPace, timeSlots } from './recent-figures.ts';
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
  /** The clock: ms since the epoch, which never goes back. */
  readonly now: () => number;
  /** How far the server's clock is ahead of it, ms. */
  readonly aheadMs: () => number;
}

export interface ListFigures extends Pick<ResourceStatus, 'lookedAt' | 'firstRead'> {
  readonly lagMs: number | null;
  readonly eventsPerSecond: number;
}

const A_SECOND_MS = 1_000;
const A_MINUTE_MS = 60_000;
/** Records and events a second are those of so many seconds. */
const RATE_SECONDS = 10;
/** The points of the series: five minutes of them. */
const SERIES = { everyMs: 5_000, count: 60 };

/** One resource, as far as the service has told of it by its hooks. */
export function resourceStatus(options: ResourceStatusOptions) {
  const { resource, now, aheadMs } = options;
  const requests = timeSlots({
    everyMs: A_SECOND_MS,
    count: 59, // and the current one: never more than a minute's, which would look like too many
    now,
    empty: (): Record<RequestClass, number> => ({ ok: 0, refused: 0, failed: 0, unanswered: 0 }),
  });
  const counts = () => ({ records: 0, events: 0, lagMs: null as number | null });
  const seconds = timeSlots({ everyMs: A_SECOND_MS, count: RATE_SECONDS, now, empty: counts });
  const series = timeSlots({ ...SERIES, now, empty: counts });
  const lags = timeSlots({ everyMs: A_MINUTE_MS, count: 4, now, empty: durations });
  const firstRead = snapshotPace(now);
  const deadLetters: Record<string, number> = {};
  const looks = new Looks();

  let isOpen = false;
  /** Whether anything but the initial snapshot has brought a reading to its end. */
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
    if (firstRead.status()?.done === false) return 'first-read';
    return follows ? 'following' : 'taking-over';
  };
  const mended = () => {
    retry = null;
    hasFailed = false;
  };
  /**
   * Whether a page ends what is tried again. One that comes within the pause was another request's; nor
   * does a poll end what the initial snapshot may wait for, before there was no word of that for a minute.
   */
  const isMendedBy = (lane: Lane): boolean => {
    if (!retry || hasFailed || retry.what !== resource) return true;
    const mayBeOfFirstRead = lane !== 'first-read' && firstRead.status()?.done === false;
    return now() - retry.nextAt >= (mayBeOfFirstRead ? A_MINUTE_MS : 0);
  };

  const lately = () => [...lags.past(), lags.current()];
  const perSecond = (of: 'records' | 'events') =>
    seconds.past().reduce((sum, slot) => sum + slot[of], 0) / RATE_SECONDS;

  return {
    /** Those of this resource only. */
    hooks: {
      onRequest: ({ status }) => (requests.current()[classOf(status)] += 1),
      onReady: () => (isOpen = true),
      onEmpty: () => {
        mended();
        follows = true;
        known = 0;
        lookedAt = now();
      },
      onDates: (found) => looks.dates(found),
      onSchema: (schema) => ({ schemaId } = schema),
      onProgress: (progress) => {
        const { read, total, done } = progress;
        firstRead.add({ read, total, done });
      },
      onPublished: (published) => {
        const { changes, at, completes, lane } = published;
        if (isMendedBy(lane)) mended();
        ({ known } = published);
        if (completes || lane === 'sweep') follows = true;
        if (looks.isLook(published)) lookedAt = now();
        const { read } = countPage(published);
        for (const slot of [seconds.current(), series.current()]) {
          slot.records += read;
          slot.events += changes.length;
        }
        for (const change of changes) {
          const updatedAt = newUpdatedAt(change);
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
    /** The few of these that are asked for of every account of a fleet: all would cost ten times as much. */
    figures: (): ListFigures => ({
      lagMs: quantile(lately(), 0.5),
      lookedAt,
      firstRead: firstRead.status(),
      eventsPerSecond: perSecond('events'),
    }),
    status: (): ResourceStatus => {
      const ofLately = lately();
      const points = series.past();
      const pointsOf = (of: 'records' | 'events') =>
        points.map((slot) => (slot[of] * 1_000) / SERIES.everyMs);
      return {
        resource,
        state: state(),
        retry,
        firstRead: firstRead.status(),
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

/** What keeps a certificate from being exact, in words; null where it is. */
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
