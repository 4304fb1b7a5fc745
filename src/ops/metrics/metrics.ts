// Metrics of one account, updated by hooks, and those of the process, from prom-client.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { CellarstreamError } from '../../core/errors.ts';
import { VERSION } from '../../core/version.ts';
import { listsNamed } from '../../description/description.ts';
import type { Gauges, Hooks } from '../../observe/hooks.ts';
import { READING_LEVELS } from '../../schemas/events/certificate.ts';
import type { ReadingLevel } from '../../schemas/events/certificate.ts';
import { ClockSkew, countPage, changeTime, deletionsOf } from '../status/hook-figures.ts';
import { CAUSES, dependencyOf } from '../status/causes.ts';
import type { StatusOptions } from '../status/status.ts';
import { boundedLabel, LABELS, labelValues, OTHER, statusLabel } from './metric-labels.ts';
import type { LabelName, LabelValues } from './metric-labels.ts';
import { METRICS } from './metric-table.ts';
import type { Metric, MetricTable, MetricType } from './metric-table.ts';

interface MetricsOptions extends Omit<StatusOptions, 'prefix' | 'now'> {
  /** Returns the system time, in epoch ms, for metrics that contain a time. Default `Date.now`. */
  readonly wallClock?: () => number;
  /** Whether to include the metrics of the process. Only one call per process may set it to true. */
  readonly ofProcess: boolean;
}

/**
 * Lanes whose changes count in the metric `cellarstream_freshness_seconds`. The initial snapshot and resyncs do not count, because they
 * mostly publish records that changed long ago.
 */
const FRESH_LANES: ReadonlySet<string> = new Set(['poll', 'sweep', 'reread']);

/**
 * Creates the metrics listed in docs/metrics.md for one account and, with `ofProcess`, for the process, in the text format of Prometheus.
 */
export function metrics(options: MetricsOptions) {
  const { account, resources, pollIntervalMs, wallClock = Date.now, readiness } = options;
  const registry = new Registry();
  let gauges: Gauges | undefined;
  const clocks = new ClockSkew();
  const schemas = new Map<string, number>();
  const levels = new Map<string, ReadingLevel | null>();
  /** Lists whose current sweep (full scan) has detected more deletions than `DELETE_LIMIT_PERCENT` allows to publish. */
  const held = new Set<string>();
  /** Lists whose newest attempt to read them has failed. */
  const failed = new Set<string>();
  /** Number of published records by list, as last set. */
  const images = new Map<string, number>();

  const { add, set, observe } = new Recorder(registry, options, {
    quotaUsed: () =>
      gauges?.quotas().forEach(({ name, used }) => set('quotaUsed', { resource: name }, used)),
    quotaLimit: () =>
      gauges?.quotas().forEach(({ name, limit }) => set('quotaLimit', { resource: name }, limit)),
    ready: () => set('ready', {}, Number(readiness().ready)),
    notReady: () => {
      const { causes } = readiness();
      for (const cause of CAUSES) set('notReady', { cause }, Number(causes.includes(cause)));
    },
  });
  set('build', { version: VERSION, node: process.version }, 1);
  set('pollInterval', {}, pollIntervalMs / 1_000);
  for (const resource of resources) set('exactCertificate', { resource }, wallClock() / 1_000);
  if (options.ofProcess) collectProcessMetrics(registry, { account });

  const isKnown = (resource: string) => resources.includes(resource);
  const scanned = (resource: string, lane: string) => {
    add('scans', { resource, lane });
    set('lastScan', { resource, lane }, wallClock() / 1_000);
  };
  // Both are called for each page, and setting a gauge costs more than looking whether its value is new.
  const setImages = (resource: string, known: number) => {
    if (images.get(resource) === known) return;
    if (isKnown(resource)) images.set(resource, known);
    set('images', { resource }, known);
  };
  const setRead = (resource: string) => {
    if (failed.delete(resource)) set('failed', { resource }, 0);
  };
  const setLevel = (resource: string, level: ReadingLevel | null) => {
    if (levels.get(resource) === level || !isKnown(resource)) return;
    levels.set(resource, level);
    for (const each of READING_LEVELS)
      set('readingLevel', { resource, level: each }, Number(each === level));
  };

  const hooks: Hooks = {
    onStart: (started) => (gauges = started),
    onLogin: (login) => {
      clocks.hooks.onLogin(login);
      add('logins', {});
      set('tokenIssued', {}, wallClock() / 1_000);
      set('tokenExpiry', {}, (wallClock() + login.lifeMs) / 1_000);
      set('clockAhead', {}, clocks.aheadMs / 1_000);
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
      setImages(resource, 0);
      setRead(resource);
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
    onSwept: (swept) => {
      const { resource, level } = swept;
      add('sweeps', { resource, deletions: deletionsOf(swept) });
      setLevel(resource, level);
      if (!held.delete(resource)) set('deletesHeld', { resource }, 0);
    },
    onCertified: ({ resource, certificate: { proof }, level }) => {
      add('certificates', { resource, proof });
      setLevel(resource, level);
      if (proof === 'exact') set('exactCertificate', { resource }, wallClock() / 1_000);
    },
    onLost: ({ resource }) => add('topicDisagreements', { resource }),
    onRefused: ({ resource }) => add('refused', { resource }),
    onFailed: ({ resource, error }) => {
      add('failures', { resource, code: codeOf(error) });
      if (isKnown(resource)) failed.add(resource);
      set('failed', { resource }, 1);
    },
    onCommitted: ({ resource, outcome, elapsedMs, messages }) => {
      add('transactions', { resource, outcome });
      observe('transactionSeconds', { resource }, elapsedMs / 1_000);
      if (outcome === 'committed') add('messages', { resource }, messages);
    },
    onPublished: (page) => {
      const { resource, lane, changes, statusChanges, unchanged, known, at, completes } = page;
      const { read, events } = countPage(page);
      add('recordsRead', { resource, lane }, read);
      add('recordsUnchanged', { resource, lane }, unchanged);
      for (const op of LABELS.op.values)
        if (events[op] > 0) add('events', { resource, op }, events[op]);
      if (FRESH_LANES.has(lane)) {
        const made = changes.map(changeTime).filter((instant) => instant !== null);
        const seconds = made.map((ms) => Math.max(0, at + clocks.aheadMs - ms) / 1_000);
        observe('freshness', { resource }, ...seconds);
      }
      for (const { change } of statusChanges) {
        add('statusChanges', { resource, subject: change.subject, field: change.field });
      }
      setImages(resource, known);
      setRead(resource);
      if (completes) scanned(resource, lane);
    },
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
      add('retries', { service: dependencyOf(what), resource, code: codeOf(error) }),
    onResync: ({ resource, status }) => add('resyncs', { resource, result: status }),
    onSignalIgnored: () => add('signalsIgnored', {}),
    onSignalsFailed: () => add('signalFailures', {}),
    onDiscarded: () => add('imagesDiscarded', {}),
    onRestored: ({ resource, images }) => add('imagesRestored', { resource }, images),
  };
  return { hooks, registry, text: () => registry.metrics() };
}

function codeOf(error: unknown): string {
  return error instanceof CellarstreamError ? error.code : OTHER;
}

/** Keys in {@link METRICS} of those metrics whose type is one of `T`. */
export type KeyOf<T extends MetricType> = {
  [K in keyof MetricTable]: MetricTable[K]['type'] extends T ? K : never;
}[keyof MetricTable];

/** Values for all labels of a metric except `account`. */
type LabelsOf<K extends keyof MetricTable> = Readonly<
  Record<MetricTable[K]['labels'][number], string>
>;

type Labels = Readonly<Record<string, string>>;

/** Sets the metrics of {@link METRICS} for one account. Label values that are not in the list of allowed ones become `other`. */
class Recorder {
  readonly #account: string;
  readonly #allowed: LabelValues;
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();

  /**
   * Registers all metrics of {@link METRICS}.
   *
   * @param collect Functions that update gauges. Each is called before its gauge is read.
   */
  constructor(
    registry: Registry,
    { account, description, resources }: MetricsOptions,
    collect: Readonly<Partial<Record<KeyOf<'gauge'>, () => void>>>,
  ) {
    this.#account = account;
    this.#allowed = labelValues(description);
    // Series with the value 0 exist from the start for the lists that the service reads.
    const lists = listsNamed(description, resources);
    const values = { ...this.#allowed, resource: resources };
    for (const [key, metric] of Object.entries<Metric>(METRICS)) {
      const { type, name, help, labels, buckets = [], zeros } = metric;
      const common = { name, help, labelNames: ['account', ...labels], registers: [registry] };
      const grids = zeros?.(lists) ?? (type === 'gauge' ? [] : [{}]);
      const atStart = grids
        .flatMap((grid) => combinations(labels, { ...values, ...grid }))
        .map((values) => ({ ...values, account }));
      if (type === 'counter') {
        const counter = new Counter(common);
        this.#counters.set(key, counter);
        for (const values of atStart) counter.inc(values, 0);
      } else if (type === 'gauge') {
        const set = collect[key as KeyOf<'gauge'>];
        const gauge = new Gauge({ ...common, ...(set && { collect: set }) });
        this.#gauges.set(key, gauge);
        for (const values of atStart) gauge.set(values, 0);
      } else {
        const histogram = new Histogram({ ...common, buckets: [...buckets] });
        this.#histograms.set(key, histogram);
        for (const values of atStart) histogram.zero(values);
      }
    }
  }

  readonly add = <K extends KeyOf<'counter'>>(key: K, labels: LabelsOf<K>, by = 1): void =>
    this.#counters.get(key)!.inc(this.#bounded(labels), by);

  readonly set = <K extends KeyOf<'gauge'>>(key: K, labels: LabelsOf<K>, value: number): void =>
    this.#gauges.get(key)!.set(this.#bounded(labels), value);

  /** Adds durations in seconds to the histogram `key`. Durations that are negative or not finite are ignored. */
  readonly observe = <K extends KeyOf<'histogram'>>(
    key: K,
    labels: LabelsOf<K>,
    ...seconds: readonly number[]
  ): void => {
    const histogram = this.#histograms.get(key)!;
    const values = this.#bounded(labels);
    for (const one of seconds) {
      if (one >= 0 && one < Infinity) histogram.observe(values, one);
    }
  };

  #bounded(labels: Labels): Labels {
    const bounded: Record<string, string> = { account: this.#account };
    for (const [name, value] of Object.entries(labels)) {
      bounded[name] = boundedLabel(this.#allowed, name, value);
    }
    return bounded;
  }
}

function combinations(labels: readonly LabelName[], values: LabelValues): Labels[] {
  return labels.reduce<Labels[]>(
    (all, name) =>
      all.flatMap((before) => (values[name] ?? []).map((value) => ({ ...before, [name]: value }))),
    [{}],
  );
}

/**
 * Interval at which the event loop lag is sampled, in ms. If it is too small, an idle process wakes up too often: with prom-client's
 * default of 10 ms, this took 1/14 of the CPU time of a small service.
 */
const LAG_TICK_MS = 50;

/** Adds the metrics of the process to a registry. To be called once per process: Node collects them until the process ends. */
export function collectProcessMetrics(register: Registry, labels = {}): void {
  collectDefaultMetrics({ register, labels, eventLoopMonitoringPrecision: LAG_TICK_MS });
}
