import type { Config } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { VERSION } from '../core/version.ts';
import type { AccountFigures, FleetView } from '../observe/fleet-view.ts';
import type { Hooks } from '../observe/hooks.ts';
import { openHttpThread } from './http/http-thread.ts';
import { fleetMetrics } from './metrics/fleet-metrics.ts';
import { observedAccount } from './operations.ts';
import type { ObservedAccount } from './operations.ts';
import { FleetReadiness } from './status/fleet-readiness.ts';
import { FleetStatusModel } from './status/fleet-status.ts';
import type { Readiness } from './status/readiness.ts';

interface FleetOperationsOptions {
  /** Configuration of the instance, not of one of its accounts. */
  readonly config: Config;
  /** Setting `INSTANCE_NAME`. */
  readonly instance: string;
  /** Called with each error in handling an HTTP request, and with the first error of each hook. The instance continues. */
  readonly onError: (error: unknown) => void;
}

/** An operator's view of an instance of a fleet: metrics and status of the fleet, and of each account that runs on this instance. */
export interface FleetOperations {
  /**
   * Adds metrics and a status page for an account that this instance starts to run; they replace those of an earlier account of the same
   * name.
   */
  readonly account: (config: Config) => AccountOperations;
  readonly onFleet: (view: FleetView) => void;
  /** Records that an account has moved to this instance; `elapsedMs`: until its first response here. */
  readonly onHandover: (handover: { readonly account: string; readonly elapsedMs: number }) => void;
  /** Records that another instance has claimed an account that this one had not released. */
  readonly onFenced: (fenced: { readonly account: string }) => void;
  readonly check: () => Readiness;
  readonly url: string;
  readonly close: () => Promise<void>;
}

export interface AccountOperations {
  readonly hooks: Hooks;
  /** Returns the few figures of the account that other instances of the fleet receive. */
  readonly figures: () => AccountFigures;
  /** Removes the account's metrics and status page. */
  readonly end: () => void;
}

/**
 * Serves metrics, health checks and status pages of an instance of a fleet on `HTTP_HOST` and `HTTP_PORT`. Opened before the instance joins
 * the fleet's group. Metric series and status pages exist only for the accounts that run on this instance.
 *
 * @throws CellarstreamError `SETTINGS` when the server can't listen on that address.
 */
export async function openFleetOperations(
  options: FleetOperationsOptions,
): Promise<FleetOperations> {
  const { config, instance, onError } = options;
  const now = () => Math.round(steadyScheduler.now());
  const watched = new Map<string, ObservedAccount>();
  const ready = new FleetReadiness({ accounts: watched, now });
  const measured = fleetMetrics({
    instance,
    isReady: () => ready.check().ready,
    accounts: () => new Map([...watched].map(([name, { metrics }]) => [name, metrics.registry])),
  });
  const model = new FleetStatusModel({
    version: VERSION,
    prefix: config.topics.sharedPrefix,
    instance,
    now,
    readiness: ready.check,
    accounts: watched,
  });
  const server = await openHttpThread({
    ...config.http,
    endpoints: {
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
      const account = observedAccount(own, { ofProcess: false, onError });
      watched.set(own.account, account);
      return {
        hooks: account.hooks,
        figures: account.figures,
        // Unless a later account of the same name has replaced it.
        end: () => void (watched.get(own.account) === account && watched.delete(own.account)),
      };
    },
    onFleet: (view) => {
      for (const each of [ready, measured, model]) each.onFleet(view);
    },
    onHandover: measured.onHandover,
    onFenced: measured.onFenced,
    check: ready.check,
    ...server,
  };
}
