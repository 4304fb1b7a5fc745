import type { Config } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import type { FleetView } from '../observe/fleet-view.ts';
import { openHttpThread } from './http/http-thread.ts';
import { fleetMetrics } from './metrics/fleet-metrics.ts';
import { observedAccount } from './operations.ts';
import type { ObservedAccount, OperationsOptions } from './operations.ts';
import { FleetReadiness } from './status/fleet-readiness.ts';
import { FleetStatusModel } from './status/fleet-status.ts';

/** Options of an instance of a fleet. `config` is the configuration of the instance, not of one of its accounts. */
interface FleetOperationsOptions extends OperationsOptions {
  readonly instance: string;
}

/**
 * Serves metrics, health checks and status pages of an instance of a fleet on `HTTP_HOST` and `HTTP_PORT`. An account has a status page and
 * metrics of its own only on the instance that runs it.
 *
 * @throws CellarstreamError `SETTINGS` when the server can't listen on that address.
 */
export async function openFleetOperations({ config, instance, onError }: FleetOperationsOptions) {
  const now = () => Math.round(steadyScheduler.now());
  const watched = new Map<string, ObservedAccount>();
  const ready = new FleetReadiness({ accounts: watched, now });
  const measured = fleetMetrics({
    instance,
    isReady: () => ready.check().ready,
    accounts: () => new Map([...watched].map(([name, { metrics }]) => [name, metrics.registry])),
  });
  const model = new FleetStatusModel({
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
      accountStatus: (name) => {
        const account = watched.get(name);
        const status = account?.status() ?? model.notHere(name);
        return { isHere: account !== undefined, json: JSON.stringify(status) };
      },
    },
    onError,
  });
  return {
    /**
     * Adds the metrics and the status page of an account when this instance starts to run it. They replace those of an earlier account with
     * the same name.
     */
    account: (own: Config) => {
      const account = observedAccount(own, { ofProcess: false, onError });
      watched.set(own.account, account);
      return {
        hooks: account.hooks,
        /** Returns a summary of the account's status. This instance sends it to the other instances of the fleet. */
        figures: account.figures,
        onFailed: account.onFailed,
        /** Removes the account's metrics and status page, unless an account that was added later under the same name has replaced them. */
        end: () => void (watched.get(own.account) === account && watched.delete(own.account)),
      };
    },
    onFleet: (view: FleetView) => {
      for (const each of [ready, measured, model]) each.onFleet(view);
    },
    onHandover: measured.onHandover,
    onFenced: measured.onFenced,
    check: ready.check,
    ...server,
  };
}

export type FleetOperations = Awaited<ReturnType<typeof openFleetOperations>>;
