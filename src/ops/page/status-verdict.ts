// The verdict at the top of a page: whether the service is ready, what is wrong, or since when the connection to it is down.

import type { ResourceStatus, Status, Warning } from '../status/status-json.ts';
import { duration, plural, since, timeOfDay } from './words.ts';

/** State of a status page's connection to the service. The connection is live while status events arrive. */
export type ConnectionState =
  | { readonly isLive: true }
  | {
      readonly isLive: false;
      /** When the last status event arrived, in epoch ms by the browser's clock. Before the first event: when the page was opened. */
      readonly since: number;
      /** Whether the service responds to requests although its status events do not arrive. */
      readonly isReachable: boolean;
      /** Error with which the service refuses to return the status, for example because the account runs on another instance. */
      readonly refusal?: string | undefined;
    };

export type Tone = 'good' | 'warn' | 'busy' | 'bad' | 'lost';

/** Summary at the top of a status page. */
export interface Verdict {
  readonly tone: Tone;
  readonly headline: string;
  readonly subline: string;
  /** Descriptions of the problems, the most severe first. */
  readonly problems: readonly Wrong[];
}

export interface Wrong {
  readonly level: 'bad' | 'busy' | 'warning';
  readonly where: string;
  readonly text: string;
  readonly when: string;
}

/**
 * Computes the summary of a service from its newest status. Without a connection to the service, the summary says so and includes the last
 * known problems.
 */
export function verdictOf(status: Status | undefined, connection: ConnectionState): Verdict {
  const problems = status ? problemsOf(status) : [];
  if (!connection.isLive) return { ...disconnectedVerdict(status?.at, connection), problems };
  if (!status) return { tone: 'busy', headline: 'Listening', subline: '', problems };
  if (!status.ready) {
    const isStarting = isOnlyStarting(status);
    return {
      tone: isStarting ? 'busy' : 'bad',
      headline: isStarting ? 'Starting: not caught up yet' : `Not ready: ${titleOf(status.causes)}`,
      subline: 'The topics may lack changes that the API shows.',
      problems,
    };
  }
  const ages = status.resources.flatMap(({ lookedAt }) =>
    lookedAt === null ? [] : status.at - lookedAt,
  );
  const oldest =
    ages.length > 0
      ? `; every list was checked in the last ${duration(Math.max(1_000, ...ages))}`
      : '';
  const doubts = [...new Set(status.warnings.flatMap(({ kind }) => DOUBTS[kind] ?? []))];
  return {
    ...(doubts.length > 0
      ? { tone: 'warn', headline: `Ready, but ${doubts.join(', ')}` }
      : { tone: 'good', headline: 'Ready: the topics say what the API says' }),
    subline: `${freshnessOf(status)}${oldest}.${initialSnapshots(status)}`,
    problems,
  };
}

function freshnessOf({ resources }: Status): string {
  const medians = resources.flatMap(({ resource, freshness }) =>
    freshness.p50Ms === null ? [] : [{ resource, ms: freshness.p50Ms }],
  );
  const [first] = medians;
  if (first) {
    return `Half of all changes of ${first.resource} are published within ${duration(first.ms)}`;
  }
  // How late a change was published is known only of records with a modification time.
  const events = Math.round(resources.reduce((sum, each) => sum + eventsOf(each), 0));
  return events === 0
    ? 'Nothing has changed in the last five minutes'
    : `Published in the last five minutes: ${plural(events, 'event')}`;
}

function eventsOf({ series }: ResourceStatus): number {
  const perSecond = series.eventsPerSecond.reduce((sum, each) => sum + each, 0);
  return (perSecond * series.everyMs) / 1_000;
}

function initialSnapshots({ resources }: Status): string {
  const running = resources.filter(({ firstRead }) => firstRead?.done === false);
  if (running.length === 0) return '';
  return ` Initial snapshots still run: ${running.map(({ resource }) => resource).join(', ')}.`;
}

/**
 * Phrases for the headline of a ready service, by the kind of a warning. Only kinds that mean that the published data may differ from the
 * API's have a phrase.
 */
const DOUBTS: Readonly<Partial<Record<Warning['kind'], string>>> = {
  'deletions-held': 'deletions are held back',
  'deletions-unknown': 'deletions may be missing',
  'list-unsettled': 'records may be missing',
  'list-cut': 'a list seems to be cut off',
  'dead-letters': 'some records could not be published',
};

const CAUSES: Readonly<Record<string, string>> = {
  login: 'no login',
  kafka: 'waiting for Kafka',
  registry: 'waiting for the schema registry',
  api: 'waiting for the API',
  state: 'waiting for the state folder',
  failed: "a resource can't go on",
  starting: 'not caught up yet',
  stale: 'data has gone stale',
};

export function titleOf(causes: readonly string[]): string {
  return causes.map((cause) => CAUSES[cause] ?? cause).join(', ');
}

function isOnlyStarting({ causes }: Status): boolean {
  return causes.every((cause) => cause === 'starting');
}

function problemsOf(status: Status): Wrong[] {
  const level = isOnlyStarting(status) ? 'busy' : 'bad';
  const reasons = status.reasons.map((text): Wrong => ({ level, where: '', text, when: '' }));
  const warnings = status.warnings.map(({ resource, text, at }): Wrong => ({
    level: 'warning',
    where: resource ?? '',
    text,
    when: ` ${since(at, status.at)}`,
  }));
  return [...reasons, ...warnings];
}

/**
 * Returns the summary that a status page shows while it receives no updates from the service.
 *
 * @param at Time of the last received status, in epoch ms by the service's clock. Undefined if none was received.
 */
export function disconnectedVerdict(
  at: number | undefined,
  connection: Extract<ConnectionState, { isLive: false }>,
): Pick<Verdict, 'tone' | 'headline' | 'subline'> {
  // Times on the page are by the service's clock; the browser's is used only while no status was received.
  const since = timeOfDay(at ?? connection.since);
  const asOf = (time: string) => (at === undefined ? '' : `The figures below are as of ${time}. `);
  const lost = (headline: string, text: string) => {
    return { tone: 'lost', headline, subline: `${text}This page tries again by itself.` } as const;
  };
  if (connection.refusal !== undefined) {
    return lost('This account does not run here', `${connection.refusal}. ${asOf(since)}`);
  }
  return connection.isReachable
    ? lost(
        `Not live: as of ${since}`,
        `The service answers, but its updates do not reach this page: too many pages may be open, or a proxy may hold them back. ${asOf('then')}`,
      )
    : lost(
        `No word from the service since ${since}`,
        `${at === undefined ? '' : 'The connection is lost. '}${asOf('then')}`,
      );
}
