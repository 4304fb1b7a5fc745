import { BehaviorSubject, ReplaySubject } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { AccountConfig, AccountFile } from '../../../src/config/accounts.ts';
import { describeError } from '../../../src/core/errors.ts';
import { FleetMember } from '../../../src/fleet/fleet-member.ts';
import type { WarmFolders } from '../../../src/fleet/warm-folders.ts';
import type { Chance } from '../../support/chance.ts';
import { SimFolder } from '../sim-store.ts';
import type { SimTime } from '../sim-time.ts';
import type { FleetTold } from './fleet-told.ts';
import { serve } from './serve.ts';
import type { Server } from './serve.ts';
import type { SimAccount } from './sim-account.ts';
import { warmTasks } from './tasks.ts';
import { FLEET, fleetLogOf } from './sim-fleet-topic.ts';
import type { SimFleetLog, SimFleetTopic } from './sim-fleet-topic.ts';
import { groupOf } from './sim-group.ts';
import type { SimGroup } from './sim-group.ts';
import type { SimLine } from './sim-line.ts';

export interface FleetWorld {
  readonly time: SimTime;
  readonly chance: Chance;
  readonly group: SimGroup;
  readonly topic: SimFleetTopic;
  readonly accounts: ReadonlyMap<string, SimAccount>;
  /** How long it takes to read an account's images, at most, ms. */
  readonly imagesMs: number;
  /** What instances did with accounts. */
  readonly told: FleetTold[];
  readonly trace: ((line: string) => void) | undefined;
}

/** What a machine keeps: a folder an account. */
export class SimMachine {
  readonly folders = new Map<string, SimFolder>();
  readonly warm = new Set<string>();
  /** Its clock, ahead of the true one, ms. */
  skewMs = 0;

  folder(account: string): SimFolder {
    const folder = this.folders.get(account) ?? new SimFolder();
    this.folders.set(account, folder);
    return folder;
  }
}

/** A process of the fleet, with the real code in it: it can be stopped, killed, stand still, and be cut off. */
export class FleetInstance {
  readonly name: string;
  readonly machine: SimMachine;
  readonly startedAt: number;
  state: 'running' | 'stopping' | 'over' = 'running';
  error: unknown;
  /** From the API. */
  isDropped = false;
  /** What happens to it at its next step of that kind. */
  trap: { readonly at: string; readonly spring: () => void } | undefined;
  onDeath: (() => void) | undefined;
  memberId = '';
  /** Of the group, as it tells people; undefined while it says that it is out. */
  generation: number | undefined;
  /** How long accounts took to come here, ms. */
  readonly handovers: number[] = [];
  readonly log: SimFleetLog;
  readonly #world: FleetWorld;
  readonly #files$: BehaviorSubject<ReadonlyMap<string, AccountFile>>;
  /** What its folder holds. */
  #folder: ReadonlyMap<string, AccountFile>;
  readonly #scheduler: SchedulerLike;
  readonly #stop$ = new ReplaySubject<void>(1);
  #heldUntil = -Infinity;
  #cutOffUntil = -Infinity;
  /** From the group's coordinator alone. */
  #loseGroupUntil = -Infinity;

  constructor(name: string, world: FleetWorld, machine: SimMachine, known: readonly string[]) {
    const { time, chance, group, topic } = world;
    this.name = name;
    this.machine = machine;
    this.startedAt = time.now();
    this.#world = world;
    this.#folder = this.#files(known);
    this.#files$ = new BehaviorSubject(this.#folder);
    const scheduler = time.timersOf(() => (this.state === 'over' ? Infinity : this.#heldUntil));
    this.#scheduler = scheduler;
    const line: SimLine = { step: (what) => this.#step(what), isCutOff: () => this.isCutOff };
    const toGroup: SimLine = {
      ...line,
      isCutOff: () => this.isCutOff || time.now() < this.#loseGroupUntil,
    };
    this.log = fleetLogOf({ topic, line, time, scheduler, chance });
    const server = (account: string): Server => ({
      ...{ instance: name, time, scheduler, chance, topic, line },
      ...{ account, folder: machine.folder(account) },
      wallNow: () => time.now() + machine.skewMs,
      awake: () => this.#awake(),
      isDropped: () => this.isDropped,
    });
    const member = new FleetMember({
      group: groupOf(group, toGroup, scheduler, (id) => (this.memberId = id)),
      files$: this.#files$,
      stop$: this.#stop$,
      accounts: {
        ...{
          name,
          topic: FLEET,
          log: this.log,
          watch: () => ({ hooks: {}, end: () => undefined }),
        },
        context: {
          instance: name,
          scheduler,
          work: {
            warm: async ({ account }, signal) => {
              const { data } = world.accounts.get(account)!;
              if (data) await warmTasks(data, server(account), signal);
              const ms = data ? 0 : chance.below(world.imagesMs);
              for (let k = 0; k < 4 && !signal.aborted; k++) {
                await time.sleep(ms / 4);
                await line.step(`warm ${account}`);
              }
              signal.throwIfAborted();
              machine.warm.add(account);
            },
            serve: (serving) => {
              const { account } = serving.config;
              machine.warm.add(account);
              return serve(server(account), world.accounts.get(account)!, serving);
            },
          },
        },
        folders: this.#folders(),
        fleetHooks: {
          onGeneration: ({ number }) => this.#tell({ what: 'generation', number }),
          onAccount: ({ account, step }) => this.#tell({ what: step, account }),
          onAccountFailed: ({ account, error }) => this.#tell({ what: 'failed', account, error }),
          onFleet: (view) => (this.generation = view.generation),
          onHandover: ({ elapsedMs }) => this.handovers.push(elapsedMs),
          onRetry: ({ error }) => world.trace?.(`${name}: tries again: ${describeError(error)}`),
        },
      },
    });
    member.run().then(
      () => this.#end(undefined),
      (error: unknown) => this.#end(error),
    );
    world.trace?.(`${name}: starts, knows ${known.join()}`);
  }

  get known(): readonly string[] {
    return [...this.#folder.keys()];
  }

  get isPaused(): boolean {
    return this.#world.time.now() < this.#heldUntil;
  }

  /** From Kafka. */
  get isCutOff(): boolean {
    return this.#world.time.now() < this.#cutOffUntil;
  }

  get reachesGroup(): boolean {
    return this.#world.time.now() >= this.#loseGroupUntil;
  }

  get isReachable(): boolean {
    return this.state !== 'over' && !this.isPaused && !this.isCutOff;
  }

  /** Whether it can take an account just now. */
  get isWell(): boolean {
    return this.state === 'running' && this.isReachable && this.reachesGroup;
  }

  setFiles(known: readonly string[], changed?: string): void {
    const before = this.#folder;
    const next = this.#files(known);
    const same = [...next].map(([account, file]) => {
      const old = account === changed ? undefined : before.get(account);
      return [account, old ?? file] as const;
    });
    // It looks at its folder now and then; not while it stands still.
    this.#folder = new Map(same);
    this.#scheduler.schedule(() => {
      if (this.#files$.value === this.#folder) return;
      this.#world.trace?.(`${this.name}: files ${known.join()}, changed ${changed}`);
      this.#files$.next(this.#folder);
    });
  }

  /** SIGKILL. */
  kill(): void {
    if (this.state === 'over') return;
    this.#world.trace?.(`${this.name}: killed`);
    this.state = 'over';
    this.onDeath?.();
  }

  /** SIGTERM. */
  stop(): void {
    if (this.state !== 'running') return;
    this.#world.trace?.(`${this.name}: is stopped`);
    this.state = 'stopping';
    this.#stop$.next();
  }

  /** SIGSTOP, and SIGCONT so much later. */
  pause(ms: number): void {
    this.#world.trace?.(`${this.name}: stands still for ${ms} ms`);
    this.#heldUntil = Math.max(this.#heldUntil, this.#world.time.now() + ms);
  }

  /** From Kafka, for so long at the least. */
  cutOff(ms: number): void {
    this.#world.trace?.(`${this.name}: is cut off for ${ms} ms`);
    this.#cutOffUntil = Math.max(this.#cutOffUntil, this.#world.time.now() + ms);
  }

  /** From the broker that coordinates the group; it goes on asking and declaring. */
  loseGroup(ms: number): void {
    this.#world.trace?.(`${this.name}: does not reach the coordinator for ${ms} ms`);
    this.#loseGroupUntil = this.#world.time.now() + ms;
  }

  #end(error: unknown): void {
    this.#world.trace?.(
      `${this.name}: ends${error === undefined ? '' : ` with ${describeError(error)}`}`,
    );
    this.state = 'over';
    this.error = error;
  }

  #files(known: readonly string[]): ReadonlyMap<string, AccountFile> {
    const { accounts } = this.#world;
    const configOf = (account: string): AccountConfig => ({ ...accounts.get(account)!.config });
    return new Map(known.map((account) => [account, { config: configOf(account) }]));
  }

  #folders(): WarmFolders {
    const { warm } = this.machine;
    return {
      use: () => undefined,
      release: () => undefined,
      warm: () => [...warm],
      clear: () => undefined,
    };
  }

  #tell(told: Omit<FleetTold, 'at' | 'instance' | 'read'>): void {
    const { time, trace } = this.#world;
    const { what, account = '', number = '', error } = told;
    const why = error === undefined ? '' : describeError(error);
    trace?.(`${this.name}: ${what} ${account}${number} ${why}`);
    const read = this.log.read.length;
    this.#world.told.push({ ...told, at: time.now(), instance: this, read });
  }

  async #step(what: string): Promise<void> {
    const { time, chance } = this.#world;
    await time.sleep(1 + chance.below(chance.is(0.03) ? 800 : 12));
    if (this.trap && this.state !== 'over' && what.startsWith(this.trap.at)) {
      const { spring } = this.trap;
      this.trap = undefined;
      this.#world.trace?.(`${this.name}: at ${what}:`);
      spring();
    }
    await this.#awake();
  }

  async #awake(): Promise<void> {
    const { time } = this.#world;
    while (this.#heldUntil > time.now() && this.state !== 'over')
      await time.sleep(this.#heldUntil - time.now());
    if (this.state === 'over') await new Promise(() => undefined);
  }
}
