// Why a service is not ready: the codes of the causes, and the dependencies whose failure is one.

/** Codes for the reasons why a service is not ready. They are stable across releases. */
export const CAUSES = [
  /** Logging in to the API fails, whether for the first token or for a new one. */
  'login',
  /** Calls to Kafka fail, a transaction is open for too long, or the instance has dropped out of the fleet's group. */
  'kafka',
  /** Calls to the schema registry fail. */
  'registry',
  /** Requests for a list of the API fail. */
  'api',
  /** The state folder can't be read or written, or its contents are damaged. */
  'state',
  /** A list or, in a fleet, the whole account is stopped because of an error that an operator usually has to resolve. */
  'failed',
  /**
   * The service is starting: it still has to log in, to claim a list, or to catch up with a list. In a fleet also: to join the group, or to
   * start an assigned account.
   */
  'starting',
  /** One of the lists has not been checked for changes for too long: no poll was completed or, in a list without polls, no full scan. */
  'stale',
] as const;

export type Cause = (typeof CAUSES)[number];

export interface Readiness {
  readonly ready: boolean;
  /** Descriptions of the problems, one line each: what is wrong, since when, and the error's text. */
  readonly reasons: readonly string[];
  /** Codes of the reasons why the service is not ready, without duplicates. */
  readonly causes: readonly Cause[];
}

/** Causes that stand for a dependency, such as Kafka or the API: calls to it fail and are retried. */
export type Dependency = Exclude<Cause, 'failed' | 'starting' | 'stale'>;

/** Displayed names of the dependencies. */
export const DEPENDENCIES: Readonly<Record<Dependency, string>> = {
  login: 'the login',
  kafka: 'Kafka',
  registry: 'the schema registry',
  api: 'the API',
  state: 'the state folder',
};

/** Returns the dependency that the field `what` of an `onRetry` event names. The name of a list stands for the API. */
export function dependencyOf(what: string): Dependency {
  if (what === 'state folder') return 'state';
  return what === 'login' || what === 'kafka' || what === 'registry' ? what : 'api';
}
