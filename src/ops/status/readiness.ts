import { describeError } from '../../core/errors.ts';
import type { Hooks } from '../../observe/hooks.ts';
import { RULES } from '../../resources/resources.ts';
import type { Resource } from '../../resources/resources.ts';
import { Looks } from './hook-figures.ts';

/** Why a service is not ready: a code that stays the same from release to release. */
export type Cause =
  /** There was no login yet, or the next one fails. */
  | 'login'
  /** Kafka does not answer. */
  | 'kafka'
  /** The schema registry does not answer. */
  | 'registry'
  /** A list of the API does not answer, or not as it should. */
  | 'api'
  /** The state folder can't be read or written. */
  | 'state'
  /** A resource can't go on until somebody does something. */
  | 'failed'
  /** A resource is taken over, or has not caught up yet. */
  | 'starting'
  /** For too long no poll or sweep has ended. */
  | 'stale';

export interface Readiness {
  readonly ready: boolean;
  /** A line for each: what, since when, and the error's own line. Empty when it is ready. */
  readonly reasons: readonly string[];
  /** Of the reasons, each once, in their order. */
  readonly causes: readonly Cause[];
}

export interface ReadinessOptions {
  readonly resources: readonly Resource[];
  /** The clock: ms since the epoch, which never goes back. */
  readonly now: () => number;
  /** `POLL_INTERVAL_MS`. Default 0: as often as the quota lets. */
  readonly pollIntervalMs?: number | undefined;
}

/**
 * A resource is stale when it was looked at last this many poll intervals ago, or this many times as long ago as the look before that one.
 */
const STALE_POLLS = 3;
/** Least time after which a resource is stale, in ms. */
const LEAST_STALE_MS = 60_000;
/** What is mended within this time, in ms, was no wait. */
const GRACE_MS = 2_000;
/** A transaction that takes longer, in ms, says that Kafka does not answer. */
export const MAX_COMMIT_MS = 10_000;

interface Trouble {
  readonly cause: Cause;
  readonly since: number;
  readonly error: unknown;
}

interface ResourceState {
  isOpen: boolean;
  trouble?: Trouble | undefined;
  /** When it was taken over. */
  openedAt?: number;
  /** When the transaction under way was begun. */
  commitAt?: number | undefined;
  /** When it had been found out last what is new. */
  lookedAt?: number;
  /** From the look before that one, ms. */
  betweenMs: number;
}

/**
 * Whether consumers can rely on what is published: a service is ready when it is logged in, connected and caught up, waits for nobody, and
 * no resource has failed or gone stale.
 *
 * *Caught up* is a resource once somebody has looked, from beginning to end, what is new in it, and all of that is committed: from then on
 * a change is published soon after it can be seen. For a list that is polled that is the first complete poll. Its initial snapshot may run
 * on: it brings what is old, and what is new does not wait for it. For a list without dates, or one whose dates are of no use, only a
 * reading of the whole list tells what is new, so it is the first one that comes to its end: the initial snapshot or a sweep. An empty list
 * has nothing to catch up with.
 *
 * A page that is committed ends a wait, not the connection before it: what connects and then fails again has not come back.
 */
export function readiness({ resources, now, pollIntervalMs = 0 }: ReadinessOptions) {
  const looks = new Looks();
  let isLoggedIn = false;
  let login: Trouble | undefined;
  /** Of Kafka or the registry, for all resources: none is taken over before, or asked while the ledger can't be written. */
  let connection: Trouble | undefined;
  const states = new Map<string, ResourceState>(
    resources.map((resource) => [resource, { isOpen: false, betweenMs: 0 }]),
  );
  const update = (resource: string, change: Partial<ResourceState>) => {
    const state = states.get(resource);
    if (state) Object.assign(state, change);
  };
  const looked = (resource: string) => {
    const lookedAt = now();
    const { lookedAt: last, openedAt } = states.get(resource) ?? {};
    const before = last ?? openedAt ?? lookedAt;
    update(resource, { trouble: undefined, lookedAt, betweenMs: lookedAt - before });
  };
  const troubled = (before: Trouble | undefined, cause: Cause, error: unknown): Trouble => ({
    cause,
    since: before?.cause === cause ? before.since : now(),
    error,
  });
  const trouble = (resource: string, cause: Cause, error: unknown) =>
    update(resource, {
      trouble: troubled(states.get(resource)?.trouble, cause, error),
      ...(cause !== 'api' && { commitAt: undefined }), // a reading that fails ends no commit
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
    onDates: (found) => looks.dates(found),
    onCommit: ({ resource }) => update(resource, { commitAt: now() }),
    onPublished: (published) => {
      connection = undefined;
      update(published.resource, { trouble: undefined, commitAt: undefined });
      if (looks.isLook(published)) looked(published.resource);
    },
    onRetry: ({ what, resource, error }) => {
      if (what === 'login') login = troubled(login, 'login', error);
      else if (resource !== undefined) trouble(resource, causeOf(what), error);
      else connection = troubled(connection, causeOf(what), error);
    },
    onFailed: ({ resource, error }) => trouble(resource, 'failed', error),
  };

  const lasts = (trouble: Trouble | undefined): trouble is Trouble =>
    trouble !== undefined && (trouble.cause === 'failed' || now() - trouble.since > GRACE_MS);
  const staleMs = ({ betweenMs }: ResourceState) =>
    Math.max(LEAST_STALE_MS, STALE_POLLS * Math.max(pollIntervalMs, betweenMs));

  /** What is wrong with a resource: the first thing that has to be mended. */
  const wrongWith = (state: ResourceState): Wrong | undefined => {
    const { trouble, commitAt, isOpen, lookedAt } = state;
    if (lasts(trouble)) return wrongBy(trouble);
    if (commitAt !== undefined && now() - commitAt > MAX_COMMIT_MS) {
      return { cause: 'kafka', what: 'waiting for Kafka', since: commitAt, error: 'no answer' };
    }
    if (!isOpen) return { cause: 'starting', what: 'not taken over yet' };
    if (lookedAt === undefined) return { cause: 'starting', what: 'not caught up yet' };
    if (now() - lookedAt <= staleMs(state)) return undefined;
    return { cause: 'stale', what: 'no poll or sweep has ended', since: lookedAt };
  };
  /** What a wait for all of them does not explain: a list is not stale, or late to start, beside it. */
  const besides = ({ cause }: Trouble, { trouble }: ResourceState): Wrong | undefined =>
    lasts(trouble) && trouble.cause !== cause ? wrongBy(trouble) : undefined;
  const wrong = (): Wrong[] => {
    if (!isLoggedIn && lasts(login)) return [wrongBy(login)];
    if (lasts(connection) && !isLoggedIn) return [wrongBy(connection)]; // nobody logs in before Kafka has that
    if (!isLoggedIn) return [{ cause: 'starting', what: 'not logged in yet' }];
    const all: Wrong[] = lasts(login) ? [wrongBy(login)] : [];
    if (lasts(connection)) all.push(wrongBy(connection));
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

interface Wrong {
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

function wrongBy({ cause, since, error }: Trouble): Wrong {
  return { cause, what: WHAT[cause] ?? cause, since, error: describeError(error) };
}

/**
 * One line for what is wrong with several resources in the same way, since it was with the first. That
 * each error names its own list makes no difference: the first one's is told.
 */
function lines(all: readonly Wrong[]): string[] {
  const alike = new Map<string, Wrong[]>();
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

/** Who is waited for, by what `onRetry` names: a service, the folder, or a list of the API. */
export function causeOf(what: string): 'login' | 'kafka' | 'registry' | 'state' | 'api' {
  if (what === 'state folder') return 'state';
  return what === 'login' || what === 'kafka' || what === 'registry' ? what : 'api';
}
