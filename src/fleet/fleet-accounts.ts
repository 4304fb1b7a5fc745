import type { AccountConfig } from '../config/accounts.ts';
import { keyDigest } from '../config/key-digest.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { AccountFiles } from './account-files.ts';
import { accountReport } from './account-report.ts';
import { accountRun, isFenced } from './account-run.ts';
import type { InstanceParts } from './account-run.ts';
import { accountSteps } from './account-steps.ts';
import type { Course, Standing } from './account-steps.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { FleetLog } from './fleet-log.ts';
import { isQuarantined } from './losses.ts';
import type { SharedOut, Told } from './member-data.ts';
import type { Doing } from './next-step.ts';
import { ownWords } from './own-words.ts';
import type { Report } from './report.ts';
import type { WarmFolders } from './warm-folders.ts';

export interface FleetAccountsOptions {
  readonly parts: InstanceParts;
  /** Of the instance, as people know it. */
  readonly name: string;
  /** One of its own for each account. */
  readonly folders: WarmFolders;
  /** The fleet's. */
  readonly topic: string;
  readonly log: FleetLog;
  readonly watch: (config: AccountConfig) => Watched;
  readonly fleetHooks: FleetHooks;
  /** Called whenever there may be another step to take. */
  readonly onChange: () => void;
}

/** Who is told of an account, until its end. */
export interface Watched {
  readonly hooks: Hooks;
  /** How it is now, to be told to the other instances. */
  readonly figures?: () => AccountFigures;
  readonly end: () => void;
}

/** The accounts of one instance: those that it runs, gets ready for, or is letting go of. */
export interface FleetAccounts {
  /** What is known of the files. An account whose file has changed begins again; one whose file is gone, or wrong, ends. */
  readonly setFiles: (files: AccountFiles) => void;
  /** A generation of the group has begun. */
  readonly give: (generation: number, given: SharedOut) => void;
  /** Takes the next step with each account. Rejects when Kafka does not say who runs what. */
  readonly step: () => Promise<void>;
  /** What the group is told. */
  readonly told: (known: readonly string[]) => Pick<Told, 'known' | 'held' | 'warm' | 'keys'>;
  /** What the fleet is told in between. */
  readonly report: () => Report['accounts'];
  readonly here: () => ReadonlyMap<string, { readonly doing: Doing; readonly error: unknown }>;
  /** From now on others are to take what is run here. */
  readonly leave: () => void;
  readonly stopAll: () => Promise<void>;
}

/** What an account costs that is given, and not run. */
const QUARANTINED_WEIGHT = 0.01;

interface Here extends Course {
  readonly config: AccountConfig;
  readonly watched: Watched;
}

export function fleetAccounts(options: FleetAccountsOptions): FleetAccounts {
  const { parts, name, folders, topic, log, watch, fleetHooks, onChange } = options;
  const { instance, scheduler } = parts;
  const all = new Map<string, Here>();
  /** By account, the generation in which it was given. */
  const held = new Map<string, number>();
  let files: AccountFiles = new Map();
  /** Undefined while no generation is known. */
  let standing: Standing | undefined;
  /** Whether all that was said before the generation began is known. */
  let isCurrent = false;
  let isLeaving = false;
  let isOver = false;

  const now = () => scheduler.now();
  const isGiven = (account: string) => standing?.given.get(account) === instance;
  const own = ownWords({ instance, name, topic, log, scheduler });
  const takeStep = accountSteps({ instance, courses: all, fleet: log, own, fleetHooks, scheduler });
  const configOf = (account: string): AccountConfig | undefined => {
    const file = files.get(account);
    return file && 'config' in file ? file.config : undefined;
  };
  /** Of what it has files of; as it leaves, of what it still runs: no other account is to have that key meanwhile. */
  const keysOf = (known: readonly string[]): ReadonlyMap<string, string> => {
    const configs = isLeaving
      ? [...all.values()].map(({ config }) => config)
      : known.flatMap((account) => configOf(account) ?? []);
    return new Map(configs.map(({ account, api }) => [account, keyDigest(api)]));
  };
  const isAsFiled = (account: string, { config }: Here) => configOf(account) === config;
  /** An account that is given, and whose file is there, is here from now on. */
  const begin = (account: string): void => {
    folders.use(account);
    const config = configOf(account);
    if (!config || all.has(account)) return;
    const watched = watch(config);
    const run = accountRun({
      ...{ config, parts, onChange },
      hooks: watched.hooks,
      words: own.withLedger(account, () => ({
        generation: standing?.generation ?? 0,
        losses: here.losses,
      })),
      onAnswered: () => {
        const { silentSince } = here;
        here.silentSince = undefined;
        if (silentSince === undefined) return;
        fleetHooks.onHandover?.({ account, elapsedMs: now() - silentSince });
      },
      onFailed: (error, delayMs) => {
        here.silentSince = undefined; // what it waits for is told otherwise
        if (isFenced(error)) fleetHooks.onFenced?.({ account });
        fleetHooks.onAccountFailed?.({ account, error, delayMs });
      },
    });
    const here: Here = {
      ...{ config, run, watched, askedAt: undefined },
      ...{ losses: [], takenAt: undefined, silentSince: undefined, judged: undefined },
    };
    all.set(account, here);
  };
  const weightOf = (account: string): number =>
    isQuarantined(log.words.get(account), now())
      ? QUARANTINED_WEIGHT
      : (all.get(account)?.run.weight() ?? 1);

  /** What was wrong with it may have been mended. */
  const free = (account: string): void => {
    own.released(account).catch(() => undefined); // it is over in an hour
  };
  const remove = (account: string, watched: Watched): void => {
    all.delete(account);
    watched.end();
  };
  /** Its file has changed, or is gone: it begins again with what that says now, if it is given still. */
  const end = (account: string, { run, watched }: Here): void => {
    if (run.doing() === 'nothing') {
      if (isGiven(account) && isQuarantined(log.words.get(account), now())) free(account);
      remove(account, watched);
      onChange();
    } else if (run.doing() !== 'stopping') {
      fleetHooks.onAccount?.({ account, step: 'stop' });
      void run.stop().then(onChange);
    }
  };
  /** What has come to its end, and is not to begin again. */
  const forget = (account: string, { run, watched }: Here): void => {
    if (run.doing() !== 'nothing' || run.failure() || isGiven(account)) return;
    remove(account, watched);
  };
  /** Who tells of what it has held before is given it again, whoever has it since. */
  const letGo = (): void => {
    for (const account of held.keys()) {
      if (all.has(account) || isGiven(account)) continue;
      held.delete(account);
      folders.leave(account);
    }
  };

  return {
    setFiles: (next) => (files = next),
    give: (number, shared) => {
      standing = {
        generation: number,
        members: new Set(shared.members.map((member) => member.instance)),
        given: new Map(shared.accounts),
        twins: shared.twins ?? new Map(),
      };
      isCurrent = false;
      for (const here of all.values()) here.askedAt = undefined;
      for (const account of shared.accounts.keys()) if (isGiven(account)) held.set(account, number);
    },
    step: async () => {
      const newest = standing;
      if (!newest || isOver) return;
      if (!isCurrent) {
        await log.caughtUp();
        isCurrent = newest === standing;
        if (!isCurrent) return onChange();
      }
      for (const account of newest.given.keys()) if (isGiven(account)) begin(account);
      for (const [account, here] of all) {
        if (!isAsFiled(account, here)) {
          end(account, here);
          continue;
        }
        takeStep(account, here, newest);
        forget(account, here);
      }
      letGo();
      folders.clear();
    },
    told: (known) => ({
      known,
      held: new Map(
        [...held].map(([account, since]) => [
          account,
          { generation: since, weight: weightOf(account) },
        ]),
      ),
      warm: folders.warm(),
      keys: keysOf(known),
    }),
    report: () =>
      Object.fromEntries(
        [...all].map(([account, { config, run, watched }]) => {
          const why = run.failure()?.error;
          const error = isFenced(why) ? undefined : why; // whoever has it tells how it is
          const figures = run.doing() === 'running' ? watched.figures?.() : undefined;
          return [account, accountReport({ weight: weightOf(account), config, error, figures })];
        }),
      ),
    here: () =>
      new Map(
        [...all].map(([account, { run }]) => [
          account,
          { doing: run.doing(), error: run.failure()?.error },
        ]),
      ),
    leave: () => void (isLeaving = true),
    stopAll: async () => {
      isOver = true;
      await Promise.allSettled([...all.values()].map(({ run }) => run.stop()));
    },
  };
}
