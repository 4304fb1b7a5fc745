import type { Status, Warning } from '../status/status-json.ts';
import type { ConnectionState } from './connection-state.ts';
import { lostVerdict } from './lost-verdict.ts';
import type { Verdict, Wrong } from './verdict-type.ts';
import { duration, since } from './words.ts';

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
