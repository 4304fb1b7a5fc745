// Metrics of an instance of a fleet: their table, their updates, and the joint text of all registries of an instance.

import { setImmediate } from 'node:timers/promises';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from '../../core/version.ts';
import { FLEET_STATES } from '../../observe/fleet-view.ts';
import type { FleetView } from '../../observe/fleet-view.ts';
import type { Label } from './metric-labels.ts';
import { metricOf } from './metric-table.ts';
import type { Metric } from './metric-table.ts';
import { collectProcessMetrics } from './metrics.ts';

/**
 * Labels of the fleet's metrics. Labels without `values` hold names of accounts, names of instances or versions, so the number of their
 * values has no limit.
 */
export const FLEET_LABELS = {
  account: { help: 'the name of an account' },
  owner: {
    help: '`INSTANCE_NAME` of the instance that reports it. Prometheus sets `instance` itself, to the address that it asks',
  },
  version: { help: 'the version of Cellarstream' },
  node: { help: 'the version of Node' },
  state: {
    help: '`moving`: from one instance to another; `without-owner`: no instance runs it; `failed`: stopped until an operator resolves the error; `wrong-file`: its file has wrong settings; `quarantined`: its claims were followed by three crashes within ten minutes',
    values: FLEET_STATES,
  },
} as const satisfies Record<string, Label>;

export interface FleetMetric extends Omit<Metric, 'labels' | 'zeros'> {
  readonly labels: readonly (keyof typeof FLEET_LABELS)[];
}

const gauge = metricOf('gauge');
const counter = metricOf('counter');

/**
 * Metrics of a fleet. Series with the label `account` exist only for accounts that run on this instance or are listed in the newest
 * {@link FleetView}.
 */
export const FLEET_METRICS = {
  instance: gauge(
    'cellarstream_fleet_instance_info',
    'Always 1: the name of this instance, which version it runs, on which Node.',
    ['owner', 'version', 'node'],
  ),
  ready: gauge(
    'cellarstream_fleet_instance_ready',
    'Whether this instance is ready, as /readyz says: 1 or 0.',
  ),
  inGroup: gauge(
    'cellarstream_fleet_in_group',
    'Whether this instance is a member of the group: 1 or 0.',
  ),
  generation: gauge(
    'cellarstream_fleet_generation',
    'Generation of the group that this instance is a member of. An instance with a lower generation than the others is no longer a member.',
  ),
  members: gauge('cellarstream_fleet_members', 'Instances in the group, as this one knows it.'),
  accounts: gauge(
    'cellarstream_fleet_accounts',
    'Known accounts, by their state. Each instance reports the whole fleet: take the maximum, not the sum.',
    ['state'],
  ),
  running: gauge(
    'cellarstream_fleet_account_running',
    'Always 1: an account that this instance runs. The sum over all instances is 1 for each account.',
    ['account', 'owner'],
  ),
  notRunning: gauge(
    'cellarstream_fleet_account_not_running',
    'Always 1: an account that does not run just now, and why. Each instance reports it.',
    ['account', 'state'],
  ),
  moves: counter(
    'cellarstream_fleet_account_moves_total',
    'How often an account moved to another owner, as this instance saw it. Each instance reports the whole fleet.',
    ['account'],
  ),
  handoverSeconds: metricOf('histogram')(
    'cellarstream_fleet_handover_duration_seconds',
    'Duration of the move of an account to this instance: from the request for its release, its release, or the detected crash of its owner, to the first response to a list request here.',
    [],
    { buckets: [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300] },
  ),
  fenced: counter(
    'cellarstream_fleet_fenced_total',
    'How often another instance claimed an account that this one had not released.',
  ),
} satisfies Record<string, FleetMetric>;

interface FleetMetricsOptions {
  readonly instance: string;
  readonly isReady: () => boolean;
  /** Returns the prom-client registries of the accounts that run on this instance, by account name. */
  readonly accounts: () => ReadonlyMap<string, Registry>;
}

/**
 * Creates the metrics of an instance of a fleet: of its process, of the fleet, and of each account that runs on the instance. To be called
 * once per process, as Node's own metrics are collected until the process ends.
 */
export function fleetMetrics({ instance, isReady, accounts }: FleetMetricsOptions) {
  const registry = new Registry();
  const gaugeOf = (metric: FleetMetric, collect?: (this: Gauge) => void) =>
    new Gauge({ ...optionsOf(metric, registry), ...(collect && { collect }) });

  gaugeOf(FLEET_METRICS.instance).set(
    { owner: instance, version: VERSION, node: process.version },
    1,
  );
  gaugeOf(FLEET_METRICS.ready, function () {
    this.set(Number(isReady()));
  });
  const inGroup = gaugeOf(FLEET_METRICS.inGroup);
  const generation = gaugeOf(FLEET_METRICS.generation);
  const members = gaugeOf(FLEET_METRICS.members);
  const byState = gaugeOf(FLEET_METRICS.accounts);
  gaugeOf(FLEET_METRICS.running, function () {
    this.reset();
    for (const account of accounts().keys()) this.set({ account, owner: instance }, 1);
  });
  const notRunning = gaugeOf(FLEET_METRICS.notRunning);
  const moves = new Counter(optionsOf(FLEET_METRICS.moves, registry));
  const handovers = new Histogram(optionsOf(FLEET_METRICS.handoverSeconds, registry));
  const fenced = new Counter(optionsOf(FLEET_METRICS.fenced, registry));
  for (const unknown of [generation, members]) unknown.remove(); // prom-client starts them at 0, but they are unknown
  collectProcessMetrics(registry);

  /** Last known owner of each account in the newest {@link FleetView}, by account name. Undefined if no owner was ever known. */
  const owners = new Map<string, string | undefined>();
  const countMoves = (view: FleetView) => {
    const known = new Set(view.accounts.map(({ account }) => account));
    for (const account of owners.keys()) {
      if (known.has(account)) continue;
      owners.delete(account);
      moves.remove({ account });
    }
    for (const { account, owner } of view.accounts) {
      const before = owners.get(account);
      const hasMoved = before !== undefined && owner !== undefined && owner !== before;
      moves.inc({ account }, Number(hasMoved));
      owners.set(account, owner ?? before);
    }
  };

  return {
    onFleet: (view: FleetView) => {
      inGroup.set(Number(view.generation !== undefined));
      if (view.generation === undefined) generation.remove();
      else generation.set(view.generation);
      members.set(view.instances.length);
      for (const state of FLEET_STATES) {
        byState.set({ state }, view.accounts.filter((each) => each.state === state).length);
      }
      notRunning.reset();
      for (const { account, state, owner } of view.accounts) {
        const runsElsewhere = state === 'wrong-file' && owner !== undefined;
        if (state !== 'running' && !runsElsewhere) notRunning.set({ account, state }, 1);
      }
      countMoves(view);
    },
    /**
     * Adds to the histogram how long an account's handover to this instance took. A handover ends with the account's first successful API
     * response.
     */
    onHandover: ({ elapsedMs }: { readonly elapsedMs: number }) =>
      handovers.observe(elapsedMs / 1_000),
    /** Counts an account that another instance has claimed although this instance had not released it. */
    onFenced: () => fenced.inc(),
    text: () => joinedText([registry, ...accounts().values()]),
  };
}

function optionsOf({ name, help, labels, buckets }: FleetMetric, registry: Registry) {
  const common = { name, help, labelNames: [...labels], registers: [registry] };
  return { ...common, ...(buckets && { buckets: [...buckets] }) };
}

/**
 * Longest time that building the metrics text may occupy the event loop before other work gets a turn, in ms. If it is too large, reading
 * and publishing are delayed; if too small, building the text takes longer.
 */
const TURN_MS = 5;

/** Joins the metrics texts of several registries into one. All series of a metric stand together, as the Prometheus format requires. */
async function joinedText(registries: readonly Registry[]): Promise<string> {
  const names = new Set(
    registries.flatMap((registry) => registry.getMetricsAsArray().map(({ name }) => name)),
  );
  const texts: string[] = [];
  let turnEnds = performance.now() + TURN_MS;
  for (const name of names) {
    const parts: string[] = [];
    for (const registry of registries) {
      if (registry.getSingleMetric(name) === undefined) continue;
      const text = await registry.getSingleMetricAsString(name);
      // The lines `# HELP` and `# TYPE` stand once before the series of all registries.
      const part = parts.length === 0 ? text : text.split('\n').slice(2).join('\n');
      if (part !== '') parts.push(part);
      if (performance.now() < turnEnds) continue;
      await setImmediate(); // a hundred accounts have a hundred thousand series
      turnEnds = performance.now() + TURN_MS;
    }
    texts.push(parts.join('\n'));
  }
  return `${texts.join('\n\n')}\n`;
}
