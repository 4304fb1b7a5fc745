// Status of one account, computed from hook events: in full for its page, or as a few figures for the other instances of a fleet.

import { allHooks } from '../../observe/all-hooks.ts';
import type { AccountFigures } from '../../observe/fleet-view.ts';
import type { Gauges, Hooks } from '../../observe/hooks.ts';
import { STATUS_FIELDS } from '../../resources/orders/order-status.ts';
import type { StatusField, StatusSubject } from '../../resources/orders/order-status.ts';
import type { Resource } from '../../resources/resources.ts';
import { clockSkew } from './hook-figures.ts';
import type { Readiness } from './readiness.ts';
import { resourceStatus } from './resource-status.ts';
import type { ListFigures } from './resource-status.ts';
import { MAX_ERROR, shortened } from './shortened.ts';
import type { QuotaStatus, RecentDeadLetter, RecentStatusChange, Status } from './status-json.ts';
import { lifeCycle, MAX_STATUS } from './status-life-cycle.ts';
import { warnings } from './warnings.ts';

interface StatusOptions {
  readonly version: string;
  readonly account: string;
  readonly prefix: string;
  readonly resources: readonly Resource[];
  /** Pause between two polls in ms, setting `POLL_INTERVAL_MS`. Default 0: polls as often as the quota allows. */
  readonly pollIntervalMs?: number | undefined;
  /** Clock: returns ms since the epoch, and never goes back. */
  readonly now: () => number;
  readonly readiness: () => Readiness;
}

const MAX_STATUS_CHANGES = 50;
const MAX_DEAD_LETTERS = 20;

/**
 * Computes the status of a service from hook events: everything that the status page shows. Memory is bounded by the number of lists: of a
 * record's values only order numbers, ids of subjects and statuses are stored, shortened.
 */
export function statusModel(options: StatusOptions) {
  const { version, account, prefix, resources, pollIntervalMs = 0, now, readiness } = options;
  const since = now();
  let gauges: Gauges | undefined;
  let login: { readonly at: number; readonly lifeMs: number } | undefined;
  const { hooks: clockHooks, aheadMs } = clockSkew();

  const models = new Map<string, ReturnType<typeof resourceStatus>>(
    resources.map((resource) => [resource, resourceStatus({ resource, now, aheadMs })]),
  );
  const of = (resource: string | undefined) =>
    resource === undefined ? undefined : models.get(resource)?.hooks;
  const cycles = new Map(
    FIELDS.map(({ subject, field }) => [
      `${subject} ${field}`,
      { subject, field, model: lifeCycle() },
    ]),
  );
  const statusChanges = recent<RecentStatusChange>(MAX_STATUS_CHANGES);
  const deadLetters = recent<RecentDeadLetter>(MAX_DEAD_LETTERS);
  const warned = warnings(now);

  const hooks: Hooks = {
    onStart: (started) => (gauges = started),
    onLogin: ({ lifeMs }) => (login = { at: now(), lifeMs }),
    onRequest: (request) => of(request.what)?.onRequest(request),
    onReady: ({ resource }) => of(resource)?.onReady(),
    onEmpty: ({ resource }) => of(resource)?.onEmpty(),
    onDates: (found) => of(found.resource)?.onDates(found),
    onSchema: (schema) => of(schema.resource)?.onSchema(schema),
    onProgress: (progress) => of(progress.resource)?.onProgress(progress),
    onCommit: ({ resource }) => of(resource)?.onCommit(),
    onCommitted: (commit) => of(commit.resource)?.onCommitted(commit),
    onSwept: (swept) => of(swept.resource)?.onSwept(swept),
    onCertified: (certified) => of(certified.resource)?.onCertified(certified),
    onUncertified: (uncertified) => of(uncertified.resource)?.onUncertified(uncertified),
    onRetry: (retrying) => of(retrying.resource)?.onRetry(retrying),
    onFailed: (failed) => of(failed.resource)?.onFailed(failed),
    onRejected: (rejected) => {
      of(rejected.resource)?.onRejected(rejected);
      const { resource, reason, offset } = rejected;
      deadLetters.add({ at: now(), resource, reason, offset });
    },
    onPublished: (published) => {
      of(published.resource)?.onPublished(published);
      const { at } = published;
      for (const { key, change } of published.statusChanges) {
        const { subject, field } = change;
        cycles.get(`${subject} ${field}`)?.model.add(key, change, at);
      }
      for (const { key, change } of published.statusChanges.slice(-MAX_STATUS_CHANGES)) {
        const { subject, field } = change;
        statusChanges.add({
          at,
          order: shortened(key, MAX_ID),
          subject,
          subjectId: change.subjectId === null ? null : shortened(change.subjectId, MAX_ID),
          field,
          from: change.from === null ? null : shortened(change.from, MAX_STATUS),
          to: change.to === null ? null : shortened(change.to, MAX_STATUS),
        });
      }
    },
  };

  return {
    hooks: allHooks(clockHooks, hooks, warned.hooks),
    /** Returns a summary of the account in a few figures, which cost less to compute than the full status. */
    figures: (): AccountFigures =>
      accountFigures(
        now(),
        readiness(),
        gauges?.quotas() ?? [],
        [...models.values()].map(({ figures }) => figures()),
      ),
    status: (): Status => {
      const at = now();
      const { ready, reasons, causes } = readiness();
      return {
        version,
        account,
        prefix,
        at,
        since,
        pollIntervalMs,
        ready,
        reasons,
        causes,
        warnings: warned.all(causes),
        token: login
          ? {
              since: login.at,
              lifeMs: login.lifeMs,
              leftMs: Math.max(0, login.at + login.lifeMs - at),
            }
          : null,
        quotas: gauges?.quotas() ?? [],
        resources: [...models.values()].map(({ status }) => status()),
        lifeCycles: [...cycles.values()].map(({ subject, field, model }) => ({
          subject,
          field,
          ...model.status(),
        })),
        statusChanges: statusChanges.all(),
        deadLetters: deadLetters.all(),
      };
    },
  };
}

/** Maximum length of an order number or of the id of a part of an order in the status, in characters; longer ones are shortened. */
const MAX_ID = 60;

const FIELDS: readonly { readonly subject: StatusSubject; readonly field: StatusField }[] = (
  Object.keys(STATUS_FIELDS) as StatusSubject[]
).flatMap((subject) => STATUS_FIELDS[subject].map((field) => ({ subject, field })));

/** Maximum number of reasons for not being ready that the figures of an account contain. */
const MAX_REASONS = 6;

/**
 * Summarizes an account in a few figures: lag, age of the last scan and used quota, each of the list where it is worst, and the sums of
 * event rates and of the progress of initial snapshots.
 */
export function accountFigures(
  at: number,
  { ready, reasons, causes }: Readiness,
  quotas: readonly QuotaStatus[],
  lists: readonly ListFigures[],
): AccountFigures {
  const lags = lists.flatMap(({ lagMs }) => lagMs ?? []);
  const looks = lists.flatMap(({ lookedAt }) => lookedAt ?? []);
  const snapshots = lists.flatMap(({ firstRead }) => (firstRead?.done === false ? firstRead : []));
  const sum = (each: readonly number[]) => each.reduce((before, one) => before + one, 0);
  return {
    at,
    ready,
    reasons: reasons.slice(0, MAX_REASONS).map((reason) => shortened(reason, MAX_ERROR)),
    causes,
    lagMs: lags.length > 0 ? Math.max(...lags) : null,
    lookedAt: looks.length === lists.length ? Math.min(...looks) : null,
    quota: mostUsedQuota(quotas.filter(({ name }) => name !== 'login')),
    eventsPerSecond: sum(lists.map(({ eventsPerSecond }) => eventsPerSecond)),
    firstRead:
      snapshots.length > 0
        ? {
            read: sum(snapshots.map(({ read }) => read)),
            total: sum(snapshots.map(({ total }) => total)),
          }
        : null,
  };
}

function mostUsedQuota(quotas: readonly QuotaStatus[]): QuotaStatus | null {
  return quotas.toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0] ?? null;
}

/** Creates a collection that holds only the newest `most` items added to it. */
function recent<T>(most: number) {
  const items: T[] = [];
  return {
    add: (item: T) => {
      items.push(item);
      if (items.length > most) items.shift();
    },
    /** Returns the stored items, the newest first. */
    all: (): readonly T[] => items.toReversed(),
  };
}
