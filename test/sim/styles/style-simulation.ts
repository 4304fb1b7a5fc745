import { loadConfig } from '../../../src/config/load-config.ts';
import { parseDescription } from '../../../src/description/read-description.ts';
import { mayBeCut } from '../../../src/streams/paging/reading-proofs.ts';
import { SimLedger } from '../../account/ledger/sim-ledger.ts';
import { Chance } from '../../support/chance.ts';
import { checkArrivals } from '../check-arrivals.ts';
import { certificatesIn, checkCertificates, CERTIFICATES } from '../check-certificates.ts';
import { checkChains } from '../check-chains.ts';
import { checkInstances } from '../check-instances.ts';
import { areAnswered, checkCertifyRequests } from '../check-resyncs.ts';
import { PROOF_MS, SAFE, SIM_SETTINGS } from '../draw.ts';
import { chainsOf, imagesOf } from '../published.ts';
import type { SeedRun } from '../run-seeds.ts';
import { SimBroker } from '../sim-broker.ts';
import { SIM_DESTINATION } from '../sim-destination.ts';
import { SimProcess } from '../sim-process.ts';
import type { Dangers, World } from '../sim-process.ts';
import { SimRegistry } from '../sim-registry.ts';
import { ask, SIGNALS } from '../sim-signals.ts';
import { SimFolder } from '../sim-store.ts';
import { SimTime } from '../sim-time.ts';
import { checkEnd, checkLevels, isWellRead, levelOf, owesDeletions } from './style-checks.ts';
import type { ServedPage } from './style-checks.ts';
import { StyleApi } from './style-api.ts';
import { StyleList } from './style-list.ts';
import { StyleServer } from './style-server.ts';
import { descriptionText, drawStyle } from './style.ts';

const START = Date.parse('2026-06-01T12:00:00Z');
/** Time of calm within which all that the list's proofs allow has to be published, ms; longer where the quota binds. */
const CALM_MS = 300_000;
const SCARCE_CALM_MS = 3_600_000;
/** Time of calm that each run has, for what a process that wakes up late might do, ms. */
const LEAST_CALM_MS = 45_000;
const STEP_MS = 5_000;
/** `Date` headers have whole seconds, and without them a first reading is dated when its first page has come, not when it was requested. */
const SKEW_MS = 1_000;
/** How likely a record that is removed between two pages is replaced by a new one in the same moment, so that the total holds still. */
const REPLACED = Number(process.env.REPLACED ?? 0.5);

/** One run of the service for a list of an API whose paging and properties the seed draws. */
export async function simulateStyle(
  seed: number,
  tell?: (line: string) => void,
): Promise<SeedRun & { readonly sums: Readonly<Record<string, number>> }> {
  const style = drawStyle(new Chance(seed, 'style'));
  const chance = new Chance(seed, 'world');
  const isScarce = chance.is(0.15);
  const isSafe = chance.is(0.2);
  const dangers: Dangers = isSafe
    ? SAFE
    : {
        crash: chance.pick([0, 0.005, 0.02, 0.05]),
        pause: chance.pick([0, 0, 0.002, 0.002]),
        commit: chance.pick([0, 0.02, 0.1]),
      };
  const faultiness = isSafe ? 0 : chance.pick([0, 0.02, 0.1]);
  const records = chance.below(isScarce ? 60 : 90);
  const stormMs = 30_000 + chance.below(70_000);
  const resource = style.names.list;
  const traits = {
    resource,
    latencyMs: chance.pick([20, 200, 1_000]),
    sendsDate: chance.is(0.8),
    quotaPerMinute: isScarce ? chance.pick([25, 40]) : 1_000,
    loginsPerMinute: isScarce ? 10 : 1_000,
  };
  const text = descriptionText(style, {
    perMinute: traits.quotaPerMinute,
    loginsPerMinute: traits.loginsPerMinute,
  });
  const config = loadConfig({
    env: SIM_SETTINGS,
    cwd: '/nonexistent',
    needs: ['api', 'kafka', 'registry'],
    description: parseDescription(text, 'style.json'),
  });
  const time = new SimTime(START);
  const list = new StyleList(style, chance, time, records);
  const server = new StyleServer(style, list, chance);
  const api = new StyleApi(traits, style, server, chance, time);
  const ofOne = ['sim.cursors', SIGNALS, CERTIFICATES];
  const broker = new SimBroker((topic) => (ofOne.includes(topic) ? 1 : 3));
  const registry = new SimRegistry();
  const world: World = {
    ...{ config, isScarce, chance, time, api, broker, registry },
    ledger: new SimLedger(time),
    destination: SIM_DESTINATION,
    trace: tell && ((line) => tell(`${((time.now() - START) / 1_000).toFixed(3)} ${line}`)),
  };
  tell?.(text);

  const topic = `sim.${resource}`;
  const processes: SimProcess[] = [];
  const start = (folder: SimFolder, withDangers: Dangers) => {
    const process = new SimProcess(`p${processes.length + 1}`, world, folder, withDangers);
    processes.push(process);
    return process;
  };
  const running = () => processes.filter(({ state }) => state === 'running');
  let process = start(new SimFolder(), dangers);
  let older = new SimFolder();
  let problem: string | undefined;
  /** A process that has ended is started again, with its folder, an older one or none. */
  const replace = (withDangers: Dangers) => {
    const { state, isFenced } = process;
    if (state === 'running' || problem) return;
    if (state !== 'crashed' && !isFenced) problem = `ended with ${String(state.error)}`;
    if (problem ?? (isFenced && running().length > 0)) return;
    const lot = chance.next();
    const folder = lot < 0.1 ? new SimFolder() : lot < 0.2 ? older.copy() : process.folder;
    process = start(folder, withDangers);
  };
  let asked = 0;
  const request = (type: 'resync' | 'certify') => {
    const requested_at = new Date(time.now()).toISOString();
    const { account } = config;
    const [id, resources] = [`${type}${++asked}`, [resource]];
    if (type === 'certify') ask(broker, { type, id, account, resources, requested_at }, time.now());
    else {
      const all = { order_number: null, since: null };
      ask(broker, { type, id, account, resources, requested_at, ...all }, time.now());
    }
  };

  api.faultiness = faultiness;
  const strikes = new Chance(seed, 'strikes');
  const striking = strikes.pick([0, 0, 0.1, 0.4]);
  const expiries = new Chance(seed, 'expiries');
  server.expired = expiries.pick([400, 404, 410, 500, 'errors']);
  const expiring = expiries.pick([0, 0.02, 0.1]);
  const stalls = new Chance(seed, 'stuck cursors');
  const sticking = stalls.pick([0, 0, 0.02, 0.1]);
  const served: ServedPage[] = [];
  let isStriking = true;
  server.onPage = (ids, isOfAll) => {
    world.trace?.(`${isOfAll ? 'a page' : 'a page of a window'} has ${ids.join()}`);
    if (isOfAll) served.push({ at: time.now(), keys: ids.map((id) => list.keyOf(id)) });
    if (isStriking && strikes.is(striking)) list.strike(ids, strikes.is(REPLACED));
  };
  while (time.now() < START + stormMs && !problem) {
    await time.pass(200 + chance.below(2_500));
    if (expiries.is(expiring)) server.expireCursors();
    if (stalls.is(sticking)) server.isStuck = !server.isStuck;
    const lot = chance.next();
    if (lot < 0.75) for (let n = 1 + chance.below(3); n > 0; n--) list.change();
    else if (lot < 0.78) older = process.folder.copy();
    else if (lot < 0.8) api.isDown = !api.isDown && !isSafe;
    else if (lot < 0.82) request(chance.is(0.5) ? 'resync' : 'certify');
    // It seems dead: another takes its place, on another machine.
    else if (process.isPaused && lot < 0.92) process = start(new SimFolder(), dangers);
    replace(dangers);
  }

  api.faultiness = 0;
  isStriking = false;
  api.isDown = false;
  server.isStuck = false;
  for (const each of processes) each.dangers = SAFE;
  const calmAt = time.now();
  request('certify');
  const most = isScarce ? SCARCE_CALM_MS : CALM_MS;
  const published = imagesOf(broker, registry, topic);
  const isWell = () =>
    running().length === 1 &&
    isWellRead(published(), list, style) &&
    areAnswered(broker.read(SIGNALS));
  /** Whether deletions may wait until the total moves, as it looks like a cap. */
  const mayBeCutOff = () => {
    const { size } = list.truth();
    return mayBeCut({ top: size, peak: size, lacksMass: false, fitsOnePage: false });
  };
  while (!problem) {
    const calmFor = time.now() - calmAt;
    if (calmFor > most || (calmFor > LEAST_CALM_MS && isWell())) break;
    if (calmFor > LEAST_CALM_MS && mayBeCutOff()) list.grow();
    await time.pass(STEP_MS);
    replace(SAFE);
  }
  if (running().length === 0) problem ??= 'does not stay alive in a calm world';

  const events = broker.read(topic);
  const chains = chainsOf(events, registry);
  const signals = broker.read(SIGNALS);
  const certificates = certificatesIn(broker);
  const violations = [
    ...(problem ? [problem] : []),
    ...checkChains(chains, list, undefined, false, style.hasTombstones ? 0 : PROOF_MS),
    ...checkEnd(chains, list, style),
    ...checkLevels(certificates, style, list, served, SKEW_MS + traits.latencyMs),
    ...checkInstances(broker.read('sim.cursors'), events, processes),
    ...checkCertificates(certificates, { broker, registry, topic }),
    ...checkCertifyRequests(signals, certificates),
    ...(areAnswered(signals) ? [] : ['a request is not answered']),
    ...(isScarce ? checkArrivals(api.arrivals, traits) : []),
    ...broker.read('sim.dead-letters').map(({ key }) => `${String(key)}: is a dead letter`),
  ];
  const sums = {
    [style.paging]: 1,
    processes: processes.length,
    requests: api.arrivals.length,
    events: events.length,
    deletions: events.filter(({ value }) => value === null).length,
    'that owe deletions': owesDeletions(style) ? 1 : 0,
    certificates: certificates.length,
    'of them above read': certificates.filter((each) => levelOf(each) !== 'read').length,
  };
  return { violations, draw: { style, isScarce, isSafe, dangers, faultiness, records }, sums };
}
