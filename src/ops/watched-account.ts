import type { Config } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { VERSION } from '../core/version.ts';
import type { Hooks } from '../observe/hooks.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { metrics } from './metrics/metrics.ts';
import type { Metrics } from './metrics/metrics.ts';
import { readiness } from './status/readiness.ts';
import type { Readiness } from './status/readiness.ts';
import { statusModel } from './status/status.ts';
import type { StatusModel } from './status/status.ts';

/** All that can be said of one account: whether it is ready, its figures, its metrics. */
export interface WatchedAccount extends Pick<StatusModel, 'status' | 'figures'> {
  /** To be told. */
  readonly hooks: Hooks;
  readonly check: () => Readiness;
  readonly metrics: Metrics;
}

/** @param ofProcess Whether its metrics are those of the process, too. */
export function watchedAccount(
  { account, resources, topics, poll }: Config,
  { ofProcess }: { readonly ofProcess: boolean },
): WatchedAccount {
  const { intervalMs: pollIntervalMs } = poll;
  const now = () => Math.round(steadyScheduler.now());
  const { check, hooks } = readiness({ resources, pollIntervalMs, now });
  const common = { account, resources, pollIntervalMs, readiness: check };
  const measured = metrics({ ...common, ofProcess });
  const model = statusModel({ ...common, version: VERSION, prefix: topics.prefix, now });
  return {
    hooks: allHooks(hooks, measured.hooks, model.hooks),
    check,
    metrics: measured,
    status: model.status,
    figures: model.figures,
  };
}
