import { checkArrivals } from './check-arrivals.ts';
import {
  certificatesIn,
  checkCertificates,
  checkCut,
  checkPoisoned,
} from './check-certificates.ts';
import { checkChains, checkTruth } from './check-chains.ts';
import type { Volatility } from './check-chains.ts';
import { checkHeard } from './check-heard.ts';
import { checkInstances } from './check-instances.ts';
import { checkCertifyRequests, checkResyncs } from './check-resyncs.ts';
import { checkSignatures } from './check-signatures.ts';
import { checkStatuses } from './check-statuses.ts';
import { chainsOf } from './published.ts';
import { PERSONAL } from './sim-api.ts';
import type { SimApi } from './sim-api.ts';
import type { SimBroker } from './sim-broker.ts';
import type { SimProcess } from './sim-process.ts';
import type { SimRegistry } from './sim-registry.ts';
import { SIGNALS } from './sim-signals.ts';

/** A run that is over. */
export interface Finished {
  readonly broker: SimBroker;
  readonly registry: SimRegistry;
  readonly api: SimApi;
  readonly processes: readonly SimProcess[];
  /** Whether nothing ever failed. */
  readonly isSafe: boolean;
  /** Whether the quota was one that binds, and request times were kept for it. */
  readonly isScarce: boolean;
  readonly volatility: Volatility;
  /** How old some answers were, from a replica that lagged or from a cache, ms; 0 if none was. */
  readonly behindMs: number;
  /** Until when the API did not show the end of a long list; before all times if it always did. */
  readonly cutUntil: number;
  /** Until when pages of the whole list came from a cache; before all times if none did. */
  readonly cachedUntil: number;
  /** The same where it refused offsets, so that it is plain that the list has an end that is not shown. */
  readonly limitedUntil: number;
}

export interface Verdict {
  readonly violations: readonly string[];
  readonly sums: Readonly<Record<string, number>>;
}

/** Holds a run against what is promised. */
export function check({
  broker,
  registry,
  api,
  processes,
  isSafe,
  isScarce,
  volatility,
  behindMs,
  cutUntil,
  cachedUntil,
  limitedUntil,
}: Finished): Verdict {
  const { resource } = api.traits;
  const events = broker.read(`sim.${resource}`);
  const statuses = broker.read('sim.order-status-changes');
  const chains = chainsOf(events, registry);
  const cursors = broker.read('sim.cursors');
  const signals = broker.read(SIGNALS);
  const letters = broker.read('sim.dead-letters');
  const certificates = certificatesIn(broker);
  const violations = [
    ...[events, statuses, cursors, signals, letters].flatMap((topic) =>
      topic.some(({ value }) => value?.includes(PERSONAL))
        ? ['something personal is published']
        : [],
    ),
    ...processes.flatMap(({ name, folder }) =>
      folder.holds(PERSONAL) ? [`something personal is in the folder of ${name}`] : [],
    ),
    ...checkChains(chains, api.list, volatility, behindMs > 0),
    ...checkTruth(chains, api.list),
    ...checkSignatures(chains, api),
    ...(resource === 'orders' ? checkStatuses(chains, statuses) : []),
    ...checkInstances(cursors, events, processes),
    ...checkResyncs(chains, signals, api, { behindMs, cutUntil, cachedUntil }),
    ...checkCertificates(certificates, { broker, registry, topic: `sim.${resource}` }),
    ...checkPoisoned(certificates, api),
    ...checkCut(certificates, api, limitedUntil),
    ...checkCertifyRequests(signals, certificates),
    ...(isScarce ? checkArrivals(api.arrivals, api.traits) : []),
    ...(isSafe ? checkHeard(chains, api, processes) : []),
  ];
  const swept = [...new Set(processes.map(({ folder }) => folder))].map((folder) => folder.swept());
  const sums = {
    processes: processes.length,
    fenced: processes.filter(({ isFenced }) => isFenced).length,
    'writes of replaced ones': broker.refused,
    'events taken away': broker.losses,
    requests: api.arrivals.length,
    events: events.length,
    'of volatile lists': api.isVolatile ? events.length : 0,
    deletions: events.filter(({ value }) => value === null).length,
    statuses: statuses.length,
    requested: signals.length / 2,
    certificates: certificates.length,
    'of them exact': certificates.filter(({ proof }) => proof === 'exact').length,
    'dead letters': letters.length,
    'records swept': swept.reduce((sum, { records }) => sum + records, 0),
    'of them known': swept.reduce((sum, { known }) => sum + known, 0),
    'of them in runs': swept.reduce((sum, { inRuns }) => sum + inRuns, 0),
  };
  return { violations, sums };
}
