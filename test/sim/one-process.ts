import { loadConfig } from '../../src/config/load-config.ts';
import type { Resource } from '../../src/config/config.ts';
import { SimLedger } from '../account/ledger/sim-ledger.ts';
import { Chance } from '../support/chance.ts';
import { SAFE } from './draw.ts';
import { DATES_AS_WRITTEN, SimApi } from './sim-api.ts';
import type { DatedFailure, FutureEnd } from './sim-api.ts';
import type { SORTS } from './sim-list.ts';
import { SimBroker } from './sim-broker.ts';
import { SIM_DESTINATION } from './sim-destination.ts';
import { SimProcess } from './sim-process.ts';
import { SimRegistry } from './sim-registry.ts';
import { SimFolder } from './sim-store.ts';
import { SimTime } from './sim-time.ts';

const RECORDS = 80;

export interface OneProcessOptions {
  readonly seed: number;
  readonly resource: Resource;
  /** Beside addresses and the key. */
  readonly env: Readonly<Record<string, string>>;
  /** Of list requests, and of logins. */
  readonly perMinute: number;
  /** Whether requests are declared in the ledger, and paced by it. Default they are not. */
  readonly hasLedger?: boolean;
  /** Answer to requests with dates in place of pages. Default pages. */
  readonly datedFailure?: DatedFailure;
  /** Default `as written`. */
  readonly futureEnd?: FutureEnd;
  /** Default `key-asc`. */
  readonly sort?: (typeof SORTS)[number];
}

/** A process that has one list of a well-behaved API, and nothing that fails; `lines` is what it does. */
export function oneProcess(options: OneProcessOptions) {
  const { seed, resource, env, perMinute, datedFailure = null, sort = 'key-asc' } = options;
  const { futureEnd = 'as written', hasLedger = false } = options;
  const chance = new Chance(seed);
  const time = new SimTime(Date.parse('2026-06-01T12:00:00Z'));
  const traits = {
    resource,
    sort,
    resolutionMs: 1,
    lateMs: 0,
    stampSkewMs: 0,
    ...DATES_AS_WRITTEN,
    datedFailure,
    futureEnd,
    isBulk: false,
    boundsInclude: true,
    dateSkewMs: 0,
    sendsDate: true,
    latencyMs: 20,
    quotaPerMinute: perMinute,
    loginsPerMinute: perMinute,
  } as const;
  const api = new SimApi(traits, chance, time, RECORDS);
  const broker = new SimBroker((topic) => (topic === 'sim.cursors' ? 1 : 3));
  const registry = new SimRegistry();
  const topic = `sim.${resource}`;
  const config = loadConfig({
    env: {
      API_BASE_URL: 'http://sim',
      API_KEY: 'key',
      KAFKA_BROKERS: 'sim:9092',
      SCHEMA_REGISTRY_URL: 'http://sim',
      TOPIC_PREFIX: 'sim.eu',
      ...env,
    },
    cwd: '/nonexistent',
    needs: ['api', 'kafka', 'registry'],
  });
  const quota = { ...config.quota, perMinute, loginsPerMinute: perMinute };
  const lines: string[] = [];
  const world = {
    config: { ...config, quota },
    isScarce: hasLedger,
    chance,
    time,
    ledger: new SimLedger(time),
    api,
    broker,
    registry,
    destination: SIM_DESTINATION,
    trace: (line: string) => void lines.push(line),
  };
  const process = new SimProcess('p1', world, new SimFolder(), SAFE);
  const { state } = process;
  return { state, process, lines, time, api, broker, registry, topic };
}
