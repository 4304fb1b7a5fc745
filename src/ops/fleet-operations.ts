import type { Config } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { VERSION } from '../core/version.ts';
import type { AccountFigures, FleetView } from '../observe/fleet-view.ts';
import type { Hooks } from '../observe/hooks.ts';
import { openHttpThread } from './http/http-thread.ts';
import { fleetMetrics } from './metrics/fleet-metrics.ts';
import { watchedAccount } from './operations.ts';
import type { WatchedAccount } from './operations.ts';
import { fleetReadiness } from './status/fleet-readiness.ts';
import { fleetStatus } from './status/fleet-status.ts';
import type { Readiness } from './status/readiness.ts';

interface FleetOperationsOptions {
  /** The instance's own. */
  readonly config: Config;
  /** `INSTANCE_NAME`. */
  readonly instance: string;
  /** Told of what goes wrong in here, a request or a hook. The instance goes on. */
  readonly onError: (error: unknown) => void;
}

/** All that an operator can ask of an instance of a fleet: of the fleet, and of each account that runs here. */
export interface FleetOperations {
  /** The hooks of an account that this instance runs from now on, until `end`. One of that name before it is ended. */
  readonly account: (config: Config) => AccountOperations;
  /** To be told what the instance knows of the fleet. */
  readonly onFleet: (view: FleetView) => void;
  /** An account came here from elsewhere: so long nobody had asked its API. */
  readonly onHandover: (handover: { readonly account: string; readonly elapsedMs: number }) => void;
  /** Another instance took an account that this one had not released. */
  readonly onFenced: (fenced: { readonly account: string }) => void;
  /** Of the instance: in the group, and its own accounts. */
  readonly check: () => Readiness;
  /** Where it is served. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

export interface AccountOperations {
  /** To be told of this account. */
  readonly hooks: Hooks;
  /** How it is now: to be told to the other instances. */
  readonly figures: () => AccountFigures;
  /** It does not run here any more: its series and its page are gone. */
  readonly end: () => void;
}

/**
 * Opens the operators' side of an instance, on `HTTP_HOST` and `HTTP_PORT`. It is there before the instance is in the
 * group. What is kept grows with the accounts that run here, and with nothing else.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openFleetOperations(
  options: FleetOperationsOptions,
): Promise<FleetOperations> {
  const { config, instance, onError } = options;
  const now = () => Math.round(steadyScheduler.now());
  const watched = new Map<string, WatchedAccount>();
  const ready = fleetReadiness({ accounts: watched, now });
  const measured = fleetMetrics({
    instance,
    isReady: () => ready.check().ready,
    accounts: () => new Map([...watched].map(([name, { metrics }]) => [name, metrics.registry])),
  });
  const model = fleetStatus({
    version: VERSION,
    prefix: config.topics.sharedPrefix,
    instance,
    now,
    readiness: ready.check,
    accounts: watched,
  });
  const server = await openHttpThread({
    ...config.http,
    answers: {
      alive: () => true,
      readiness: ready.check,
      status: () => JSON.stringify(model.status()),
      metrics: measured.text,
    },
    accountStatus: (name) => {
      const account = watched.get(name);
      return account
        ? { isHere: true, json: JSON.stringify(account.status()) }
        : { isHere: false, json: JSON.stringify(model.notHere(name)) };
    },
    metricsType: measured.contentType,
    onError,
  });
  return {
    account: (own) => {
      const account = watchedAccount(own, { ofProcess: false, onError });
      watched.set(own.account, account);
      return {
        hooks: account.hooks,
        figures: account.figures,
        // Not the one that came after it.
        end: () => void (watched.get(own.account) === account && watched.delete(own.account)),
      };
    },
    onFleet: (view) => {
      for (const { onFleet } of [ready, measured, model]) onFleet(view);
    },
    onHandover: measured.onHandover,
    onFenced: measured.onFenced,
    check: ready.check,
    ...server,
  };
}
