import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from '../../core/version.ts';
import type { FleetView } from '../../observe/fleet-view.ts';
import { FLEET_METRICS, FLEET_STATES } from './fleet-metric-table.ts';
import type { FleetMetric } from './fleet-metric-table.ts';
import { joinedText } from './joined-text.ts';
import { collectProcessMetrics } from './process-metrics.ts';

export interface FleetMetricsOptions {
  /** `INSTANCE_NAME`. */
  readonly instance: string;
  /** Whether this instance is ready. */
  readonly isReady: () => boolean;
  /** Of the accounts that run here now, by name. */
  readonly accounts: () => ReadonlyMap<string, Registry>;
}

/** What an instance tells of its fleet, of itself, and of each account that it runs. */
export interface FleetMetrics {
  readonly onFleet: (view: FleetView) => void;
  readonly onHandover: (handover: { readonly elapsedMs: number }) => void;
  readonly onFenced: () => void;
  /** Of all that runs here. */
  readonly text: () => Promise<string>;
  /** Of that text, for HTTP. */
  readonly contentType: string;
}

/**
 * The metrics of an instance: of the process once, of the fleet, and those of each account that runs here. Series of
 * an account are gone with it, so there are never more than the accounts call for.
 *
 * Once a process: what Node tells of itself is collected until the process ends.
 */
export function fleetMetrics({ instance, isReady, accounts }: FleetMetricsOptions): FleetMetrics {
  const registry = new Registry();
  const gauge = (metric: FleetMetric, collect?: (this: Gauge) => void) =>
    new Gauge({ ...optionsOf(metric, registry), ...(collect && { collect }) });

  gauge(FLEET_METRICS.instance).set(
    { owner: instance, version: VERSION, node: process.version },
    1,
  );
  gauge(FLEET_METRICS.ready, function () {
    this.set(Number(isReady()));
  });
  const inGroup = gauge(FLEET_METRICS.inGroup);
  const generation = gauge(FLEET_METRICS.generation);
  const members = gauge(FLEET_METRICS.members);
  const byState = gauge(FLEET_METRICS.accounts);
  gauge(FLEET_METRICS.running, function () {
    this.reset();
    for (const account of accounts().keys()) this.set({ account, owner: instance }, 1);
  });
  const notRunning = gauge(FLEET_METRICS.notRunning);
  const moves = new Counter(optionsOf(FLEET_METRICS.moves, registry));
  const handovers = new Histogram({
    ...optionsOf(FLEET_METRICS.handoverSeconds, registry),
    buckets: [...FLEET_METRICS.handoverSeconds.buckets],
  });
  const fenced = new Counter(optionsOf(FLEET_METRICS.fenced, registry));
  for (const unknown of [generation, members]) unknown.remove(); // at 0 before anybody has told
  collectProcessMetrics(registry);

  /** Of each account that is known, the owner that it had last. */
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
    onFleet: (view) => {
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
    onHandover: ({ elapsedMs }) => handovers.observe(elapsedMs / 1_000),
    onFenced: () => fenced.inc(),
    text: () => joinedText([registry, ...accounts().values()]),
    contentType: registry.contentType,
  };
}

function optionsOf({ name, help, labels }: FleetMetric, registry: Registry) {
  return { name, help, labelNames: [...labels], registers: [registry] };
}
