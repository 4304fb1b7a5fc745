import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import { bounded, LABELS } from './metric-labels.ts';
import type { Label, LabelName } from './metric-labels.ts';
import { METRICS } from './metric-table.ts';
import type { LabelGrid, Metric, MetricTable, MetricType } from './metric-table.ts';

/** The metrics of a type, by their keys in the table. */
export type KeyOf<T extends MetricType> = {
  [K in keyof MetricTable]: MetricTable[K]['type'] extends T ? K : never;
}[keyof MetricTable];

/** A value for each label of a metric; `account` is known. */
export type LabelsOf<K extends keyof MetricTable> = Readonly<
  Record<MetricTable[K]['labels'][number], string>
>;

/** Moves the metrics of the table, of one account. Values of labels that are unknown become `other`. */
export interface Recorder {
  readonly add: <K extends KeyOf<'counter'>>(key: K, labels: LabelsOf<K>, by?: number) => void;
  readonly set: <K extends KeyOf<'gauge'>>(key: K, labels: LabelsOf<K>, value: number) => void;
  /** What is no number, or less than 0, is not counted as one. */
  readonly observe: <K extends KeyOf<'histogram'>>(
    key: K,
    labels: LabelsOf<K>,
    ...seconds: readonly number[]
  ) => void;
}

export interface RecorderOptions {
  readonly registry: Registry;
  readonly account: string;
  /** Whose series are there from the start. */
  readonly resources: readonly string[];
  /** Called before these are read, to set them. */
  readonly collect: Readonly<Partial<Record<KeyOf<'gauge'>, () => void>>>;
}

type Labels = Readonly<Record<string, string>>;

/** Makes every metric of the table, with the series that are 0 from the start. */
export function recorder({ registry, account, resources, collect }: RecorderOptions): Recorder {
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
