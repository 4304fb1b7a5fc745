import { defer, merge, NEVER, switchMap } from 'rxjs';
import type { Subscription } from 'rxjs';
import type { Dispatcher } from 'undici';
import { openApi } from '../../src/account/api.ts';
import type { ConfigWith } from '../../src/config/config.ts';
import type { Destination } from '../../src/sinks/topics/destination.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { openLedger } from '../../src/account/ledger/ledger.ts';
import { quotas } from '../../src/account/quotas.ts';
import { openAccount } from '../../src/account/account.ts';
import { lostEventsText } from '../../src/observe/lost-events.ts';
import { listHooks } from '../../src/observe/list-hooks.ts';
import type { Hooks } from '../../src/observe/hooks.ts';
import { listTask } from '../../src/pipeline/list-task.ts';
import { listNamed } from '../../src/description/description.ts';
import { datesText } from '../../src/streams/paging/list-dates.ts';
import { SignalJobs } from '../../src/account/signal-jobs.ts';
import type { SimLedger } from '../account/ledger/sim-ledger.ts';
import type { Chance } from '../support/chance.ts';
import type { SimClient } from './sim-api.ts';
import { brokerOf } from './sim-broker.ts';
import type { CommitFate, SimBroker } from './sim-broker.ts';
import { compile, registryOf } from './sim-registry.ts';
import type { SimRegistry } from './sim-registry.ts';
import { signalsOf } from './sim-signals.ts';
import { startsIn, storeOf, writerIn } from './sim-store.ts';
import type { SimFolder } from './sim-store.ts';
import type { SimTime } from './sim-time.ts';

/** Model of an API with one list, as far as a process sees it. */
export interface ApiModel {
  /** `resource`: name of the list. */
  readonly traits: { readonly resource: string };
  /** Connections of one process. */
  dispatcher(client: SimClient): Dispatcher;
  /** Notifies the model that a process has dropped the page at a list offset, which it had requested ahead. */
  dropped(name: string, offset: number): void;
}

export interface World {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly chance: Chance;
  readonly time: SimTime;
  readonly api: ApiModel;
  readonly broker: SimBroker;
  /** Of requests, where the quota is scarce. */
  readonly ledger: SimLedger;
  readonly registry: SimRegistry;
  readonly destination: Destination;
  /** Whether the quota is one that binds. */
  readonly isScarce: boolean;
  /** What happened, for whoever looks into a failing seed. */
  readonly trace: ((line: string) => void) | undefined;
}

export interface Dangers {
  /** How likely a step is the last one of the process. */
  readonly crash: number;
  /** How likely the process stands still for a while at a step. */
  readonly pause: number;
  /** How likely a commit goes wrong. */
  readonly commit: number;
}

const FATES: readonly CommitFate[] = ['refused', 'left-open', 'unknown'];
const LONGEST_PAUSE_MS = 30_000;

/** The service of one resource as a process that can die, at any step, with all it had in mind. */
export class SimProcess {
  readonly name: string;
  readonly folder: SimFolder;
  readonly startedAt: number;
  state: 'running' | 'crashed' | { readonly error: unknown } = 'running';
  /** When it was over, by a crash or an error; Infinity while it runs. */
  endedAt = Infinity;
  dangers: Dangers;
  readonly #time: SimTime;
  #pausedUntil = -Infinity;
  #task: Subscription;

  constructor(name: string, world: World, folder: SimFolder, dangers: Dangers) {
    const { config, chance, time, api, broker, registry, destination, trace } = world;
    const { resource } = api.traits;
    this.name = name;
    this.folder = folder;
    this.dangers = dangers;
    this.#time = time;
    this.startedAt = time.now();
    const tell = (line: string) => trace?.(`${name}: ${line}`);

    const step = async (what: string): Promise<void> => {
      await time.sleep(1 + chance.below(8));
      if (this.state === 'running' && chance.is(this.dangers.crash)) {
        tell(`dies at ${what}`);
        this.#task.unsubscribe();
        this.#end('crashed');
      }
      if (this.state === 'running' && !this.isPaused && chance.is(this.dangers.pause)) {
        const ms = 1_000 + chance.below(LONGEST_PAUSE_MS);
        tell(`stands still at ${what} for ${ms} ms`);
        this.#pausedUntil = time.now() + ms;
      }
      await awake();
    };
    const awake = async (): Promise<void> => {
      while (this.isPaused) await time.sleep(this.#pausedUntil - time.now());
      if (this.state === 'crashed') await new Promise(() => undefined);
    };
    const fate = () => (chance.is(this.dangers.commit) ? chance.pick(FATES) : 'done');
    const scheduler = time.timersOf(() =>
      this.state === 'crashed' ? Infinity : this.#pausedUntil,
    );
    const random = chance.next;
    // Where it matters: else each takeover takes its time, in which nothing can go wrong.
    const { isScarce } = world;
    const ledger = openLedger({ instance: name, scheduler, wallNow: () => time.now() });
    const quota = quotas({
      config,
      scheduler,
      ...(isScarce && {
        storedStartsOf: startsIn(folder),
        ledger,
        writer: writerIn(folder),
        instance: name,
      }),
    });
    const inherited$ = defer(async () => {
      if (!isScarce) return;
      const ways = { step: () => step('a step of the ledger'), isCutOff: () => false };
      const inherited = await ledger.claim(world.ledger.of(ways, () => time.now()));
      quota.inherit(inherited);
      ledger.activate(inherited);
    });
    let isReading = listNamed(config.description, resource).keyCandidates.length === 1; // else its key is found out first
    const mayBeSent = () => !isScarce || ledger.isLeaseValid();
    const connections = api.dispatcher({
      name,
      awake,
      mayBeSent,
      isReading: () => isReading,
    });
    const connected = openApi({
      config: config.api,
      description: config.description,
      loginLimit: quota.login,
      scheduler,
      dispatcher: connections,
      random,
    });
    tell('starts');
    const signals = new SignalJobs({
      topic: signalsOf(broker, { step, awake, scheduler }),
      account: config.account,
      resources: [resource],
      scheduler,
      hooks: { onSignalsFailed: ({ error }) => tell(`signals fail: ${String(error)}`) },
    });
    const hooks: Hooks = {
      onKeyFields: () => (isReading = true),
      onRetry: ({ what, error }) => tell(`tries ${what} again: ${String(error)}`),
      onFailed: ({ error }) => tell(`fails: ${String(error)}`),
      onPublished: ({ lane, changes }) => {
        if (trace) for (const { op, key } of changes) tell(`${lane} publishes ${op} ${key}`);
      },
      onResync: ({ id, status, events }) => tell(`request ${id} is ${status}, ${events} events`),
      onDates: (found) => tell(`finds dates: ${datesText(found) ?? 'as written'}`),
      onVolatile: ({ fields }) => tell(`finds volatile: ${fields.join()}`),
      onTrouble: ({ trouble, offset }) => tell(`${trouble} at ${offset}`),
      onDropped: ({ offset }) => {
        tell(`drops the page at ${offset}`);
        api.dropped(name, offset);
      },
      onHeld: ({ gone, known }) => tell(`holds back ${gone} of ${known}`),
      onLost: ({ lost }) => tell(`finds lost: ${lostEventsText(lost)}`),
      onCertified: ({ certificate }) => {
        const { number, proof, read, records, total_records: total, undecided } = certificate;
        tell(
          `certifies ${number}: ${proof}, ${records} of ${total}, read ${read}, ${undecided} open`,
        );
      },
      onSwept: ({ number, proof, records }) => tell(`swept ${number}: ${proof} ${records}`),
    };
    const task$ = listTask({
      task: {
        account: openAccount({ config, api: connected, quotas: quota }),
        list: listNamed(config.description, resource),
        config,
        destination,
        hooks: listHooks(hooks, resource),
        scheduler,
        wallClock: () => scheduler.now(),
        stop$: NEVER,
      },
      instance: name,
      log: brokerOf(broker, { step, fate, now: () => time.now() }),
      registry: registryOf(registry, step),
      store: storeOf(folder, step),
      resyncs: signals.task(resource),
      random,
      compile,
    });
    const served$ = inherited$.pipe(switchMap(() => merge(task$, signals.following$)));
    this.#task = merge(served$, ledger.failed$).subscribe({
      error: (error: unknown) => {
        tell(`ends: ${String(error)}`);
        this.#end({ error });
      },
    });
  }

  get isPaused(): boolean {
    return this.#time.now() < this.#pausedUntil;
  }

  get isFenced(): boolean {
    const { state } = this;
    if (typeof state === 'string') return false;
    return state.error instanceof CellarstreamError && state.error.code === 'FENCED';
  }

  #end(state: 'crashed' | { readonly error: unknown }): void {
    this.state = state;
    this.endedAt = this.#time.now();
  }
}
