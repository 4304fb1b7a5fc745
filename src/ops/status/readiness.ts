import { describeError } from '../../core/errors.ts';
import type { Hooks } from '../../observe/hooks.ts';
import { hasLogin } from '../../description/credentials.ts';
import { listNamed } from '../../description/description.ts';
import type { ApiDescription, Resource } from '../../description/description.ts';
import { DEPENDENCIES, dependencyOf } from './causes.ts';
import type { Cause, Dependency, Readiness } from './causes.ts';
import { ChangeScans } from './hook-figures.ts';

export interface ReadinessOptions {
  readonly description: ApiDescription;
  readonly resources: readonly Resource[];
  /** Returns the current time, in epoch ms, by a clock that never goes back. */
  readonly now: () => number;
  /** Setting `POLL_INTERVAL_MS`. 0: polls as often as the quota allows. */
  readonly pollIntervalMs: number;
}

/**
 * Number of intervals without a completed scan after which a list counts as stale. The interval is the poll interval or, if longer, the
 * time between the last two scans.
 */
const STALE_POLLS = 3;
/** Minimum time without a completed scan after which a list counts as stale, in ms, even if {@link STALE_POLLS} intervals are shorter. */
const LEAST_STALE_MS = 60_000;
/** How long calls to a dependency (such as the API or Kafka) may fail before the service counts as not ready, in ms. */
const GRACE_MS = 2_000;
/** Duration of an open transaction after which Kafka counts as not responding, in ms. */
export const MAX_COMMIT_MS = 10_000;

interface ActiveProblem {
  readonly cause: Dependency | 'failed';
  readonly since: number;
  readonly error: unknown;
}

interface ListState {
  problem?: ActiveProblem | undefined;
  /** When the service last claimed the list, in epoch ms. Undefined if it has not claimed it yet. */
  openedAt?: number;
  /** When the list's open Kafka transaction began, in epoch ms. Undefined while no transaction is open. */
  transactionBeganAt?: number | undefined;
  /**
   * When the list was last checked for all changes, in epoch ms: by a poll or, in a list without polls, a full scan. Undefined before that.
   */
  lastScanAt?: number;
  /**
   * Time from the previous value of `lastScanAt` to the current one, in ms. For the first value: time from the claim of the list. 0 while
   * there is none.
   */
  previousIntervalMs: number;
}

/**
 * Computes the readiness of a service: whether consumers can rely on what is published. A service is ready if all of this holds:
 *
 * - It is logged in to the API.
 * - It has claimed each of its lists and caught up with it.
 * - No calls to the API or another dependency have been failing for longer than `GRACE_MS`.
 * - None of its Kafka transactions has been open for longer than {@link MAX_COMMIT_MS}.
 * - None of its lists has failed or is stale, and serving the account has not ended with an error.
 *
 * The service has *caught up* with a list once the list's first complete poll is committed (in a list without polls: the first full scan).
 * An empty list counts as caught up.
 *
 * Failures end as follows:
 *
 * - A failure of one list ends when the next page of the list is processed, or when the list is read as empty.
 * - A failure that affects all lists ends when a page of any list is processed, or when any list is claimed.
 * - A failure of the login ends with a successful login.
 */
export class ReadinessCheck {
  readonly #options: ReadinessOptions;
  readonly #scans: ChangeScans;
  readonly #lists: ReadonlyMap<string, ListState>;
  #isLoggedIn: boolean;
  #login: ActiveProblem | undefined;
  /**
   * Current problem that affects all lists, mostly with Kafka: the account can't be claimed, or requests can't be declared in the ledger.
   * In a fleet also: serving the account has ended with an error.
   */
  #connection: ActiveProblem | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = options;
    this.#isLoggedIn = !hasLogin(options.description);
    this.#scans = new ChangeScans(options.description);
    this.#lists = new Map(
      options.resources.map((resource) => [resource, { previousIntervalMs: 0 }]),
    );
  }

  // A new connection ends no problem, because the next call on that connection may fail again.
  readonly hooks: Hooks = {
    onLogin: () => {
      this.#isLoggedIn = true;
      this.#login = undefined;
    },
    onReady: ({ resource }) => {
      this.#connection = undefined;
      this.#update(resource, { openedAt: this.#options.now() });
    },
    onEmpty: ({ resource }) => this.#scanned(resource),
    onDates: (found) => this.#scans.updateDates(found),
    onCommit: ({ resource }) => this.#update(resource, { transactionBeganAt: this.#options.now() }),
    onPublished: (published) => {
      this.#connection = undefined;
      this.#update(published.resource, { problem: undefined, transactionBeganAt: undefined });
      if (this.#scans.findsAllChanges(published)) this.#scanned(published.resource);
    },
    onRetry: ({ what, resource, error }) => {
      const cause = dependencyOf(what);
      if (cause === 'login') this.#login = this.#goesOn(this.#login, cause, error);
      else if (resource !== undefined) this.#fails(resource, cause, error);
      else this.#connection = this.#goesOn(this.#connection, cause, error);
    },
    onFailed: ({ resource, error }) => this.#fails(resource, 'failed', error),
  };

  /** Records that serving the account has ended with an error: none of its lists is read until the account is served again. */
  accountFailed(error: unknown): void {
    this.#login = undefined; // the login is not retried
    for (const resource of this.#lists.keys())
      this.#update(resource, { transactionBeganAt: undefined });
    this.#connection = this.#goesOn(this.#connection, 'failed', error);
  }

  readonly check = (): Readiness => {
    const all = this.#problems();
    return {
      ready: all.length === 0,
      reasons: lines(all, this.#options.description),
      causes: [...new Set(all.map(({ cause }) => cause))],
    };
  };

  #update(resource: string, change: Partial<ListState>): void {
    const state = this.#lists.get(resource);
    if (state) Object.assign(state, change);
  }

  #scanned(resource: string): void {
    const now = this.#options.now();
    const { lastScanAt, openedAt } = this.#lists.get(resource) ?? {};
    const previousIntervalMs = now - (lastScanAt ?? openedAt ?? now);
    this.#update(resource, { problem: undefined, lastScanAt: now, previousIntervalMs });
  }

  #fails(resource: string, cause: ActiveProblem['cause'], error: unknown): void {
    this.#update(resource, {
      problem: this.#goesOn(this.#lists.get(resource)?.problem, cause, error),
      ...(cause !== 'api' && { transactionBeganAt: undefined }), // a failed API request does not end a transaction
    });
  }

  /**
   * Returns the problem after an error. If the previous problem, `before`, has the same cause, its start time is kept. Otherwise the
   * problem begins now.
   */
  #goesOn(
    before: ActiveProblem | undefined,
    cause: ActiveProblem['cause'],
    error: unknown,
  ): ActiveProblem {
    return { cause, since: before?.cause === cause ? before.since : this.#options.now(), error };
  }

  #problems(): ReadinessProblem[] {
    const [login, connection] = [this.#ifLasting(this.#login), this.#ifLasting(this.#connection)];
    if (!this.#isLoggedIn) {
      const waitsFor = login ?? connection; // logins are declared in Kafka first
      return [
        waitsFor ? problemOfWait(waitsFor) : { cause: 'starting', what: 'not logged in yet' },
      ];
    }
    const all: ReadinessProblem[] = [login, connection].flatMap((each) =>
      each ? problemOfWait(each) : [],
    );
    for (const resource of this.#options.resources) {
      const state = this.#lists.get(resource)!;
      const problem = this.#problemOf(state, connection);
      if (problem) all.push({ ...problem, resource });
    }
    return all;
  }

  /**
   * Returns the most important problem of one list. Undefined if the list has none, or if its problem may be due to `connection`, a current
   * problem that affects all lists.
   */
  #problemOf(
    state: ListState,
    connection: ActiveProblem | undefined,
  ): ReadinessProblem | undefined {
    const { transactionBeganAt, openedAt, lastScanAt, previousIntervalMs } = state;
    const problem = this.#ifLasting(state.problem);
    if (problem && problem.cause !== connection?.cause) return problemOfWait(problem);
    if (connection) return undefined; // the causes below follow from it
    const now = this.#options.now();
    if (transactionBeganAt !== undefined && now - transactionBeganAt > MAX_COMMIT_MS) {
      return problemOfWait({ cause: 'kafka', since: transactionBeganAt, error: 'no answer' });
    }
    if (openedAt === undefined) return { cause: 'starting', what: 'not claimed yet' };
    if (lastScanAt === undefined) return { cause: 'starting', what: 'not caught up yet' };
    const intervalMs = Math.max(this.#options.pollIntervalMs, previousIntervalMs);
    if (now - lastScanAt <= Math.max(LEAST_STALE_MS, STALE_POLLS * intervalMs)) return undefined;
    return { cause: 'stale', what: 'no poll or sweep has ended', since: lastScanAt };
  }

  #ifLasting(problem: ActiveProblem | undefined): ActiveProblem | undefined {
    if (!problem || problem.cause === 'failed') return problem;
    return this.#options.now() - problem.since > GRACE_MS ? problem : undefined;
  }
}

interface ReadinessProblem {
  readonly cause: Cause;
  readonly what: string;
  readonly since?: number;
  readonly error?: string;
  readonly resource?: Resource;
}

function problemOfWait({ cause, since, error }: ActiveProblem): ReadinessProblem {
  const what = cause === 'failed' ? "can't go on" : `waiting for ${DEPENDENCIES[cause]}`;
  return { cause, what, since, error: describeError(error) };
}

/** Formats problems as lines. Lists with the same problem share a line, which has the earliest of their start times. */
function lines(all: readonly ReadinessProblem[], description: ApiDescription): string[] {
  const alike = new Map<string, ReadinessProblem[]>();
  for (const one of all) {
    const path = one.resource === undefined ? '' : listNamed(description, one.resource).path;
    // Errors that differ only in the path of their list count as the same.
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
