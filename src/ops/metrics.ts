import { collectDefaultMetrics, Registry } from 'prom-client';
import { CellarstreamError } from '../errors.ts';
import type { Gauges, Hooks, Published } from '../hooks.ts';
import { LABELS, OTHER, statusLabel } from './metric-labels.ts';
import { recorder } from './metric-recorder.ts';
import type { Readiness } from './readiness.ts';
import { VERSION } from '../version.ts';

export interface MetricsOptions {
  readonly account: string;
  readonly resources: readonly string[];
  /** The clock: ms since the epoch. */
  readonly now: () => number;
  /** Whether the service is ready; without it no metric says so. */
  readonly readiness?: () => Readiness;
}

/** What a service tells, as numbers in the text format of Prometheus. */
export interface Metrics {
  /** To be told: hand them to `run`. */
  readonly hooks: Hooks;
  /** Of these metrics alone. */
  readonly registry: Registry;
  readonly text: () => Promise<string>;
  /** Of that text, for HTTP. */
  readonly contentType: string;
}

/** The `Date` of an answer is cut to seconds, and the answer was on its way: less is no difference. */
const LEAST_DIFFERENCE_MS = 2_000;
/** A first read brings what is old, and a request to publish again nothing new. */
const FRESH_LANES: ReadonlySet<string> = new Set(['poll', 'sweep', 'reread']);

/**
 * The metrics of docs/metrics.md, of one account and of the process. How many series there are does
 * not depend on what the API sends; values are numbers, codes and names of lists and fields.
 *
 * Once a process: what Node tells of itself (lags, pauses) is collected until the process ends, and
 * does not keep it from ending.
 */
export function metrics(options: MetricsOptions): Metrics {
  const { account, resources, now, readiness } = options;
  const registry = new Registry();
  let gauges: Gauges | undefined;
  let aheadMs = 0;
  const schemas = new Map<string, number>();
  /** Resources whose sweep under way has had deletions held. */
  const held = new Set<string>();

  const { add, set, observe } = recorder({
    registry,
    account,
    resources,
    collect: {
      quotaUsed: () => {
        for (const { name, used } of gauges?.quotas() ?? []) set('quotaUsed', { resource: name }, used); // prettier-ignore
      },
      quotaLimit: () => {
        for (const { name, limit } of gauges?.quotas() ?? []) set('quotaLimit', { resource: name }, limit); // prettier-ignore
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
  collectDefaultMetrics({ register: registry });

  const scanned = (resource: string, lane: string) => {
    add('scans', { resource, lane });
    set('lastScan', { resource, lane }, now() / 1_000);
  };
  const published = (page: Published) => {
    const { resource, lane, changes, statusChanges, unchanged, known, at, completes } = page;
    // A request to publish again adds an event for each record, beside what has changed.
    const read = changes.filter(({ op }) => op !== 'd' && !(op === 'r' && lane === 'resync'));
    add('recordsRead', { resource, lane }, read.length + unchanged);
    add('recordsUnchanged', { resource, lane }, unchanged);
    for (const { op, updatedAt } of changes) {
      add('events', { resource, op });
      if (updatedAt === null || !(op === 'c' || op === 'u') || !FRESH_LANES.has(lane)) continue;
      observe('freshness', { resource }, Math.max(0, at - (updatedAt - aheadMs)) / 1_000);
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
    onLogin: ({ lifeMs, aheadMs: ahead = 0 }) => {
      aheadMs = Math.abs(ahead) < LEAST_DIFFERENCE_MS ? 0 : ahead;
      add('logins', {});
      set('tokenIssued', {}, now() / 1_000);
      set('tokenExpiry', {}, (now() + lifeMs) / 1_000);
      set('clockAhead', {}, aheadMs / 1_000);
    },
    onRequest: ({ what: resource, status, elapsedMs, waitedMs }) => {
      add('requests', { resource, status: statusLabel(status) });
      observe('requestSeconds', { resource }, elapsedMs / 1_000);
      observe('waitSeconds', { resource }, waitedMs / 1_000);
    },
    onReady: ({ resource }) => add('takeovers', { resource }),
    onEmpty: ({ resource }) => scanned(resource, 'first-read'),
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
      const isProven = canBeAsked ? proof !== 'nothing' : proof === 'exact';
      add('sweeps', { resource, deletions: isProven ? 'known' : 'unknown' });
      if (!held.delete(resource)) set('deletesHeld', { resource }, 0);
    },
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
    onRejected: ({ resource, reason }) => add('deadLetters', { resource, reason }),
    onRetry: ({ what, resource = 'all', error }) =>
      add('retries', { service: serviceOf(what), resource, code: codeOf(error) }),
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

/** What `onRetry` names: a service, the folder, or a list of the API. */
function serviceOf(what: string): string {
  if (what === 'state folder') return 'state';
  return ['login', 'kafka', 'registry'].includes(what) ? what : 'api';
}
