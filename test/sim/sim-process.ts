import { Subject } from 'rxjs';
import type { Subscription } from 'rxjs';
import { openApi } from '../../src/api.ts';
import type { ConfigWith } from '../../src/config.ts';
import type { Destination } from '../../src/destination.ts';
import { CellarstreamError } from '../../src/errors.ts';
import { quotas } from '../../src/quotas.ts';
import { resourceTask } from '../../src/resource-task.ts';
import type { Chance } from './chance.ts';
import type { SimApi } from './sim-api.ts';
import { brokerOf } from './sim-broker.ts';
import type { CommitFate, SimBroker } from './sim-broker.ts';
import { registryOf } from './sim-registry.ts';
import type { SimRegistry } from './sim-registry.ts';
import { storeOf } from './sim-store.ts';
import type { SimFolder } from './sim-store.ts';
import type { SimTime } from './sim-time.ts';

export interface World {
  readonly config: ConfigWith<'api' | 'kafka' | 'registry'>;
  readonly chance: Chance;
  readonly time: SimTime;
  readonly api: SimApi;
  readonly broker: SimBroker;
  readonly registry: SimRegistry;
  readonly destination: Destination;
  /** What happened, for whoever looks into a failing seed. */
  readonly trace: (line: string) => void;
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
const PAUSE_MS = 20_000;

/** The service of one resource as a process that can die, at any step, with all it had in mind. */
export class SimProcess {
  readonly name: string;
  readonly folder: SimFolder;
  state: 'running' | 'crashed' | 'stopped' | { readonly error: unknown } = 'running';
  isPaused = false;
  dangers: Dangers;
  readonly #stop$ = new Subject<void>();
  #task: Subscription;

  constructor(name: string, world: World, folder: SimFolder, dangers: Dangers) {
    const { config, chance, time, api, broker, registry, destination, trace } = world;
    this.name = name;
    this.folder = folder;
    this.dangers = dangers;
    const tell = (line: string) => trace(`${name}: ${line}`);

    const step = async (what: string): Promise<void> => {
      await time.sleep(1 + chance.below(8));
      if (this.state === 'running' && chance.is(this.dangers.crash)) {
        tell(`dies at ${what}`);
        this.#task.unsubscribe();
        this.state = 'crashed';
      }
      if (this.state === 'running' && !this.isPaused && chance.is(this.dangers.pause)) {
        tell(`stands still at ${what}`);
        this.isPaused = true;
        await time.sleep(PAUSE_MS);
        this.isPaused = false;
        tell(`goes on at ${what}`);
      }
      await awake();
    };
    /** Waits while the process stands still; for ever when it is dead. */
    const awake = async (): Promise<void> => {
      while (this.isPaused) await time.sleep(1_000);
      if (this.state === 'crashed') await new Promise(() => undefined);
    };
    const fate = () => (chance.is(this.dangers.commit) ? chance.pick(FATES) : 'done');
    const { scheduler } = time;
    const random = chance.next;
    const quota = quotas({ config, scheduler });
    const connections = api.dispatcher(awake);
    const connected = openApi({ config: config.api, loginLimit: quota.login, scheduler, dispatcher: connections, random }); // prettier-ignore
    tell('starts');
    this.#task = resourceTask({
      resource: api.traits.resource,
      config,
      instance: name,
      api: connected,
      quota,
      broker: brokerOf(broker, { step, fate, now: () => time.now() }),
      registry: registryOf(registry, step),
      destination,
      store: storeOf(folder, step),
      stop$: this.#stop$,
      scheduler,
      random,
      hooks: {
        onRetry: ({ what, error }) => tell(`tries ${what} again: ${String(error)}`),
        onFailed: ({ error }) => tell(`fails: ${String(error)}`),
        onPublished: ({ lane, changes }) => {
          for (const { op, key } of changes) tell(`${lane} publishes ${op} ${key}`);
        },
        onTrouble: ({ trouble, offset }) => tell(`${trouble} at ${offset}`),
        onHeld: ({ gone, known }) => tell(`holds back ${gone} of ${known}`),
        onSwept: ({ number, proof, records }) => tell(`swept ${number}: ${proof} ${records}`),
      },
    }).subscribe({
      error: (error: unknown) => {
        tell(`ends: ${String(error)}`);
        this.state = { error };
      },
      complete: () => {
        tell('stops');
        this.state = 'stopped';
      },
    });
  }

  get isFenced(): boolean {
    const { state } = this;
    if (typeof state === 'string') return false;
    return state.error instanceof CellarstreamError && state.error.code === 'FENCED';
  }

  stop(): void {
    this.#stop$.next();
  }
}
