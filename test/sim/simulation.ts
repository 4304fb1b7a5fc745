import { RESOURCES } from '../../src/sandbox/resources.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { mayBeCut } from '../../src/streams/paging/reading-proofs.ts';
import { Chance } from '../support/chance.ts';
import { draw, PROOF_MS, SAFE, SIM_SETTINGS } from './draw.ts';
import type { Draw } from './draw.ts';
import { SimLedger } from '../account/ledger/sim-ledger.ts';
import { DEAD_TOKENS, SimApi, VOLATILE } from './sim-api.ts';
import { SimBroker } from './sim-broker.ts';
import { SIM_DESTINATION } from './sim-destination.ts';
import { CERTIFICATES, certificatesIn, isCertified } from './check-certificates.ts';
import { areAnswered } from './check-resyncs.ts';
import { check } from './sim-checker.ts';
import { pagingOf } from './sim-paging.ts';
import { imagesOf, isTruth } from './published.ts';
import { SimProcess } from './sim-process.ts';
import type { Dangers, World } from './sim-process.ts';
import { SimRegistry } from './sim-registry.ts';
import { ask, SIGNALS } from './sim-signals.ts';
import { SimFolder } from './sim-store.ts';
import { SimTime } from './sim-time.ts';

export interface Run {
  /** What was promised and not kept; empty if all is well. */
  readonly violations: readonly string[];
  readonly draw: Draw;
  /** How much there was to go wrong, and went wrong: numbers to be added up over the runs. */
  readonly sums: Readonly<Record<string, number>>;
}

const START = Date.parse('2026-06-01T12:00:00Z');
/** All that could be seen has to be published within so long of calm, ms; where the quota is scarce. */
const CALM_MS = 180_000;
const SCARCE_CALM_MS = 3_600_000;
/**
 * The same, in ms, if the newest token is dead as the calm begins, and the API reports that as any other failure: `LoginPace` then leaves one minute, later
 * two and more, between early logins. Or if requests with dates fail: sweeps wait for polls for five minutes.
 */
const SLOW_CALM_MS = 600_000;
/** Statuses that say that a token is dead: the gaps between early logins are shorter than after other failures. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403]);
/** Even when all seems well: two sweeps, and what a process that wakes up late might do. */
const LEAST_CALM_MS = 45_000;
const STEP_MS = 5_000;
/** In so long each process has come to a step: where the quota is scarce it may wait for two windows. */
const REOPEN_MS = 150_000;

const CONFIG = loadConfig({
  env: {
    ...SIM_SETTINGS,
    PII_DROP: RESOURCES.map((resource) => `${resource}.contact`).join(),
    VOLATILE_FIELDS: RESOURCES.map((resource) => `${resource}:/${VOLATILE}`).join(),
  },
  cwd: '/nonexistent',
  needs: ['api', 'kafka', 'registry'],
});

/** In so many runs there is a field that differs in every answer: told in the settings in one, in another not. */
const VOLATILE_EACH = 7;

/** How long a new token is refused in a run, ms: by its seed. */
const TOKEN_LAGS_MS = [0, 0, 300, 0, 2_500, 0, 5_000];

/** Each so manieth run somebody deletes what was published. */
const LOSSY = 5;
/** Each so manieth run the index of the list is wrong for a while: it shows a part of the records. As above. */
const WRONG = 3;

/** Each so manieth run a partition is added at the end. */
const GROWN = 7;

/** Each so manieth run what compaction takes is gone whenever a process takes another one's place. */
const COMPACTED = 3;

/** Each so manieth run every second answer, or one by chance, comes from a replica that lags by some seconds. */
const LAGGING = 4;
/** Each so manieth run pages of the whole list come from a cache, which says so, or does not. Not where an index is wrong: it would stay so in the cache. */
const CACHED = 7;
/** Longer than several sweeps, and than the time by which a cache is told from a replica. */
const CACHE_TTL_MS = 45_000;

/** So long a record makes its pages fail in a calm world, ms: processes that die find no time to read around it. */
const POISONED_CALM_MS = 25_000;

/** Each so manieth run some records are no JSON for a while, in one of these ways. As above. */
const ODD = 3;
const ODD_WAYS = ['word', 'brace', 'quote', 'cut'] as const;

/** One run of the whole pipeline of one resource, all of it decided by the seed. */
export async function simulate(seed: number, tell?: (line: string) => void): Promise<Run> {
  const chance = new Chance(seed);
  const drawn = draw(chance);
  const { dangers, isSafe, isScarce, pageSize } = drawn;
  const isLossy = !isSafe && seed % LOSSY === 1; // drawn, it would change what all seeds are
  const isCompacted = seed % COMPACTED === 2;
  const { traits } = drawn;
  const time = new SimTime(START);
  const api = new SimApi(traits, chance, time, drawn.records);
  api.isPersonal = seed % 3 === 0; // drawn, it would change what all seeds are
  api.deadToken = DEAD_TOKENS[seed % DEAD_TOKENS.length]!;
  api.tokenLagMs = TOKEN_LAGS_MS[seed % TOKEN_LAGS_MS.length]!;
  const volatility = ([, , 'told', , , 'untold'] as const)[seed % VOLATILE_EACH];
  api.isVolatile = volatility !== undefined;
  const ofOne = ['sim.cursors', SIGNALS, CERTIFICATES];
  const broker = new SimBroker((topic) => (ofOne.includes(topic) ? 1 : 3));
  const registry = new SimRegistry();
  const world: World = {
    config: {
      ...CONFIG,
      poll: { ...CONFIG.poll, pageSize },
      pii: api.isPersonal ? CONFIG.pii : { ...CONFIG.pii, drop: [] },
      volatileFields: volatility === 'told' ? CONFIG.volatileFields : [],
      quota: {
        ...CONFIG.quota,
        perMinute: traits.quotaPerMinute,
        loginsPerMinute: traits.loginsPerMinute,
      },
    },
    isScarce,
    chance,
    time,
    ledger: new SimLedger(time),
    api,
    broker,
    registry,
    destination: SIM_DESTINATION,
    trace: tell && ((line) => tell(`${((time.now() - START) / 1_000).toFixed(3)} ${line}`)),
  };

  const processes: SimProcess[] = [];
  const start = (folder: SimFolder, withDangers: Dangers) => {
    const process = new SimProcess(`p${processes.length + 1}`, world, folder, withDangers);
    processes.push(process);
    return process;
  };
  const topic = `sim.${traits.resource}`;
  let process = start(new SimFolder(), dangers);
  let older = new SimFolder();
  let problem: string | undefined;
  const running = () => processes.filter(({ state }) => state === 'running');

  /** A process that has ended is started again, with its folder, an older one or none. */
  const replace = (withDangers: Dangers) => {
    const { state, isFenced } = process;
    if (state === 'running' || problem) return;
    if (state !== 'crashed' && !isFenced) problem = `ended with ${String(state.error)}`;
    if (problem ?? (isFenced && running().length > 0)) return;
    const lot = chance.next();
    if (isCompacted) broker.compact(topic);
    const folder = lot < 0.1 ? new SimFolder() : lot < 0.2 ? older.copy() : process.folder;
    process = start(folder, withDangers);
  };
  let asked = 0;
  /** Now and then somebody wants something to be published again. */
  const request = () => {
    const keys = [...api.list.truth().keys()];
    const isOne = traits.resource === 'orders' && keys.length > 0 && chance.is(0.5);
    const at = new Date(time.now()).toISOString();
    const resync = {
      type: 'resync',
      id: `r${++asked}`,
      account: CONFIG.account,
      requested_at: at,
    } as const;
    const order_number = isOne ? Number(chance.pick(keys)) : null;
    ask(broker, { ...resync, resources: [traits.resource], order_number, since: null }, time.now());
  };
  /** And a certificate. */
  const requestCertificate = () => {
    const requested_at = new Date(time.now()).toISOString();
    const { account } = CONFIG;
    const id = `c${++asked}`;
    const resources = [traits.resource];
    ask(broker, { type: 'certify', id, account, resources, requested_at }, time.now());
  };
  const lose = (lot: number) => {
    if (lot < 0.77) broker.makeAnew(topic, time.now());
    else broker.truncate(topic, (lot - 0.77) / 0.01, time.now());
    world.trace?.(
      lot < 0.77 ? 'the topic is made anew' : 'the beginning of a partition is deleted',
    );
  };
  // What an initial snapshot that begins anew does not see then is new when it is back: no other run shows that.
  if (seed % WRONG === 2 && !isLossy) {
    const after = START + Math.round(drawn.stormMs / 4);
    api.list.beWrong(after, 500 + ((seed * 700) % (PROOF_MS - 1_000)));
  }
  // What is read again around such a record has been heard, and need not be published. Lossy runs: as above.
  if (seed % ODD === 1 && !isSafe && !isLossy) {
    const [from, to] = [0.2, 0.8].map((part) => START + Math.round(drawn.stormMs * part));
    api.oddity = { from: from!, to: to!, way: ODD_WAYS[seed % ODD_WAYS.length]! };
  }
  // Lossy runs: as above.
  if (seed % LAGGING === 1 && !isLossy) {
    const turn = seed % (2 * LAGGING) === 1 ? 'every second' : 'by chance';
    api.replica = { lagMs: 1_000 + ((seed * 700) % 4_001), turn };
  }
  // A cache that tells nothing of its age, and has no `Date` to tell it by, can't be told from the API.
  const sendsAge = seed % (2 * CACHED) < CACHED;
  const isWrong = seed % WRONG === 2;
  if (seed % CACHED === 3 && !isWrong && (sendsAge || traits.sendsDate) && !isLossy) {
    api.cache = { ttlMs: CACHE_TTL_MS, sendsAge };
  }
  const paging = pagingOf(seed, pageSize);
  if (paging !== 'poison') api.paging = paging;
  else if (!isSafe && !isLossy) {
    // What is read around it has been heard, and need not be published. Lossy runs: as above.
    const keys = [...api.list.truth().keys()].map(Number);
    const from = START + Math.round(drawn.stormMs / 5);
    const to = START + drawn.stormMs + POISONED_CALM_MS;
    if (keys.length > 0) api.poison = { key: keys[seed % keys.length]!, from, to };
  }
  const behindMs = api.cache ? CACHE_TTL_MS : (api.replica?.lagMs ?? 0);
  api.faultiness = drawn.faultiness;
  while (time.now() < START + drawn.stormMs && !problem) {
    await time.pass(200 + chance.below(2_500));
    const lot = chance.next();
    if (lot < 0.7) for (let n = 1 + chance.below(3); n > 0; n--) api.list.change();
    else if (lot < 0.74) older = process.folder.copy();
    else if (lot < 0.76) api.isDown = !api.isDown && !isSafe;
    else if (isLossy && lot < 0.78) lose(lot);
    else if (lot < 0.77) api.list.stampSkewMs += chance.pick([-60_000, -5_000, 5_000]);
    else if (lot < 0.78) api.skewDate(chance.pick([-60_000, -5_000, 5_000]));
    else if (lot < 0.82) {
      request();
      if (lot < 0.79) requestCertificate();
    }
    // It seems dead: another takes its place, on another machine.
    else if (process.isPaused && lot < 0.9) process = start(new SimFolder(), dangers);
    replace(dangers);
  }

  // The world calms down, and all that could be seen has to be there.
  api.faultiness = 0;
  api.isDown = false;
  const cachedUntil = api.cache ? time.now() : -Infinity;
  [api.replica, api.cache] = [undefined, undefined];
  // Without a total no deletion is proven; behind a limit or a cap nothing can be read.
  const { total, limit, cap } = api.paging;
  const limitedUntil = limit ? time.now() : -Infinity;
  const cutUntil = cap < Infinity ? time.now() : limitedUntil;
  api.paging = {
    ...api.paging,
    total: total === 'missing' ? 'number' : total,
    ...{ limit: undefined, cap: Infinity },
  };
  if (isLossy) {
    // Whoever has the task dies: that the beginning of a topic is gone is seen when it is taken over.
    process.dangers = { ...SAFE, crash: 1 };
    const until = time.now() + REOPEN_MS;
    while (process.state === 'running' && time.now() < until) await time.pass(STEP_MS);
  }
  const calmAt = time.now();
  requestCertificate();
  for (const each of processes) each.dangers = SAFE;
  const isSlow = api.isTokenDead && !REFUSALS.has(api.deadToken[0]);
  const waitsForPolls = api.datedFailure !== null || api.traits.futureEnd === 500;
  const most = isScarce ? SCARCE_CALM_MS : isSlow || waitsForPolls ? SLOW_CALM_MS : CALM_MS;
  const published = imagesOf(broker, registry, topic);
  const isWellCertified = () => {
    if (api.list.truth().size === 0) return true; // an empty list is not believed
    const newest = certificatesIn(broker).at(-1);
    return (
      newest !== undefined &&
      newest.at > calmAt &&
      isCertified(newest, api.list, volatility === 'untold')
    );
  };
  const isWell = () =>
    running().length === 1 &&
    isTruth(published(), api.list) &&
    areAnswered(broker.read(SIGNALS)) &&
    isWellCertified();
  /** Whether its deletions may wait until its total moves. */
  const mayBeCutOff = () => {
    const { size } = api.list.truth();
    const fitsOnePage = size < Math.min(pageSize, api.paging.most);
    return mayBeCut({ top: size, peak: size, lacksMass: false, fitsOnePage });
  };
  while (!problem) {
    const calmFor = time.now() - calmAt;
    if (calmFor > most || (calmFor > LEAST_CALM_MS && isWell())) break;
    if (calmFor > LEAST_CALM_MS && mayBeCutOff()) api.list.grow();
    await time.pass(STEP_MS);
    replace(SAFE);
  }
  if (!isWellCertified())
    problem ??= `is certified so: ${JSON.stringify(certificatesIn(broker).at(-1))}`;
  if (seed % GROWN === 3 && !problem) {
    broker.grow(topic);
    await time.pass(STEP_MS); // what was decided before is still committed
    const before = certificatesIn(broker).length;
    await time.pass(CALM_MS);
    if (certificatesIn(broker).length > before) problem = 'certifies a topic that has grown';
  }
  if (running().length === 0) problem ??= 'does not stay alive in a calm world';
  const { violations, sums } = check({
    broker,
    registry,
    api,
    processes,
    isSafe,
    isScarce,
    volatility,
    behindMs,
    ...{ cutUntil, cachedUntil, limitedUntil },
  });
  return { violations: problem ? [problem, ...violations] : violations, draw: drawn, sums };
}
