import type { Hooks, Lane, Published, Requested } from '../../observe/hooks.ts';
import { listNamed } from '../../description/description.ts';
import type { ApiDescription, Resource } from '../../description/description.ts';
import { LEVEL_WORDS } from '../../description/levels.ts';
import type { Certificate, ReadingLevel } from '../../schemas/events/certificate.ts';
import { AnswerRules } from '../../streams/http/answer-rules.ts';
import { countPage, ChangeScans, changeTime } from './hook-figures.ts';
import { MAX_COMMIT_MS } from './readiness.ts';
import { Durations, quantile, SnapshotRate, TimeSlots } from './recent-figures.ts';
import { errorLine } from './shortened.ts';
import type { RequestClass, ResourceStatus } from './status-json.ts';

interface ListStatusOptions {
  readonly description: ApiDescription;
  readonly resource: Resource;
  /** Returns the current time, in epoch ms, by a clock that never goes back. */
  readonly now: () => number;
  /** Returns how far the API's clock is ahead of this machine's, in ms. */
  readonly aheadMs: () => number;
}

export type ListFigures = ReturnType<ListStatus['figures']>;

const A_SECOND_MS = 1_000;
const A_MINUTE_MS = 60_000;
/** Period over which rates are averaged, in seconds. */
const RATE_SECONDS = 10;
/** Length of a time slot of a list's time series, in ms, and the number of slots. Together they cover five minutes. */
const [SLOT_MS, SLOTS] = [5_000, 60];

const noRequests = () => ({ ok: 0, refused: 0, failed: 0, unanswered: 0 });
const noCounts = () => ({ records: 0, events: 0, lagMs: null as number | null });

/**
 * Initial values of those status fields that store what the list's hooks reported last. All other fields of the status are computed when
 * the status is requested.
 */
const NOTHING_REPORTED = {
  retry: null,
  known: null,
  lookedAt: null,
  level: null,
  swept: null,
  certified: null,
  uncertified: null,
  schemaId: null,
  transactionMs: null,
  commitBeganAt: null,
};
type ReportedField = keyof typeof NOTHING_REPORTED;

/** Status of one list, computed from the list's hook events. */
export class ListStatus {
  readonly #options: ListStatusOptions;
  readonly #requests: TimeSlots<Record<RequestClass, number>>;
  readonly #seconds: TimeSlots<ReturnType<typeof noCounts>>;
  readonly #series: TimeSlots<ReturnType<typeof noCounts>>;
  readonly #lags: TimeSlots<Durations>;
  readonly #snapshot: SnapshotRate;
  readonly #deadLetters: Record<string, number> = {};
  readonly #scans: ChangeScans;
  readonly #reported: { -readonly [Field in ReportedField]: ResourceStatus[Field] } = {
    ...NOTHING_REPORTED,
  };
  /** Meanings of the HTTP statuses of the API's responses, according to the API's description. */
  readonly #rules: AnswerRules;
  #isOpen = false;
  /** Whether the service counts as following the list: it has completed a scan, published a page of a sweep, or read the list as empty. */
  #follows = false;
  /** Whether the list is stopped because of an error. While it is, `#reported.retry` describes the next attempt to start it. */
  #hasFailed = false;
  #lastLagMs: number | null = null;

  constructor(options: ListStatusOptions) {
    this.#options = options;
    const { now } = options;
    this.#scans = new ChangeScans(options.description);
    this.#rules = new AnswerRules(options.description);
    // 59 slots and the current one: counting more than a minute would show more requests than the quota.
    this.#requests = new TimeSlots(now, A_SECOND_MS, 59, noRequests);
    this.#seconds = new TimeSlots(now, A_SECOND_MS, RATE_SECONDS, noCounts);
    this.#series = new TimeSlots(now, SLOT_MS, SLOTS, noCounts);
    this.#lags = new TimeSlots(now, A_MINUTE_MS, 4, () => new Durations());
    this.#snapshot = new SnapshotRate(now);
  }

  /** Hooks that update the status. They must be called only with events of this list. */
  readonly hooks: Hooks = {
    onRequest: (request) => (this.#requests.current()[this.#classOf(request)] += 1),
    onReady: () => (this.#isOpen = true),
    onEmpty: () => {
      this.#mended();
      this.#follows = true;
      this.#reported.known = 0;
      this.#reported.lookedAt = this.#options.now();
    },
    onDates: (found) => this.#scans.updateDates(found),
    onSchema: ({ schemaId }) => (this.#reported.schemaId = schemaId),
    onProgress: (progress) => this.#snapshot.add(progress),
    onPublished: (published) => this.#published(published),
    onCommit: () => (this.#reported.commitBeganAt = this.#options.now()),
    onCommitted: ({ outcome, elapsedMs }) => {
      this.#reported.commitBeganAt = null;
      if (outcome === 'committed') this.#reported.transactionMs = elapsedMs;
    },
    onSwept: ({ records, proof, level }) => {
      this.#reported.level = levelStatus(level);
      this.#reported.swept = { at: this.#options.now(), records, proof };
    },
    onCertified: ({ certificate, level }) => {
      const { ended_at: at, total_records: total, number, read, records, proof } = certificate;
      const { description, resource } = this.#options;
      const why = whyNotExact(certificate, listNamed(description, resource).total !== undefined);
      this.#reported.level = levelStatus(level);
      this.#reported.certified = { at, number, total, read, records, proof, whyNotExact: why };
      this.#reported.uncertified = null;
    },
    onUncertified: ({ why }) => (this.#reported.uncertified = why),
    onRejected: ({ reason }) => (this.#deadLetters[reason] = (this.#deadLetters[reason] ?? 0) + 1),
    onRetry: ({ what, error, count, delayMs }) => {
      this.#hasFailed = false;
      this.#retries(what, error, count, delayMs);
    },
    onFailed: ({ error, delayMs }) => {
      const count = this.#hasFailed ? this.#reported.retry!.count + 1 : 1;
      this.#hasFailed = true;
      this.#retries(this.#options.resource, error, count, delayMs);
    },
  };

  /** Returns the figures of the list for the fleet's status. Computing the full status costs ten times as much. */
  figures() {
    return {
      lagMs: quantile(this.#lags.all(), 0.5),
      lookedAt: this.#reported.lookedAt,
      firstRead: this.#snapshot.status(),
      eventsPerSecond: this.#perSecond('events'),
    };
  }

  status(): ResourceStatus {
    const lags = this.#lags.all();
    const points = this.#series.past();
    const pointsOf = (of: 'records' | 'events') =>
      points.map((slot) => (slot[of] * 1_000) / SLOT_MS);
    return {
      resource: this.#options.resource,
      state: this.#state(),
      ...this.#reported,
      firstRead: this.#snapshot.status(),
      requests: sumOf(this.#requests.all()),
      freshness: {
        lastMs: this.#lastLagMs,
        p50Ms: quantile(lags, 0.5),
        p95Ms: quantile(lags, 0.95),
      },
      perSecond: { records: this.#perSecond('records'), events: this.#perSecond('events') },
      series: {
        everyMs: SLOT_MS,
        endsAt: this.#series.endsAt(),
        recordsPerSecond: pointsOf('records'),
        eventsPerSecond: pointsOf('events'),
        lagMs: points.map(({ lagMs }) => lagMs),
      },
      deadLetters: { ...this.#deadLetters },
    };
  }

  #classOf({ status, isGone = false }: Requested): RequestClass {
    if (status === undefined) return 'unanswered';
    if (isGone || (status >= 200 && status < 300)) return 'ok';
    return this.#rules.meaningOf(status) === 'quota' ? 'refused' : 'failed';
  }

  #published(published: Published): void {
    const { changes, at, completes, lane, known } = published;
    if (this.#isMendedBy(lane)) this.#mended();
    this.#reported.known = known;
    if (completes || lane === 'sweep') this.#follows = true;
    if (this.#scans.findsAllChanges(published)) this.#reported.lookedAt = this.#options.now();
    const { read } = countPage(published);
    for (const slot of [this.#seconds.current(), this.#series.current()]) {
      slot.records += read;
      slot.events += changes.length;
    }
    for (const change of changes) {
      const updatedAt = changeTime(change);
      if (updatedAt === null) continue;
      const lagMs = Math.max(0, at + this.#options.aheadMs() - updatedAt);
      this.#lastLagMs = lagMs;
      this.#lags.current().add(lagMs);
      const slot = this.#series.current();
      slot.lagMs = Math.max(slot.lagMs ?? 0, lagMs);
    }
  }

  #state(): ResourceStatus['state'] {
    const { retry, commitBeganAt } = this.#reported;
    if (retry) return this.#hasFailed ? 'failed' : 'waiting';
    if (commitBeganAt !== null && this.#options.now() - commitBeganAt > MAX_COMMIT_MS) {
      return 'waiting';
    }
    if (!this.#isOpen) return 'taking-over';
    if (this.#snapshot.isRunning) return 'first-read';
    return this.#follows ? 'following' : 'taking-over';
  }

  #retries(what: string, error: unknown, count: number, delayMs: number): void {
    const nextAt = this.#options.now() + delayMs;
    this.#reported.retry = { what, error: errorLine(error), count, nextAt };
  }

  #mended(): void {
    this.#reported.retry = null;
    this.#hasFailed = false;
  }

  /** Whether a page received from `lane` shows that the failure in `#reported.retry` is over. */
  #isMendedBy(lane: Lane): boolean {
    const { retry } = this.#reported;
    if (!retry || this.#hasFailed || retry.what !== this.#options.resource) return true;
    // A page that arrives before the end of the pause belongs to another request. While the initial snapshot runs, the failed request may
    // be one of the snapshot: a page of another lane then counts only if the pause ended at least a minute ago.
    const mayBeOfSnapshot = lane !== 'first-read' && this.#snapshot.isRunning;
    return this.#options.now() - retry.nextAt >= (mayBeOfSnapshot ? A_MINUTE_MS : 0);
  }

  #perSecond(of: 'records' | 'events'): number {
    return this.#seconds.past().reduce((sum, slot) => sum + slot[of], 0) / RATE_SECONDS;
  }
}

function levelStatus(level: ReadingLevel | null): ResourceStatus['level'] {
  return level && { name: level, inWords: LEVEL_WORDS[level] };
}

function sumOf(all: readonly Record<RequestClass, number>[]): Record<RequestClass, number> {
  const sum: Record<RequestClass, number> = noRequests();
  const classes = Object.keys(sum) as RequestClass[];
  for (const one of all) for (const name of classes) sum[name] += one[name];
  return sum;
}

/**
 * Returns why a certificate does not prove that the topic holds exactly the list's records. Null if its proof is `exact`.
 *
 * @param hasTotal Whether the API tells how many records the list has.
 */
export function whyNotExact(certificate: Certificate, hasTotal: boolean): string | null {
  const { proof, total_records: total, read, rejected, unpublished, held, undecided } = certificate;
  if (proof === 'exact') return null;
  const counts: readonly [number, string][] = [
    [undecided, 'undecided'],
    [held, held === 1 ? 'deletion held back' : 'deletions held back'],
    [unpublished, 'too large'],
  ];
  const whys = counts.flatMap(([n, what]) => (n > 0 ? [`${text(n)} ${what}`] : []));
  const met = read + rejected;
  if (!hasTotal) whys.push('the list has no total');
  else if (total === null) whys.push('the total moved');
  else if (met !== total) whys.push(`${text(met)} of ${text(total)} read`);
  return whys.length > 0 ? whys.join(', ') : 'the list did not add up';
}

const text = (count: number) => count.toLocaleString('en-US');
