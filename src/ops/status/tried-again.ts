import type { Hooks } from '../../observe/hooks.ts';
import type { Cause } from './readiness.ts';
import { errorLine } from './shortened.ts';
import type { Warning } from './status-json.ts';
import { times } from './times.ts';

/** What was tried again of late, and whether it is known to answer since. */
export interface TriedAgainModel {
  readonly hooks: Pick<
    Required<Hooks>,
    'onRetry' | 'onRequest' | 'onLogin' | 'onReady' | 'onPublished'
  >;
  /** One for each service, but for what the causes of not being ready say already. */
  readonly all: (causes: readonly Cause[]) => readonly Warning[];
}

/** Failed tries that are worth a word. */
export const MANY_RETRIES = 3;
const TOLD_FOR_MS = 10 * 60_000;
/**
 * A request that is made again may wait a minute for its place in the quota, or for its answer, before
 * it fails again.
 */
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

interface Told {
  readonly cause: Cause;
  readonly count: number;
  readonly error: unknown;
  readonly at: number;
}

/**
 * Several requests of one list are under way at a time, and nobody tells which of them failed: that one
 * is answered says nothing of another. So a list is said to answer when it has, after the pause of the
 * newest failed try, and no further one was told for as long again, and for a minute at least.
 *
 * @param now The clock: ms since the epoch, which never goes back.
 */
export function triedAgain(now: () => number): TriedAgainModel {
  /** By service: they are few. */
  const told = new Map<string, Told>();
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
    },
    all: (causes) => {
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
