// Status of one account: in full for its page, or as a few figures for the other instances of a fleet.

import { VERSION } from '../../core/version.ts';
import { allHooks } from '../../observe/all-hooks.ts';
import type { AccountFigures } from '../../observe/fleet-view.ts';
import type { Gauges, Hooks, QuotaUse } from '../../observe/hooks.ts';
import { statusFieldName } from '../../description/description.ts';
import type { ApiDescription, Resource } from '../../description/description.ts';
import { ClockSkew } from './hook-figures.ts';
import type { Readiness } from './causes.ts';
import type { ReadinessOptions } from './readiness.ts';
import { ListStatus } from './resource-status.ts';
import type { ListFigures } from './resource-status.ts';
import { MAX_ERROR, shortened } from './shortened.ts';
import type { LifeCycle, RecentDeadLetter, RecentStatusChange, Status } from './status-json.ts';
import { LifeCycleModel, MAX_STATUS } from './status-life-cycle.ts';
import { Warnings } from './warnings.ts';

export interface StatusOptions extends ReadinessOptions {
  readonly account: string;
  readonly prefix: string;
  readonly readiness: () => Readiness;
}

const MAX_STATUS_CHANGES = 50;
const MAX_DEAD_LETTERS = 20;

/** Computes everything that the status page shows, from the events of the service's hooks. Its memory does not grow with time. */
export class StatusModel {
  readonly #options: StatusOptions;
  readonly #since: number;
  readonly #lists: readonly ListStatus[];
  readonly #cycles: readonly StatusCycle[];
  /** Recent status changes, the newest first. */
  readonly #statusChanges: RecentStatusChange[] = [];
  /** Recent dead letters, the newest first. */
  readonly #deadLetters: RecentDeadLetter[] = [];
  readonly #warnings: Warnings;
  #gauges: Gauges | undefined;
  #login: { readonly since: number; readonly lifeMs: number } | null = null;

  readonly hooks: Hooks;

  constructor(options: StatusOptions) {
    this.#options = options;
    const { description, now, resources } = options;
    this.#since = now();
    this.#warnings = new Warnings(now, description.lists);
    this.#cycles = cyclesOf(description);
    const skew = new ClockSkew();
    const aheadMs = () => skew.aheadMs;
    this.#lists = resources.map(
      (resource) => new ListStatus({ description, resource, now, aheadMs }),
    );
    const ofLists = this.#lists.map(({ hooks }, nth) => onlyOf(resources[nth]!, hooks));
    this.hooks = allHooks(skew.hooks, ...ofLists, this.#ofAccount, this.#warnings.hooks);
  }

  readonly #ofAccount: Hooks = {
    onStart: (started) => (this.#gauges = started),
    onLogin: ({ lifeMs }) => (this.#login = { since: this.#options.now(), lifeMs }),
    onRejected: ({ resource, reason, offset }) => {
      this.#deadLetters.unshift({ at: this.#options.now(), resource, reason, offset });
      this.#deadLetters.splice(MAX_DEAD_LETTERS);
    },
    onPublished: ({ at, resource, statusChanges }) => {
      for (const { key, change } of statusChanges) {
        const { subject, field } = change;
        const cycle = this.#cycles.find(
          (each) => each.resource === resource && each.subject === subject && each.field === field,
        );
        cycle?.model.add(key, change, at);
      }
      for (const { key, change } of statusChanges.slice(-MAX_STATUS_CHANGES)) {
        const { subject, subjectId, field, from, to } = change;
        const cut = (text: string | null, most: number) =>
          text === null ? null : shortened(text, most);
        this.#statusChanges.unshift({
          at,
          order: shortened(key, MAX_ID),
          subject,
          subjectId: cut(subjectId, MAX_ID),
          field,
          from: cut(from, MAX_STATUS),
          to: cut(to, MAX_STATUS),
        });
      }
      this.#statusChanges.splice(MAX_STATUS_CHANGES);
    },
  };

  /** Shows all lists as failed, because serving the account has ended with an error. It may be claimed again after `delayMs`. */
  accountFailed(error: unknown, delayMs: number): void {
    for (const resource of this.#options.resources)
      this.hooks.onFailed!({ resource, error, delayMs });
  }

  /** Returns a summary of the status. Computing it costs less than computing the full status. */
  readonly figures = (): AccountFigures =>
    accountFigures(
      this.#options.now(),
      this.#options.readiness(),
      this.#gauges?.quotas() ?? [],
      this.#lists.map((list) => list.figures()),
    );

  readonly status = (): Status => {
    const { account, prefix, pollIntervalMs, now } = this.#options;
    const at = now();
    const readiness = this.#options.readiness();
    const login = this.#login;
    return {
      version: VERSION,
      account,
      prefix,
      at,
      since: this.#since,
      pollIntervalMs,
      ...readiness,
      warnings: this.#warnings.all(readiness.causes),
      token: login && { ...login, leftMs: Math.max(0, login.since + login.lifeMs - at) },
      quotas: this.#gauges?.quotas() ?? [],
      resources: this.#lists.map((list) => list.status()),
      lifeCycles: this.#cycles.map(({ model, ...names }) => ({ ...names, ...model.status() })),
      statusChanges: [...this.#statusChanges],
      deadLetters: [...this.#deadLetters],
    };
  };
}

/** Wraps the hooks of a list so that they are called only with events of this list. */
function onlyOf(resource: Resource, hooks: Hooks): Hooks {
  const all = Object.entries(hooks) as [keyof Hooks, (event: never) => void][];
  return Object.fromEntries(
    all.map(([name, hook]) => [
      name,
      (event: { readonly resource?: string; readonly what?: string }) => {
        const of = name === 'onRequest' ? event.what : event.resource;
        if (of === resource) hook(event as never);
      },
    ]),
  );
}

/** Maximum length of a key or subject id in the status, in characters. */
const MAX_ID = 60;

/** A status field of a list's records, and the model that observes its life cycle: its states and the changes between them. */
interface StatusCycle extends Pick<LifeCycle, 'resource' | 'subject' | 'field'> {
  readonly model: LifeCycleModel;
}

function cyclesOf({ lists }: ApiDescription): StatusCycle[] {
  return lists.flatMap(({ name: resource, statuses }) =>
    (statuses?.subjects ?? []).flatMap(({ name: subject, fields }) =>
      fields.map((path) => {
        return { resource, subject, field: statusFieldName(path), model: new LifeCycleModel() };
      }),
    ),
  );
}

/** Maximum number of `reasons` (why the account is not ready) in the summary of an account. */
const MAX_REASONS = 6;

/**
 * Summarizes an account: the longest lag and the oldest last scan of a list, sums of the lists' events per second and snapshot progress,
 * and the most used quota (without that for logins).
 */
export function accountFigures(
  at: number,
  { ready, reasons, causes }: Readiness,
  quotas: readonly QuotaUse[],
  lists: readonly ListFigures[],
): AccountFigures {
  const lags = lists.flatMap(({ lagMs }) => lagMs ?? []);
  const looks = lists.flatMap(({ lookedAt }) => lookedAt ?? []);
  const snapshots = lists.flatMap(({ firstRead }) => (firstRead?.done === false ? firstRead : []));
  const sum = (of: 'read' | 'total') => snapshots.reduce((before, each) => before + each[of], 0);
  return {
    at,
    ready,
    reasons: reasons.slice(0, MAX_REASONS).map((reason) => shortened(reason, MAX_ERROR)),
    causes,
    lagMs: lags.length > 0 ? Math.max(...lags) : null,
    lookedAt: looks.length === lists.length ? Math.min(...looks) : null,
    quota: mostUsedQuota(quotas.filter(({ name }) => name !== 'login')),
    eventsPerSecond: lists.reduce((before, each) => before + each.eventsPerSecond, 0),
    firstRead: snapshots.length > 0 ? { read: sum('read'), total: sum('total') } : null,
  };
}

function mostUsedQuota(quotas: readonly QuotaUse[]): QuotaUse | null {
  return quotas.toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0] ?? null;
}
