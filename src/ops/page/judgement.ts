// The verdict at the top of a page: whether the service is ready, what is wrong, or since when nothing is heard of it.

import type { Status, Warning } from '../status/status-json.ts';
import { duration, since, timeOfDay } from './words.ts';

/** Whether the service is heard. */
export type ConnectionState =
  | { readonly isLive: true }
  | {
      readonly isLive: false;
      /** When something was heard last, ms on this machine's clock. */
      readonly since: number;
      /** Whether the service answers, and only does not tell this page each second what is new. */
      readonly answers: boolean;
      /** Why the service says that it can't tell what it is asked for: an account that runs elsewhere. */
      readonly refusal?: string | undefined;
    };

export type Tone = 'good' | 'warn' | 'busy' | 'bad' | 'lost';

/** What there is to say before anything else. */
export interface Verdict {
  readonly tone: Tone;
  readonly headline: string;
  readonly subline: string;
  /** What is wrong, in words; the severest first. */
  readonly wrong: readonly Wrong[];
}

export interface Wrong {
  readonly level: 'bad' | 'busy' | 'warning';
  readonly where: string;
  readonly text: string;
  readonly when: string;
}

/** What is wrong, or that nothing is; of a status as old as the connection is lost. */
export function verdictOf(status: Status | undefined, connection: ConnectionState): Verdict {
  const wrong = status ? wrongOf(status) : [];
  if (!connection.isLive) return { ...lostVerdict(status?.at, connection), wrong };
  if (!status) return { tone: 'busy', headline: 'Listening', subline: '', wrong };
  if (!status.ready) {
    const isStarting = isOnlyStarting(status);
    return {
      tone: isStarting ? 'busy' : 'bad',
      headline: isStarting ? 'Starting: not caught up yet' : `Not ready: ${titleOf(status.causes)}`,
      subline: 'The topics may lack changes that the API shows.',
      wrong,
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
    subline: `${freshnessOf(status)}${oldest}.${firstReads(status)}`,
    wrong,
  };
}

function freshnessOf({ resources }: Status): string {
  const medians = resources.flatMap(({ resource, freshness }) =>
    freshness.p50Ms === null ? [] : [{ resource, ms: freshness.p50Ms }],
  );
  if (medians.length === 0) return 'Nothing has changed in the last five minutes';
  const orders = medians.find(({ resource }) => resource === 'orders') ?? medians[0]!;
  return `Half of all changes of ${orders.resource} are published within ${duration(orders.ms)}`;
}

function firstReads({ resources }: Status): string {
  const reading = resources.filter(({ firstRead }) => firstRead?.done === false);
  if (reading.length === 0) return '';
  return ` Initial snapshots still run: ${reading.map(({ resource }) => resource).join(', ')}.`;
}

/** Why what is published may differ from what the API says, although the service goes on. */
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

/** Why something is not ready, in a few words. */
export function titleOf(causes: readonly string[]): string {
  return causes.map((cause) => CAUSES[cause] ?? cause).join(', ');
}

function isOnlyStarting({ causes }: Status): boolean {
  return causes.every((cause) => cause === 'starting');
}

function wrongOf(status: Status): Wrong[] {
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
 * What there is to say when nothing is heard.
 *
 * @param at When the service told last, on its own clock; undefined when it never did.
 */
export function lostVerdict(
  at: number | undefined,
  connection: Extract<ConnectionState, { isLive: false }>,
): Pick<Verdict, 'tone' | 'headline' | 'subline'> {
  // On one clock: the service's, if it has ever told a time.
  const since = timeOfDay(at ?? connection.since);
  const old = at === undefined ? '' : 'The figures below are as of then. ';
  if (connection.refusal !== undefined) {
    return {
      tone: 'lost',
      headline: 'This account does not run here',
      subline: `${connection.refusal}. ${at === undefined ? '' : `The figures below are as of ${since}. `}This page tries again by itself.`,
    };
  }
  return connection.answers
    ? {
        tone: 'lost',
        headline: `Not live: as of ${since}`,
        subline: `The service answers, but its updates do not reach this page: too many pages may be open, or a proxy may hold them back. ${old}This page tries again by itself.`,
      }
    : {
        tone: 'lost',
        headline: `No word from the service since ${since}`,
        subline: `${at === undefined ? '' : 'The connection is lost. '}${old}This page tries again by itself.`,
      };
}
