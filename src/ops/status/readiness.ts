import { describeError } from '../../core/errors.ts';
import type { Hooks } from '../../observe/hooks.ts';
import { RULES } from '../../resources/resources.ts';
import type { Resource } from '../../resources/resources.ts';
import { ChangeScans } from './hook-figures.ts';

/** Code that says why a service is not ready. Codes are stable across releases. */
export type Cause =
  /** Logging in to the API fails, for the first or a later token. */
  | 'login'
  /** Kafka does not answer. */
  | 'kafka'
  /** The schema registry does not answer. */
  | 'registry'
  /** Requests for a list of the API fail. */
  | 'api'
  /** The state folder can't be read or written. */
  | 'state'
  /** The service has stopped reading a list until an operator resolves its error. */
  | 'failed'
  /** The service has not logged in yet, or has not claimed or not caught up with one of its lists yet. */
  | 'starting'
  /** No poll or sweep of one of the lists has completed for too long. */
  | 'stale';

export interface Readiness {
  readonly ready: boolean;
  /** Why the service is not ready, one line per problem: what is wrong, since when, and the error's text. Empty when it is ready. */
  readonly reasons: readonly string[];
  /** Codes of the `reasons` why the service is not ready, each once, in the same order. */
  readonly causes: readonly Cause[];
}

export interface ReadinessOptions {
  readonly resources: readonly Resource[];
  /** Clock: returns ms since the epoch, and never goes back. */
  readonly now: () => number;
  /** Pause between two polls in ms, setting `POLL_INTERVAL_MS`. Default 0: polls as often as the quota allows. */
  readonly pollIntervalMs?: number | undefined;
}

/**
 * Number of intervals without a completed scan (a poll, or a full scan of a list without polls) after which a list counts as stale. The
 * interval is `POLL_INTERVAL_MS`, or the time between the last two such scans if that was longer.
 */
const STALE_POLLS = 3;
/** A list does not count as stale before this time without a completed scan, in ms. */
const LEAST_STALE_MS = 60_000;
/** How long a problem may last without affecting the service's readiness, in ms. */
const GRACE_MS = 2_000;
/** Duration of an open Kafka transaction, in ms, after which Kafka counts as not responding. */
export const MAX_COMMIT_MS = 10_000;

interface ActiveProblem {
  readonly cause: Cause;
  readonly since: number;
  readonly error: unknown;
}

interface ResourceState {
  isOpen: boolean;
  problem?: ActiveProblem | undefined;
  /** When the service claimed the list, in ms since the epoch. */
  openedAt?: number;
  /** When the open Kafka transaction of the list began, in ms since the epoch; undefined while none is open. */
  commitAt?: number | undefined;
  /** When the last poll of the list (in a list without polls: full scan) was completed, in ms since the epoch. */
  lastScanAt?: number;
  /**
   * Time between the last two complete polls of the list (in a list without polls: full scans), in ms; after the first one, the time since
   * the list was claimed.
   */
  previousIntervalMs: number;
}

/**
 * Computes the readiness of a service: whether consumers can rely on what is published. A service is ready when it is logged in to the API,
 * connected to Kafka and caught up with its lists, retries nothing, and no list has failed or gone stale.
 *
 * The service is *caught up* with a list once a scan that finds all changes of the list has been completed and committed: from then on a
 * change is published soon after the API shows it. In a polled list that is the first complete poll; its initial snapshot may still be
 * running, as new changes do not wait for it. In a list without usable dates it is the first full scan: the initial snapshot or a sweep. An
 * empty list has nothing to catch up with.
 *
 * The problem of a list counts as resolved when a page of the list is committed, not when a connection is opened, which may fail again.
 */
export function readiness({ resources, now, pollIntervalMs = 0 }: ReadinessOptions) {
  const looks = new ChangeScans();
  let isLoggedIn = false;
  let login: ActiveProblem | undefined;
  /**
   * Problem with Kafka or the schema registry that affects all lists: none can be claimed, and none can be read while requests can't be
   * declared in the ledger topic.
   */
  let connection: ActiveProblem | undefined;
  const states = new Map<string, ResourceState>(
    resources.map((resource) => [resource, { isOpen: false, previousIntervalMs: 0 }]),
  );
  const update = (resource: string, change: Partial<ResourceState>) => {
    const state = states.get(resource);
    if (state) Object.assign(state, change);
  };
  const looked = (resource: string) => {
    const lastScanAt = now();
    const { lastScanAt: last, openedAt } = states.get(resource) ?? {};
    const before = last ?? openedAt ?? lastScanAt;
    update(resource, {
      problem: undefined,
      lastScanAt,
      previousIntervalMs: lastScanAt - before,
    });
  };
  const troubled = (
    before: ActiveProblem | undefined,
    cause: Cause,
    error: unknown,
  ): ActiveProblem => ({
    cause,
    since: before?.cause === cause ? before.since : now(),
    error,
  });
  const trouble = (resource: string, cause: Cause, error: unknown) =>
    update(resource, {
      problem: troubled(states.get(resource)?.problem, cause, error),
      ...(cause !== 'api' && { commitAt: undefined }), // a failed API request does not end a transaction
    });

  const hooks: Hooks = {
    onLogin: () => {
      isLoggedIn = true;
      login = undefined;
    },
    onReady: ({ resource }) => {
      connection = undefined;
      update(resource, { isOpen: true, openedAt: now() });
    },
    onEmpty: ({ resource }) => looked(resource),
    onDates: (found) => looks.updateDates(found),
    onCommit: ({ resource }) => update(resource, { commitAt: now() }),
    onPublished: (published) => {
      connection = undefined;
      update(published.resource, { problem: undefined, commitAt: undefined });
      if (looks.findsAllChanges(published)) looked(published.resource);
    },
    onRetry: ({ what, resource, error }) => {
      if (what === 'login') login = troubled(login, 'login', error);
      else if (resource !== undefined) trouble(resource, causeOf(what), error);
      else connection = troubled(connection, causeOf(what), error);
    },
    onFailed: ({ resource, error }) => trouble(resource, 'failed', error),
  };

  const lasts = (trouble: ActiveProblem | undefined): trouble is ActiveProblem =>
    trouble !== undefined && (trouble.cause === 'failed' || now() - trouble.since > GRACE_MS);
  const staleMs = ({ previousIntervalMs }: ResourceState) =>
    Math.max(LEAST_STALE_MS, STALE_POLLS * Math.max(pollIntervalMs, previousIntervalMs));

  /** Returns the problem of a list that has to be resolved first; undefined if the list has none. */
  const wrongWith = (state: ResourceState): ReadinessProblem | undefined => {
    const { problem, commitAt, isOpen, lastScanAt } = state;
    if (lasts(problem)) return problemOfWait(problem);
    if (commitAt !== undefined && now() - commitAt > MAX_COMMIT_MS) {
      return { cause: 'kafka', what: 'waiting for Kafka', since: commitAt, error: 'no answer' };
    }
    if (!isOpen) return { cause: 'starting', what: 'not claimed yet' };
    if (lastScanAt === undefined) return { cause: 'starting', what: 'not caught up yet' };
    if (now() - lastScanAt <= staleMs(state)) return undefined;
    return { cause: 'stale', what: 'no poll or sweep has ended', since: lastScanAt };
  };
  /**
   * Returns what is wrong with a list in addition to `connection`, the problem for which all lists wait. Only a problem with another cause
   * counts: that the list is stale or starting follows from `connection`.
   */
  const besides = (
    { cause }: ActiveProblem,
    { problem }: ResourceState,
  ): ReadinessProblem | undefined =>
    lasts(problem) && problem.cause !== cause ? problemOfWait(problem) : undefined;
  const wrong = (): ReadinessProblem[] => {
    if (!isLoggedIn && lasts(login)) return [problemOfWait(login)];
    if (lasts(connection) && !isLoggedIn) return [problemOfWait(connection)]; // logins are declared in Kafka first
    if (!isLoggedIn) return [{ cause: 'starting', what: 'not logged in yet' }];
    const all: ReadinessProblem[] = lasts(login) ? [problemOfWait(login)] : [];
    if (lasts(connection)) all.push(problemOfWait(connection));
    for (const resource of resources) {
      const state = states.get(resource)!;
      const found = lasts(connection) ? besides(connection, state) : wrongWith(state);
      if (found) all.push({ ...found, resource });
    }
    return all;
  };

  return {
    hooks,
    check: (): Readiness => {
      const all = wrong();
      return {
        ready: all.length === 0,
        reasons: lines(all),
        causes: [...new Set(all.map(({ cause }) => cause))],
      };
    },
  };
}

interface ReadinessProblem {
  readonly cause: Cause;
  readonly what: string;
  readonly since?: number;
  readonly error?: string;
  readonly resource?: Resource;
}

const WHAT: Readonly<Partial<Record<Cause, string>>> = {
  login: 'waiting for the login',
  kafka: 'waiting for Kafka',
  registry: 'waiting for the schema registry',
  api: 'waiting for the API',
  state: 'waiting for the state folder',
  failed: "can't go on",
};

function problemOfWait({ cause, since, error }: ActiveProblem): ReadinessProblem {
  return { cause, what: WHAT[cause] ?? cause, since, error: describeError(error) };
}

/**
 * Formats the problems of a service as lines of text. Lists with the same problem share a line, with the earliest time. Errors that differ
 * only in the path of their list count as the same, and the first list's error is shown.
 */
function lines(all: readonly ReadinessProblem[]): string[] {
  const alike = new Map<string, ReadinessProblem[]>();
  for (const one of all) {
    const path = one.resource === undefined ? '' : RULES[one.resource].path;
    const name = JSON.stringify([one.what, one.error?.replace(path, '')]);
    alike.set(name, [...(alike.get(name) ?? []), one]);
  }
  return [...alike.values()].map((group) => {
    const { what, error } = group[0]!;
    const names = group.flatMap(({ resource }) => resource ?? []).join(', ');
    const since = Math.min(...group.map((one) => one.since ?? Infinity));
    const time = since === Infinity ? '' : ` since ${new Date(since).toISOString().slice(0, 19)}Z`;
    return (names && `${names}: `) + what + time + (error === undefined ? '' : `: ${error}`);
  });
}

/** Returns the cause for `what` of an `onRetry` event, which names what is retried: a service, `state folder`, or a list of the API. */
export function causeOf(what: string): 'login' | 'kafka' | 'registry' | 'state' | 'api' {
  if (what === 'state folder') return 'state';
  return what === 'login' || what === 'kafka' || what === 'registry' ? what : 'api';
}
