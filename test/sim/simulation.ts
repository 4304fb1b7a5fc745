import { loadConfig } from '../../src/config.ts';
import { Chance } from './chance.ts';
import { SimApi, SORTS } from './sim-api.ts';
import type { ApiTraits } from './sim-api.ts';
import { SimBroker } from './sim-broker.ts';
import { check } from './sim-checker.ts';
import type { Verdict } from './sim-checker.ts';
import { SimProcess } from './sim-process.ts';
import type { Dangers, World } from './sim-process.ts';
import { SimRegistry } from './sim-registry.ts';
import { SimFolder } from './sim-store.ts';
import { SimTime } from './sim-time.ts';

export interface Run extends Verdict {
  readonly traits: ApiTraits;
  readonly processes: number;
  readonly trace: readonly string[];
}

const START = Date.parse('2026-06-01T12:00:00Z');
const LOOKBACK_MS = 15_000;
/** Longer than a list that has failed waits before it is tried again. */
const CALM_MS = 90_000;
const SKEWS = [0, 0, 700, -700, 600_000, -600_000];
const SAFE: Dangers = { crash: 0, pause: 0, commit: 0 };

/** One run of the whole pipeline of one resource, all of it decided by the seed. */
export async function simulate(seed: number): Promise<Run> {
  const chance = new Chance(seed);
  const time = new SimTime(START);
  const trace: string[] = [];
  const traits: ApiTraits = {
    resource: chance.pick(['orders', 'orders', 'customers', 'inventory'] as const),
    sort: chance.pick(SORTS),
    resolutionMs: chance.pick([1, 1_000, 5_000]),
    lateMs: chance.pick([0, 2_000, LOOKBACK_MS - 5_000]),
    stampSkewMs: chance.pick(SKEWS),
    dateSkewMs: chance.pick(SKEWS),
    sendsDate: chance.is(0.8),
    boundsInclude: chance.is(0.5),
    latencyMs: chance.pick([20, 200, 2_000]),
  };
  const api = new SimApi(traits, chance, time, chance.below(90));
  const broker = new SimBroker((topic) => (topic === 'sim.cursors' ? 1 : 3));
  const registry = new SimRegistry();
  const statusChanges = { topic: 'sim.order-status-changes', schemaId: 900 };
  const world: World = {
    config: loadConfig({
      env: {
        API_BASE_URL: 'http://sim',
        API_KEY: 'key',
        KAFKA_BROKERS: 'sim:9092',
        SCHEMA_REGISTRY_URL: 'http://sim',
        TOPIC_PREFIX: 'sim',
        PAGE_SIZE: '21',
        QUOTA_PER_MINUTE: '1000',
        POLL_INTERVAL_MS: '4000',
        LOOKBACK_MS: String(LOOKBACK_MS),
        SWEEP_INTERVAL_MS: '10000',
        DELETE_LIMIT_PERCENT: '100',
      },
      cwd: '/nonexistent',
      needs: ['api', 'kafka', 'registry'],
    }),
    chance,
    time,
    api,
    broker,
    registry,
    destination: {
      records: (resource) => `sim.${resource}`,
      statusChanges,
      deadLetters: { topic: 'sim.dead-letters', schemaId: 901 },
      cursors: 'sim.cursors',
      partitions: new Map(),
    },
    trace: (line) => trace.push(`${((time.now() - START) / 1_000).toFixed(3)} ${line}`),
  };
  const dangers: Dangers = {
    crash: chance.pick([0, 0.005, 0.02, 0.05]),
    pause: chance.pick([0, 0, 0.002]),
    commit: chance.pick([0, 0.02, 0.1]),
  };
  api.faultiness = chance.pick([0, 0.02, 0.1]);

  let processes = 0;
  const start = (folder: SimFolder, withDangers: Dangers) =>
    new SimProcess(`p${++processes}`, world, folder, withDangers);
  let process = start(new SimFolder(), dangers);
  const others: SimProcess[] = []; // replaced, and not known to have ended
  let older = new SimFolder();
  let problem: string | undefined;

  /** A process that has died is started again, with its folder, an older one or none. */
  const replace = (with$: Dangers) => {
    if (process.state === 'running' || problem) return;
    if (typeof process.state === 'object' && !process.isFenced) {
      problem = `ended with ${String(process.state.error)}`;
      return;
    }
    if (process.isFenced && others.some(({ state }) => state === 'running')) return;
    const lot = chance.next();
    const folder = lot < 0.1 ? new SimFolder() : lot < 0.2 ? older.copy() : process.folder;
    process = start(folder, with$);
  };
  const end = START + 30_000 + chance.below(70_000);
  while (time.now() < end && !problem) {
    await time.until(after(time, 200 + chance.below(2_500)), Infinity);
    const lot = chance.next();
    if (lot < 0.7) for (let n = 1 + chance.below(3); n > 0; n--) api.change();
    else if (lot < 0.74) older = process.folder.copy();
    else if (lot < 0.76) api.isDown = !api.isDown;
    else if (lot < 0.77) api.stampSkewMs += chance.pick([-60_000, -5_000, 5_000]);
    else if (process.isPaused && lot < 0.9) {
      // It seems dead: another takes its place, on another machine.
      others.push(process);
      process = start(new SimFolder(), dangers);
    }
    replace(dangers);
  }
  // The world calms down, and all that could be seen has to be there.
  api.faultiness = 0;
  api.isDown = false;
  process.dangers = SAFE;
  for (const other of others) other.dangers = SAFE;
  const isRunning = () => [process, ...others].some(({ state }) => state === 'running');
  for (let waited = 0; waited < CALM_MS && !problem; waited += 5_000) {
    replace(SAFE);
    await time.until(after(time, 5_000), Infinity);
  }
  if (!problem && !isRunning()) problem = 'does not stay alive in a calm world';
  const verdict = check(broker, registry, api);
  const violations = problem ? [problem, ...verdict.violations] : verdict.violations;
  return { ...verdict, violations, traits, processes, trace };
}

function after(time: SimTime, ms: number): () => boolean {
  let isOver = false;
  time.scheduler.schedule(() => (isOver = true), ms);
  return () => isOver;
}
