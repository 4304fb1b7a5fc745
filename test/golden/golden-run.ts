import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/load-config.ts';
import { RESOURCES } from '../../src/sandbox/resources.ts';
import type { Resource } from '../../src/description/description.ts';
import { topicNames } from '../../src/schemas/events/topics.ts';
import { signalMessage } from '../../src/sinks/signals/signals.ts';
import type { Signal } from '../../src/sinks/signals/signals.ts';
import { Chance } from '../support/chance.ts';
import { SimFolder } from '../sim/sim-store.ts';
import { SimTime } from '../sim/sim-time.ts';
import { GoldenApi } from './golden-api.ts';
import { GoldenInstance } from './golden-instance.ts';
import type { GoldenWorld } from './golden-instance.ts';
import { GoldenKafka } from './golden-kafka.ts';
import { GoldenRecords, keyFieldsOf, textOf } from './golden-records.ts';
import type { Json } from './golden-records.ts';
import { SimRegistry } from '../sim/sim-registry.ts';

/** A run of the service that is over. */
export interface GoldenRun {
  readonly kafka: GoldenKafka;
  readonly registry: SimRegistry;
  readonly instances: readonly GoldenInstance[];
  /** Failures that processes reported. */
  readonly reports: readonly string[];
  readonly api: GoldenApi;
}

const START = Date.parse('2026-06-01T12:00:00Z');
export const PREFIX = 'golden';
const ACCOUNT = 'estate';
const RECORDS = 33;
const PERSONAL = { drop: 'phone', mask: 'first_name', hmac: 'email' };
/** Times of the run, in seconds after its start. */
const AT = {
  snapshotCrash: 1,
  changes: 10,
  deadLetters: 20,
  mended: 31,
  growth: 36,
  resync: 45,
  lostCommit: 51,
  takeover: 57,
  secondGrowth: 70,
  secondResync: 76,
  restart: 82,
  lastChanges: 98,
  end: 118,
} as const;
/** Time between two changes of the API's lists, in ms. */
const CHANGE_MS = 2_400;

/** One run of the service with all six lists in virtual time; the seed decides it. */
export async function goldenRun(seed: number): Promise<GoldenRun> {
  const time = new SimTime(START);
  const restore = withVirtualTime(time, seed);
  try {
    return await run(seed, time);
  } finally {
    restore();
  }
}

async function run(seed: number, time: SimTime): Promise<GoldenRun> {
  const kafka = new GoldenKafka(seed % 2 === 0 ? 1 : 3, () => time.now());
  const registry = new SimRegistry();
  const api = new GoldenApi(time);
  const reports: string[] = [];
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn: GoldenWorld['inTurn'] = (job) => {
    const done = turn.then(job, job);
    turn = done.catch(() => undefined);
    return done;
  };
  const world: GoldenWorld = {
    ...{ seed, time, kafka, registry, api, inTurn, reports, config: configOf(seed) },
  };
  const lists = RESOURCES.map((resource) => new Scene(resource, seed, api, time));

  const instances: GoldenInstance[] = [];
  const start = (folder: SimFolder) => {
    const instance = new GoldenInstance(`instance-${instances.length + 1}`, world, folder);
    instances.push(instance);
    return instance;
  };
  const until = async (seconds: number) => {
    await time.pass(START + seconds * 1_000 - time.now());
  };
  const changesUntil = async (seconds: number) => {
    while (time.now() + CHANGE_MS < START + seconds * 1_000) {
      for (const list of lists) list.change();
      await time.pass(CHANGE_MS);
    }
    await until(seconds);
  };
  const { signals } = topicNames(PREFIX);
  const ask = (signal: Signal) => kafka.put(signals, signalMessage(signals, signal));
  const at = () => ({ account: ACCOUNT, requested_at: new Date(time.now()).toISOString() });

  let current = start(new SimFolder());
  if (seed % 4 === 2) {
    await until(AT.snapshotCrash);
    current.crash();
    current = start(current.folder);
  }
  await until(AT.changes);
  await changesUntil(AT.deadLetters);
  for (const list of lists) list.addRejects();
  await changesUntil(AT.mended);
  for (const list of lists) list.removeRejects();
  await changesUntil(AT.growth);
  for (const list of lists) list.grow();
  await changesUntil(AT.resync);
  const since = seed % 2 === 0 ? new Date(START + AT.growth * 1_000).toISOString() : null;
  ask({ type: 'resync', id: 'all', resources: [...RESOURCES], order_number: null, since, ...at() });
  ask({ type: 'certify', id: 'certificates', resources: [...RESOURCES], ...at() });
  await changesUntil(AT.lostCommit);
  if (seed % 2 === 1) loseCommits(kafka, seed);
  await changesUntil(AT.takeover);

  // The second instance begins with an older copy of the images, or with none, while the first one still runs.
  current = start(seed % 2 === 0 ? current.folder.copy() : new SimFolder());
  await changesUntil(AT.secondGrowth);
  for (const list of lists) list.grow();
  await changesUntil(AT.secondResync);
  const order_number = api.list('orders').numbers[seed % 5]!;
  const one = { id: 'one', resources: ['orders'], order_number, since: null };
  ask({ type: 'resync', ...one, ...at() });
  await changesUntil(AT.restart);
  if (seed % 3 === 0) current.stop();
  if (seed % 3 === 1) current.crash();
  await changesUntil(AT.restart + 10);
  if (seed % 3 !== 2) current = start(current.folder);
  await changesUntil(AT.lastChanges);
  await until(AT.end);
  current.stop();
  await time.pass(10_000);
  return { kafka, registry, instances, reports, api };
}

/** Copies the built-in description and its schemas into a folder of their own. Returns the path of the copy. */
function copiedDescription(): string {
  const folder = mkdtempSync(join(tmpdir(), 'golden-'));
  const wine = fileURLToPath(new URL('../../src/description/wine', import.meta.url));
  for (const file of ['wine.yaml', 'order.avsc', 'order-status-change.avsc'])
    copyFileSync(join(wine, file), join(folder, file));
  return join(folder, 'wine.yaml');
}

function configOf(seed: number) {
  const personal = (field: string) => RESOURCES.map((resource) => `${resource}.${field}`).join();
  return loadConfig({
    env: {
      API_BASE_URL: 'http://golden',
      // A copy of the built-in description gives the same bytes as the built-in one.
      ...(seed % 7 === 0 && { API_DESCRIPTION: copiedDescription() }),
      API_KEY: 'golden-key',
      ACCOUNT_NAME: ACCOUNT,
      KAFKA_BROKERS: 'k:9092',
      SCHEMA_REGISTRY_URL: 'http://golden',
      TOPIC_PREFIX: PREFIX,
      TOPIC_PARTITIONS: '3',
      POLL_INTERVAL_MS: '5000',
      PAGE_SIZE: '30',
      LOOKBACK_MS: '15000',
      SWEEP_INTERVAL_MS: '10000',
      CERTIFICATE_INTERVAL_MS: '20000',
      DELETE_LIMIT_PERCENT: '100',
      DELETE_PROOF_MS: '6000',
      ...(seed % 4 === 1 && { KEY_FORMAT: 'avro' }),
      ...(seed % 3 !== 0 && {
        PII_DROP: personal(PERSONAL.drop),
        PII_MASK: personal(PERSONAL.mask),
        PII_HMAC: personal(PERSONAL.hmac),
        PII_HMAC_KEY: 'a key of the golden runs',
      }),
    },
    cwd: '/nonexistent',
    needs: ['api', 'kafka', 'registry'],
  });
}

/** Loses, for each list, the next request that commits a transaction, or the response to it. */
function loseCommits(kafka: GoldenKafka, seed: number): void {
  const left = new Set<Resource>(RESOURCES);
  kafka.commitFault = (transactionalId) => {
    const nth = RESOURCES.findIndex((each) => transactionalId.endsWith(`.${each}`));
    if (nth < 0 || !left.delete(RESOURCES[nth]!)) return undefined;
    return (nth + (seed - 1) / 2) % 2 === 0 ? 'lose request' : 'lose answer';
  };
}

/** Replaces the process's clock and random numbers, which nothing may depend on but timestamps of batches. */
function withVirtualTime(time: SimTime, seed: number): () => void {
  const original = { now: Date.now, random: Math.random };
  Date.now = () => Math.floor(time.now());
  Math.random = new Chance(seed, 'Math.random').next;
  return () => {
    Date.now = original.now;
    Math.random = original.random;
  };
}

/** One list of the API, and what happens to it. */
class Scene {
  readonly #resource: Resource;
  readonly #records: GoldenRecords;
  readonly #live = new Map<number, Json>();
  readonly #rejects: number[] = [];
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #api: GoldenApi;
  readonly #time: SimTime;
  #next = 100;
  #changes = 0;

  constructor(resource: Resource, seed: number, api: GoldenApi, time: SimTime) {
    this.#resource = resource;
    this.#seed = seed;
    this.#chance = new Chance(seed, 'golden', resource);
    this.#api = api;
    this.#time = time;
    this.#records = new GoldenRecords(resource, keyFieldsOf(resource, seed), this.#chance);
    const DAY_MS = 86_400_000;
    for (let n = 0; n < RECORDS + (seed % 7); n++) this.#create(START - n * DAY_MS);
  }

  /** Each fifth change adds a record, each fifth removes one, and the others change one. */
  change(): void {
    const now = this.#time.now();
    const number = this.#chance.pick([...this.#live.keys()]);
    switch (this.#changes++ % 5) {
      case 1:
        this.#create(now);
        break;
      case 3:
        this.#live.delete(number);
        this.#api.list(this.#resource).remove(number);
        break;
      default:
        this.#put(number, this.#records.change(this.#live.get(number)!, number, now), now);
    }
  }

  /** Adds records that can't be published, one of each kind. */
  addRejects(): void {
    const now = this.#time.now();
    const record = () => this.#records.create((this.#next += 1), now);
    const keyless = () =>
      Object.fromEntries(
        Object.entries(record()).filter(
          ([name]) => !keyFieldsOf(this.#resource, this.#seed).includes(name),
        ),
      );
    const twin = [...this.#live.values()].at(-1); // on the same page as the rejects, which come behind it
    const large = { ...record(), note: 'Ω🍷"\n'.repeat(8_000) };
    const texts = [
      `"a text ${this.#seed}"`,
      textOf(keyless()),
      textOf({ ...twin, updated_at: new Date(now).toISOString(), name: 'a twin' }),
      textOf(large),
      textOf(record()).replace('{', '{"total":NaN,'),
    ];
    for (const text of texts) {
      const number = (this.#next += 1);
      this.#rejects.push(number);
      this.#api.list(this.#resource).put(number, text, now);
    }
  }

  removeRejects(): void {
    for (const number of this.#rejects) this.#api.list(this.#resource).remove(number);
  }

  /** New records, and records that change, have more fields from now on; at the second call fields of other types. */
  grow(): void {
    this.#records.growth += 1;
  }

  #create(at: number): void {
    const number = (this.#next += 1);
    this.#put(number, this.#records.create(number, at), at);
  }

  #put(number: number, record: Json, at: number): void {
    this.#live.set(number, record);
    this.#api.list(this.#resource).put(number, textOf(record), at);
  }
}
