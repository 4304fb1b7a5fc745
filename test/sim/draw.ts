import { RESOURCES } from '../../src/sandbox/resources.ts';
import type { Chance } from '../support/chance.ts';
import type { ApiTraits } from './sim-api.ts';
import { SORTS } from './sim-list.ts';
import type { Dangers } from './sim-process.ts';

/** What a run's seed decides before it begins. */
export interface Draw {
  readonly traits: ApiTraits;
  /** Records at the beginning. */
  readonly records: number;
  readonly pageSize: number;
  /** A quota that binds, and pages so large that it does for them. */
  readonly isScarce: boolean;
  /** Nothing ever fails: then every version that is read has to be published. */
  readonly isSafe: boolean;
  readonly dangers: Dangers;
  /** How likely a request meets a fault. */
  readonly faultiness: number;
  /** How long the list changes and dangers last, ms. */
  readonly stormMs: number;
}

export const LOOKBACK_MS = 15_000;
/** How long what is gone has to stay so before it is deleted. */
export const PROOF_MS = 6_000;
/** Settings of the service in the simulations of one account. */
export const SIM_SETTINGS = {
  API_BASE_URL: 'http://sim',
  API_KEY: 'key',
  KAFKA_BROKERS: 'sim:9092',
  SCHEMA_REGISTRY_URL: 'http://sim',
  TOPIC_PREFIX: 'sim',
  POLL_INTERVAL_MS: '4000',
  LOOKBACK_MS: String(LOOKBACK_MS),
  SWEEP_INTERVAL_MS: '10000',
  CERTIFICATE_INTERVAL_MS: '3000',
  DELETE_LIMIT_PERCENT: '100',
  DELETE_PROOF_MS: String(PROOF_MS),
} as const;
export const SAFE: Dangers = { crash: 0, pause: 0, commit: 0 };
/** What a list may do with date parameters and stamps, other than what is written. */
const DATES = ['zone', 'local', 'ignored', 'future', 'failing'] as const;
/** Answers to a window that ends in the future, where that is not read as written. */
const FUTURE_ENDS = [400, 500, 'empty'] as const;
/** How requests with dates fail, where they do. */
const DATED_FAILURES = [400, 401, 403, 429, 504, 'firewall', 'drop'] as const;
/** Minutes ahead of UTC. */
const ZONES = [-480, -210, 60, 345, 780];
const SKEWS = [0, 0, 700, -700, 600_000, -600_000];

export function draw(chance: Chance): Draw {
  const isSafe = chance.is(0.2);
  const isScarce = chance.is(0.2);
  const dangers: Dangers = {
    crash: chance.pick([0, 0.005, 0.02, 0.05]),
    pause: chance.pick([0, 0, 0.002, 0.002]),
    commit: chance.pick([0, 0.02, 0.1]),
  };
  const faultiness = chance.pick([0, 0.02, 0.1]);
  const dates = chance.is(0.3) ? chance.pick(DATES) : 'written';
  return {
    traits: {
      resource: chance.is(0.5) ? 'orders' : chance.pick(RESOURCES),
      sort: chance.pick(SORTS),
      resolutionMs: chance.pick([1, 1_000, 5_000]),
      lateMs: chance.pick([0, 2_000, LOOKBACK_MS - 5_000]),
      stampSkewMs: chance.pick(SKEWS),
      isBulk: chance.is(0.2),
      dateSkewMs: chance.pick(SKEWS),
      sendsDate: chance.is(0.8),
      boundsInclude: chance.is(0.5),
      parameterZone: dates === 'zone' ? chance.pick(ZONES) : 0,
      stampZone: dates === 'local' ? chance.pick(ZONES) : null,
      ignoresDates: dates === 'ignored',
      futureEnd: dates === 'future' ? chance.pick(FUTURE_ENDS) : 'as written',
      datedFailure: dates === 'failing' ? chance.pick(DATED_FAILURES) : null,
      latencyMs: chance.pick([20, 200, 2_000]),
      quotaPerMinute: isScarce ? chance.pick([15, 25, 40]) : 1_000,
      loginsPerMinute: isScarce ? 10 : 1_000,
    },
    records: chance.below(isScarce ? 60 : 90),
    pageSize: isScarce ? 60 : 21,
    isScarce,
    isSafe,
    dangers: isSafe ? SAFE : dangers,
    faultiness: isSafe ? 0 : faultiness,
    stormMs: 30_000 + chance.below(70_000),
  };
}
