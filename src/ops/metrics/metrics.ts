// The metrics of one account: hooks move the metrics of the table, and prom-client tells of the process.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { CellarstreamError } from '../../core/errors.ts';
import { VERSION } from '../../core/version.ts';
import type { Gauges, Hooks, Published } from '../../observe/hooks.ts';
import {
  clockDifference,
  countPage,
  newUpdatedAt,
  tellsWhatIsGone,
} from '../status/hook-figures.ts';
import { causeOf } from '../status/readiness.ts';
import type { Readiness } from '../status/readiness.ts';
import { bounded, LABELS, OTHER, statusLabel } from './metric-labels.ts';
import type { Label, LabelName } from './metric-labels.ts';
import { METRICS } from './metric-table.ts';
import type { LabelGrid, Metric, MetricTable, MetricType } from './metric-table.ts';

interface MetricsOptions {
  readonly account: string;
  readonly resources: readonly string[];
  /** `POLL_INTERVAL_MS`. Default 0: as often as the quota lets. */
  readonly pollIntervalMs?: number | undefined;
  /** The machine's clock, with its steps: ms since the epoch. Prometheus holds what it tells against its own. Default Date.now. */
  readonly wallClock?: () => number;
  /** Whether the service is ready; without it no metric says so. */
  readonly readiness?: () => Readiness;
  /** Whether what Node tells of itself is among them. Default true; once a process. */
  readonly ofProcess?: boolean;
}

/** An initial snapshot brings what is old, and a request to publish again nothing new. */
const FRESH_LANES: ReadonlySet<string> = new Set(['poll', 'sweep', 'reread']);

/**
 * The metrics of docs/metrics.md in the text format of Prometheus, of one account and, unless others tell of it, of the process. How many
 * series there are does not depend on what the API sends; values are numbers, codes and names of lists and fields.
 *
 * What Node tells of itself (lags, pauses) is collected until the process ends, and does not keep it from ending.
 */
export function metrics(options: MetricsOptions) {
  const { account, resources, pollIntervalMs = 0, wallClock = Date.now, readiness } = options;
  const { ofProcess = true } = options;
  const registry = new Registry();
  let gauges: Gauges | undefined;
  const clocks = clockDifference();
  const schemas = new Map<string, number>();
  /** Resources whose sweep under way has had deletions held. */
  const held = new Set<string>();

  const { add, set, observe } = recorder({
    registry,
    account,
    resources,
    collect: {
      quotaUsed: () => {
        for (const { name, used } of gauges?.quotas() ?? [])
          set('quotaUsed', { resource: name }, used);
      },
      quotaLimit: () => {
        for (const { name, limit } of gauges?.quotas() ?? [])
          set('quotaLimit', { resource: name }, limit);
      },
      ready: () => {
        if (readiness) set('ready', {}, Number(readiness().ready));
      },
      notReady: () => {
        if (!readiness) return;
        const { causes } = readiness();
        for (const cause of LABELS.cause.values)
          set('notReady', { cause }, Number(causes.includes(cause)));
      },
    },
  });
  set('build', { version: VERSION, node: process.version }, 1);
  set('pollInterval', {}, pollIntervalMs / 1_000);
  for (const resource of resources) set('exactCertificate', { resource }, wallClock() / 1_000);
  if (ofProcess) collectProcessMetrics(registry, { account });

  const scanned = (resource: string, lane: string) => {
    add('scans', { resource, lane });
    set('lastScan', { resource, lane }, wallClock() / 1_000);
  };
  const published = (page: Published) => {
    const { resource, lane, changes, statusChanges, unchanged, known, at, completes } = page;
    const { read, events } = countPage(page);
    add('recordsRead', { resource, lane }, read);
    add('recordsUnchanged', { resource, lane }, unchanged);
    for (const op of LABELS.op.values)
      if (events[op] > 0) add('events', { resource, op }, events[op]);
    if (FRESH_LANES.has(lane)) {
      const made = changes.map(newUpdatedAt).filter((instant) => instant !== null);
      const seconds = made.map((ms) => Math.max(0, at + clocks.aheadMs() - ms) / 1_000);
      observe('freshness', { resource }, ...seconds);
    }
    for (const { change } of statusChanges) {
      add('statusChanges', { resource, subject: change.subject, field: change.field });
    }
    set('images', { resource }, known);
    set('failed', { resource }, 0);
    if (completes) scanned(resource, lane);
  };

  const hooks: Hooks = {
    onStart: (started) => (gauges = started),
    onLogin: (login) => {
      clocks.hooks.onLogin(login);
      add('logins', {});
      set('tokenIssued', {}, wallClock() / 1_000);
      set('tokenExpiry', {}, (wallClock() + login.lifeMs) / 1_000);
      set('clockAhead', {}, clocks.aheadMs() / 1_000);
    },
    onRequest: (request) => {
      clocks.hooks.onRequest(request);
      const { what: resource, status, elapsedMs, waitedMs } = request;
      add('requests', { resource, status: statusLabel(status) });
      observe('requestSeconds', { resource }, elapsedMs / 1_000);
      observe('waitSeconds', { resource }, waitedMs / 1_000);
    },
    onReady: ({ resource }) => add('openings', { resource }),
    onTakenOver: ({ resource }) => add('takeovers', { resource }),
    onEmpty: ({ resource }) => {
      set('images', { resource }, 0);
      set('failed', { resource }, 0);
      scanned(resource, 'first-read');
    },
    onSchema: ({ resource, schemaId }) => {
      const before = schemas.get(resource);
      if (before !== undefined && before !== schemaId) add('schemaChanges', { resource });
      if (isKnown(resource)) schemas.set(resource, schemaId);
      set('schemaId', { resource }, schemaId);
    },
    onHeld: ({ resource, gone }) => {
      if (isKnown(resource)) held.add(resource);
      set('deletesHeld', { resource }, gone);
    },
    onSwept: ({ resource, proof, canBeAsked }) => {
      const isProven = tellsWhatIsGone({ proof, canBeAsked });
      add('sweeps', { resource, deletions: isProven ? 'known' : 'unknown' });
      if (!held.delete(resource)) set('deletesHeld', { resource }, 0);
    },
    onCertified: ({ resource, certificate: { proof } }) => {
      add('certificates', { resource, proof });
      if (proof === 'exact') set('exactCertificate', { resource }, wallClock() / 1_000);
    },
    onLost: ({ resource }) => add('topicDisagreements', { resource }),
    onRefused: ({ resource }) => add('refused', { resource }),
    onFailed: ({ resource, error }) => {
      add('failures', { resource, code: codeOf(error) });
      set('failed', { resource }, 1);
    },
    onCommitted: ({ resource, outcome, elapsedMs, messages }) => {
      add('transactions', { resource, outcome });
      observe('transactionSeconds', { resource }, elapsedMs / 1_000);
      if (outcome === 'committed') add('messages', { resource }, messages);
    },
    onPublished: published,
    onProgress: ({ resource, read, total, done }) => {
      set('firstReadRead', { resource }, read);
      set('firstReadExpected', { resource }, total);
      set('firstReadDone', { resource }, Number(done));
    },
    onTrouble: ({ resource, trouble }) => add('troubles', { resource, trouble }),
    onStale: ({ resource }) => add('staleAnswers', { resource }),
    onDropped: ({ resource }) => add('pagesDropped', { resource }),
    onRejected: ({ resource, reason }) => add('deadLetters', { resource, reason }),
    onRetry: ({ what, resource = 'all', error }) =>
      add('retries', { service: causeOf(what), resource, code: codeOf(error) }),
    onResync: ({ resource, status }) => add('resyncs', { resource, result: status }),
    onSignalIgnored: () => add('signalsIgnored', {}),
    onSignalsFailed: () => add('signalFailures', {}),
    onDiscarded: () => add('imagesDiscarded', {}),
    onRestored: ({ resource, images }) => add('imagesRestored', { resource }, images),
  };
  const { contentType } = registry;
  return { hooks, registry, text: () => registry.metrics(), contentType };

  function isKnown(resource: string): boolean {
    return resources.includes(resource);
  }
}

function codeOf(error: unknown): string {
  return error instanceof CellarstreamError ? error.code : OTHER;
}

/** The metrics of a type, by their keys in the table. */
export type KeyOf<T extends MetricType> = {
  [K in keyof MetricTable]: MetricTable[K]['type'] extends T ? K : never;
}[keyof MetricTable];

/** A value for each label of a metric; `account` is known. */
type LabelsOf<K extends keyof MetricTable> = Readonly<
  Record<MetricTable[K]['labels'][number], string>
>;

/** Moves the metrics of the table, of one account. Values of labels that are unknown become `other`. */
interface Recorder {
  readonly add: <K extends KeyOf<'counter'>>(key: K, labels: LabelsOf<K>, by?: number) => void;
  readonly set: <K extends KeyOf<'gauge'>>(key: K, labels: LabelsOf<K>, value: number) => void;
  /** What is no number, or less than 0, is not counted as one. */
  readonly observe: <K extends KeyOf<'histogram'>>(
    key: K,
    labels: LabelsOf<K>,
    ...seconds: readonly number[]
  ) => void;
}

interface RecorderOptions {
  readonly registry: Registry;
  readonly account: string;
  /** Whose series are there from the start. */
  readonly resources: readonly string[];
  /** Called before these are read, to set them. */
  readonly collect: Readonly<Partial<Record<KeyOf<'gauge'>, () => void>>>;
}

type Labels = Readonly<Record<string, string>>;

/** Makes every metric of the table, with the series that are 0 from the start. */
function recorder({ registry, account, resources, collect }: RecorderOptions): Recorder {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();

  for (const [key, metric] of Object.entries<Metric>(METRICS)) {
    const { type, name, help, labels, buckets = [], zeros } = metric;
    const common = { name, help, labelNames: ['account', ...labels], registers: [registry] };
    const atStart = (grids: readonly LabelGrid[]) =>
      grids
        .flatMap((grid) => combinations(labels, grid, resources))
        .map((values) => ({ ...values, account }));
    if (type === 'counter') {
      const counter = new Counter(common);
      counters.set(key, counter);
      for (const values of atStart(zeros ?? [{}])) counter.inc(values, 0);
    } else if (type === 'gauge') {
      const set = collect[key as KeyOf<'gauge'>];
      const gauge = new Gauge({ ...common, ...(set && { collect: set }) });
      gauges.set(key, gauge);
      for (const values of atStart(zeros ?? [])) gauge.set(values, 0);
    } else {
      const histogram = new Histogram({ ...common, buckets: [...buckets] });
      histograms.set(key, histogram);
      for (const values of atStart(zeros ?? [{}])) histogram.zero(values);
    }
  }

  const inBounds = (labels: Labels): Labels => ({
    account,
    ...Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [name, bounded(name as LabelName, value)]),
    ),
  });
  return {
    add: (key, labels, by = 1) => counters.get(key)!.inc(inBounds(labels), by),
    set: (key, labels, value) => gauges.get(key)!.set(inBounds(labels), value),
    observe: (key, labels, ...seconds) => {
      const histogram = histograms.get(key)!;
      const values = inBounds(labels);
      for (const one of seconds) {
        if (one >= 0 && one < Infinity) histogram.observe(values, one);
      }
    },
  };
}

/** Each value of a label with each of the others. */
function combinations(
  labels: readonly LabelName[],
  grid: LabelGrid,
  resources: readonly string[],
): Labels[] {
  const valuesOf = (name: LabelName): readonly string[] => {
    const { values = [] }: Label = LABELS[name];
    if (name !== 'resource') return grid[name] ?? values;
    const notLists = ['login', 'all'];
    return (
      grid.resource?.filter((one) => resources.includes(one) || notLists.includes(one)) ?? resources
    );
  };
  return labels.reduce<Labels[]>(
    (all, name) =>
      all.flatMap((before) => valuesOf(name).map((value) => ({ ...before, [name]: value }))),
    [{}],
  );
}

/**
 * The delays of the event loop are those of a timer of so many ms. prom-client's own of 10 ms wakes an idle process a hundred
 * times a second, which was a fourteenth of all that six small lists cost at rest.
 */
const LAG_TICK_MS = 50;

/** Adds what prom-client tells of any process. */
export function collectProcessMetrics(
  register: Registry,
  labels: Readonly<Record<string, string>> = {},
): void {
  collectDefaultMetrics({ register, labels, eventLoopMonitoringPrecision: LAG_TICK_MS });
}
