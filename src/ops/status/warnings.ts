// Warnings of a service that goes on all the same: what its hooks tell of lists, deletions and resyncs, and what was tried again too often.

import { cutText } from '../../observe/cut-text.ts';
import type { Hooks } from '../../observe/hooks.ts';
import { datesText } from '../../streams/paging/list-dates.ts';
import type { ScanTrouble } from '../../streams/paging/pages.ts';
import { tellsWhatIsGone } from './hook-figures.ts';
import type { Cause } from './readiness.ts';
import { errorLine, fewNames, MAX_ERROR, shortened } from './shortened.ts';
import type { Warning } from './status-json.ts';

const A_MINUTE_MS = 60_000;
const TEN_MINUTES_MS = 10 * A_MINUTE_MS;
const AN_HOUR_MS = 60 * A_MINUTE_MS;
/** Sweeps in a row that prove nothing, for ten minutes, are worth a word. */
const SWEEPS_IN_DOUBT = 3;

interface Told extends Warning {
  /** What more it is about than its kind and resource. */
  readonly of: string;
  readonly until: number;
  readonly count: number;
}

/**
 * What is not right although the service goes on, in words. Each is there for as long as it holds; where nobody tells when that ends, for
 * ten minutes or an hour from when it was told last.
 *
 * @param now The clock: ms since the epoch, which never goes back.
 */
export function warnings(now: () => number) {
  /** One for each kind and resource, and trouble or service: they are few. */
  const told = new Map<string, Told>();
  const doubts = new Map<string, { readonly since: number; readonly sweeps: number }>();
  /** Resources whose running sweep was held. */
  const held = new Set<string>();

  const retries = triedAgain(now);

  interface Telling extends Pick<Warning, 'kind' | 'resource'> {
    readonly of?: string;
    readonly forMs: number;
    readonly text: (count: number) => string;
  }
  const tell = ({ kind, resource, of = '', forMs, text }: Telling) => {
    const id = `${kind} ${resource ?? ''} ${of}`;
    const before = told.get(id);
    const count = before && before.until > now() ? before.count + 1 : 1;
    const at = now();
    told.set(id, { kind, resource, of, text: text(count), at, until: at + forMs, count });
  };
  const isOver = (kind: Warning['kind'], resource: string) => told.delete(`${kind} ${resource} `);

  return {
    hooks: {
      ...retries.hooks,
      onHeld: ({ resource, gone, known }) => {
        held.add(resource);
        tell({
          kind: 'deletions-held',
          resource,
          forMs: Infinity,
          text: () =>
            `${gone} of ${known} records are gone at once, so no deletion is published. If they are really gone, set DELETE_LIMIT_PERCENT to 100 until the deletions are published`,
        });
      },
      onSwept: ({ resource, proof, canBeAsked }) => {
        if (!held.delete(resource)) isOver('deletions-held', resource);
        const isProven = tellsWhatIsGone({ proof, canBeAsked });
        if (isProven) {
          doubts.delete(resource);
          isOver('deletions-unknown', resource);
          return;
        }
        const { since, sweeps } = doubts.get(resource) ?? { since: now(), sweeps: 0 };
        doubts.set(resource, { since, sweeps: sweeps + 1 });
        if (sweeps + 1 < SWEEPS_IN_DOUBT || now() - since < TEN_MINUTES_MS) return;
        tell({
          kind: 'deletions-unknown',
          resource,
          forMs: Infinity,
          text: () =>
            'no sweep has read as many keys as total_records says, nor can the order of the list prove that it has read all: deletions from this list are not published',
        });
      },
      onRefused: ({ resource, error }) =>
        tell({
          kind: 'not-asked',
          resource,
          forMs: AN_HOUR_MS,
          text: (count) =>
            `${times(count)} the refetch of a single record failed: ${errorLine(error)}`,
        }),
      onDiscarded: ({ reason }) =>
        tell({
          kind: 'images-discarded',
          resource: null,
          forMs: AN_HOUR_MS,
          text: () =>
            `the stored images were damaged or in doubt, and are rebuilt from Kafka: ${shortened(reason, MAX_ERROR)}`,
        }),
      onTrouble: ({ resource, trouble, offset }) =>
        tell({
          kind: KINDS[trouble] ?? 'list-moved',
          resource,
          of: trouble,
          forMs: FOR_MS[trouble] ?? TEN_MINUTES_MS,
          text: (count) =>
            trouble === 'cut' ? cutText(offset) : `${TROUBLES[trouble]} (${times(count)})`,
        }),
      onVolatile: ({ resource, fields }) => {
        const names = fewNames(fields);
        tell({
          kind: 'volatile-fields',
          resource,
          of: names.join(),
          forMs: Infinity,
          text: () =>
            `differs in every answer: ${names.join(', ')}. Anchors leave it out. If its change alone shall be no event, set VOLATILE_FIELDS=${names.map((name) => `${resource}:${name}`).join()}`,
        });
      },
      onDates: ({ resource, ...found }) => {
        const text = datesText(found);
        if (text === undefined) return void isOver('dates', resource);
        tell({ kind: 'dates', resource, forMs: Infinity, text: () => text });
      },
      onRejected: ({ resource, reason }) =>
        tell({
          kind: 'dead-letters',
          resource,
          of: reason,
          forMs: AN_HOUR_MS,
          text: (count) =>
            `${count === 1 ? 'a record' : `${count} records`} went to dead letters: ${reason}`,
        }),
      onSignalsFailed: ({ error, delayMs }) =>
        tell({
          kind: 'signals',
          resource: null,
          forMs: delayMs + A_MINUTE_MS,
          text: () => `resync requests can't be read or answered: ${errorLine(error)}`,
        }),
    } satisfies Hooks,
    /** The newest first; without what the causes of not being ready say already. */
    all: (causes: readonly Cause[]): readonly Warning[] => {
      for (const [id, { until }] of told) if (until <= now()) told.delete(id);
      const lasting = [...told.values()]
        .filter(({ kind, count }) => kind !== 'signals' || count >= MANY_RETRIES)
        .map(({ kind, resource, text, at }) => ({ kind, resource, text, at }));
      return [...lasting, ...retries.all(causes)].sort((a, b) => b.at - a.at);
    },
  };
}

const KINDS: Readonly<Partial<Record<ScanTrouble, Warning['kind']>>> = {
  unsettled: 'list-unsettled',
  cut: 'list-cut',
};

/** A list with dates is read whole once a day or so: between two readings a cut is still there. */
const FOR_MS: Readonly<Partial<Record<ScanTrouble, number>>> = {
  'stepped-back': A_MINUTE_MS,
  cut: 24 * AN_HOUR_MS,
};

const TROUBLES: Readonly<Record<Exclude<ScanTrouble, 'cut'>, string>> = {
  'stepped-back': 'the list moved while it was read; the reading steps back, and nothing is lost',
  adrift: 'the list moves faster than it is read: the reading begins again',
  reordered: 'records change their places from request to request: the list has no total order',
  short: 'fewer records came than total_records says: the list is read again',
  unsettled: 'each reading of the list is short, or out of order: records may be missing',
  endless: 'the API claims a next page although nothing new comes: the reading ends there',
  gap: 'every page that holds a certain record fails: the record is left out and tried again later; its dead letter says where it stands',
  misplaced: 'the API begins pages elsewhere than asked: the list is read in whole pages',
  blind:
    'the API ignores pageSize and moves offset, so pages can not overlap: only the count of records shows that none was missed',
  smaller: 'large pages fail: smaller ones are asked for',
};

/** Failed tries that are worth a word. */
const MANY_RETRIES = 3;
const TOLD_FOR_MS = 10 * 60_000;
/** A request that is made again may wait a minute for its place in the quota, or for its answer, before it fails again. */
const SILENCE_MS = 60_000;

/** A try that failed, of which it is not known whether it was made well since. */
interface Open {
  readonly service: string;
  readonly what: string;
  readonly resource: string | undefined;
  /** When the pause ends, and until when silence says nothing. */
  readonly nextAt: number;
  readonly silentUntil: number;
  /** Whether a list that was asked again has answered since: perhaps another request than the failed one. */
  readonly answered: boolean;
}

interface Tried {
  readonly cause: Cause;
  readonly count: number;
  readonly error: unknown;
  readonly at: number;
}

/**
 * What was tried again of late, and whether it is known to answer since. Several requests of one list are under way at a time, and nobody
 * tells which of them failed: that one is answered says nothing of another. So a list is said to answer when it has, after the pause of the
 * newest failed try, and no further one was told for as long again, and for a minute at least.
 *
 * @param now The clock: ms since the epoch, which never goes back.
 */
function triedAgain(now: () => number) {
  /** By service: they are few. */
  const told = new Map<string, Tried>();
  /** By what is tried again, and the resource. */
  const open = new Map<string, Open>();
  const close = (isClosed: (one: Open) => boolean) => {
    for (const [id, one] of open) if (isClosed(one)) open.delete(id);
  };
  const answers = (service: string) => {
    close(({ answered, silentUntil }) => answered && silentUntil <= now());
    return ![...open.values()].some((one) => one.service === service);
  };

  return {
    hooks: {
      onRetry: ({ what, resource, error, delayMs }) => {
        const at = now();
        const { name: service, cause } = SERVICES[what] ?? API;
        const nextAt = at + delayMs;
        const silentUntil = nextAt + Math.max(delayMs, SILENCE_MS);
        open.set(`${what} ${resource ?? ''}`, {
          service,
          what,
          resource,
          nextAt,
          silentUntil,
          answered: false,
        });
        const before = told.get(service);
        const count = before && before.at + TOLD_FOR_MS > at ? before.count + 1 : 1;
        told.set(service, { cause, count, error, at });
      },
      onRequest: ({ what, status = 0 }) => {
        if (status < 200 || status > 299) return;
        for (const [id, one] of open) {
          if (one.what === what && one.nextAt <= now()) open.set(id, { ...one, answered: true });
        }
      },
      onLogin: () => close(({ what }) => what === 'login'),
      onReady: () => close(({ what, resource }) => what !== 'login' && resource === undefined),
      // What is committed says all of Kafka, registry and folder, and nothing of requests to come.
      onPublished: (published) =>
        close(
          ({ what, resource = published.resource }) =>
            resource === published.resource && what !== 'login' && what in SERVICES,
        ),
    } satisfies Hooks,
    /** One for each service, but for what the causes of not being ready say already. */
    all: (causes: readonly Cause[]): readonly Warning[] => {
      for (const [service, { at }] of told) if (at + TOLD_FOR_MS <= now()) told.delete(service);
      return [...told]
        .filter(([, { count, cause }]) => count >= MANY_RETRIES && !causes.includes(cause))
        .map(([service, { count, error, at }]) => ({
          kind: 'tried-again',
          resource: null,
          text: `${service} was tried again ${times(count)}${answers(service) ? ' and answers now' : ''}; the last error: ${errorLine(error)}`,
          at,
        }));
    },
  };
}

interface Service {
  /** As people call it. */
  readonly name: string;
  /** Of not being ready, when it does not answer. */
  readonly cause: Cause;
}

/** What is retried; what is none of these is a list of the API. */
const SERVICES: Readonly<Record<string, Service>> = {
  login: { name: 'the login', cause: 'login' },
  kafka: { name: 'Kafka', cause: 'kafka' },
  registry: { name: 'the schema registry', cause: 'registry' },
  'state folder': { name: 'the state folder', cause: 'state' },
};
const API: Service = { name: 'the API', cause: 'api' };

/** `once`, `2 times`. */
function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
