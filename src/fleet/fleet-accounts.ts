import type { AccountConfig } from '../config/accounts.ts';
import { keyDigest } from '../config/key-digest.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { AccountFiles } from './account-files.ts';
import { accountReport } from './account-report.ts';
import { accountRun, isFenced } from './account-run.ts';
import type { InstanceContext } from './account-run.ts';
import { accountSteps } from './account-steps.ts';
import type { LocalAccountState, GroupGeneration } from './account-steps.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { FleetLog } from './fleet-log.ts';
import { isQuarantined } from './crashes.ts';
import type { FleetAssignment, MemberMetadata } from './member-metadata.ts';
import type { AccountPhase } from './next-step.ts';
import { fleetAnnouncements } from './fleet-announcements.ts';
import type { Report } from './report.ts';
import type { WarmFolders } from './warm-folders.ts';

export interface FleetAccountsOptions {
  readonly context: InstanceContext;
  /** Human-readable name of the instance. */
  readonly name: string;
  /** State folders of the fleet's accounts, one for each account. */
  readonly folders: WarmFolders;
  /** Name of the fleet's topic. */
  readonly topic: string;
  readonly log: FleetLog;
  readonly watch: (config: AccountConfig) => AccountObservers;
  readonly fleetHooks: FleetHooks;
  /** Called whenever another step with an account may be due. */
  readonly onChange: () => void;
}

/** Hooks and figures that observe one account, until `end` is called. */
export interface AccountObservers {
  readonly hooks: Hooks;
  /** Current figures of the account, for the report to the other instances. */
  readonly figures?: () => AccountFigures;
  readonly end: () => void;
}

/** The accounts of one instance: those that it serves, restores or stops. */
export interface FleetAccounts {
  /** Sets the accounts' files. An account whose file has changed is restarted; one whose file was removed or is invalid is stopped. */
  readonly setFiles: (files: AccountFiles) => void;
  /** Called when a generation of the fleet's Kafka group has begun. */
  readonly generationStarted: (generation: number, given: FleetAssignment) => void;
  /** Takes the next step, such as a claim, with each account. Rejects if the fleet's topic can't be read. */
  readonly step: () => Promise<void>;
  /** Returns the metadata that this instance sends to the fleet's Kafka group when it joins. */
  readonly memberMetadata: (
    known: readonly string[],
  ) => Pick<MemberMetadata, 'configured' | 'owned' | 'warm' | 'apiKeyDigests'>;
  /** Returns the report on this instance's accounts that is written to the fleet's topic between rebalances. */
  readonly report: () => Report['accounts'];
  readonly localAccounts: () => ReadonlyMap<
    string,
    { readonly doing: AccountPhase; readonly error: unknown }
  >;
  /** Called when the instance begins to leave: other instances will claim its accounts. */
  readonly startLeaving: () => void;
  readonly stopAll: () => Promise<void>;
}

/** Load of a quarantined account: close to zero, because the account is assigned but not served. */
const QUARANTINED_WEIGHT = 0.01;

interface LocalAccount extends LocalAccountState {
  readonly config: AccountConfig;
  readonly watched: AccountObservers;
}

export function fleetAccounts(options: FleetAccountsOptions): FleetAccounts {
  const { context, name, folders, topic, log, watch, fleetHooks, onChange } = options;
  const { instance, scheduler } = context;
  const all = new Map<string, LocalAccount>();
  /** Newest generation in which each account was assigned to this instance, by account. */
  const assignedSince = new Map<string, number>();
  let files: AccountFiles = new Map();
  /** Newest generation of the fleet's group, with its assignment; undefined before the first. */
  let standing: GroupGeneration | undefined;
  /** Whether the fleet's topic has been read up to where it ended when the newest generation began. */
  let isCurrent = false;
  let isLeaving = false;
  let isOver = false;

  const now = () => scheduler.now();
  const isGiven = (account: string) => standing?.assigned.get(account) === instance;
  const announcements = fleetAnnouncements({ instance, name, topic, log, scheduler });
  const takeStep = accountSteps({
    instance,
    accounts: all,
    fleetTopic: log,
    announcements,
    fleetHooks,
    scheduler,
  });
  const configOf = (account: string): AccountConfig | undefined => {
    const file = files.get(account);
    return file && 'config' in file ? file.config : undefined;
  };
  /**
   * Returns digests of the API keys of the accounts in `known`. A leaving instance instead returns those of the accounts that it still
   * serves: no other account may use their keys meanwhile.
   */
  const keysOf = (known: readonly string[]): ReadonlyMap<string, string> => {
    const configs = isLeaving
      ? [...all.values()].map(({ config }) => config)
      : known.flatMap((account) => configOf(account) ?? []);
    return new Map(configs.map(({ account, api }) => [account, keyDigest(api)]));
  };
  const isAsFiled = (account: string, { config }: LocalAccount) => configOf(account) === config;
  /** Creates the local state of an account that is assigned to this instance and has a valid file. */
  const begin = (account: string): void => {
    folders.use(account);
    const config = configOf(account);
    if (!config || all.has(account)) return;
    const watched = watch(config);
    const run = accountRun({
      ...{ config, context, onChange },
      hooks: watched.hooks,
      ledgerMessages: announcements.ledgerMessages(account, () => ({
        generation: standing?.generation ?? 0,
        crashTimes: here.crashTimes,
      })),
      onFirstResponse: () => {
        const { silentSince } = here;
        here.silentSince = undefined;
        if (silentSince === undefined) return;
        fleetHooks.onHandover?.({ account, elapsedMs: now() - silentSince });
      },
      onFailed: (error, delayMs) => {
        here.silentSince = undefined; // the failure is reported by other hooks
        if (isFenced(error)) fleetHooks.onFenced?.({ account });
        fleetHooks.onAccountFailed?.({ account, error, delayMs });
      },
    });
    const here: LocalAccount = {
      ...{ config, run, watched, releaseRequestedAt: undefined },
      ...{
        crashTimes: [],
        claimedAt: undefined,
        silentSince: undefined,
        quarantineBasis: undefined,
      },
    };
    all.set(account, here);
  };
  const weightOf = (account: string): number =>
    isQuarantined(log.accounts.get(account), now())
      ? QUARANTINED_WEIGHT
      : (all.get(account)?.run.weight() ?? 1);

  /** Ends an account's quarantine because its file has changed, which may have solved the problem. */
  const free = (account: string): void => {
    announcements.released(account).catch(() => undefined); // without it, the quarantine ends after an hour
  };
  const remove = (account: string, watched: AccountObservers): void => {
    all.delete(account);
    watched.end();
  };
  /**
   * Stops an account whose file has changed or was removed. If it is still assigned to this instance, it begins again with the new file.
   */
  const end = (account: string, { run, watched }: LocalAccount): void => {
    if (run.phase() === 'nothing') {
      if (isGiven(account) && isQuarantined(log.accounts.get(account), now())) free(account);
      remove(account, watched);
      onChange();
    } else if (run.phase() !== 'stopping') {
      fleetHooks.onAccount?.({ account, step: 'stop' });
      void run.stop().then(onChange);
    }
  };
  /** Removes an account that has stopped and is not assigned to this instance. */
  const forget = (account: string, { run, watched }: LocalAccount): void => {
    if (run.phase() !== 'nothing' || run.failure() || isGiven(account)) return;
    remove(account, watched);
  };
  /**
   * Forgets assignments of accounts that went to other instances: if the metadata reported them, the accounts would be assigned to this one
   * again.
   */
  const letGo = (): void => {
    for (const account of assignedSince.keys()) {
      if (all.has(account) || isGiven(account)) continue;
      assignedSince.delete(account);
      folders.release(account);
    }
  };

  return {
    setFiles: (next) => (files = next),
    generationStarted: (number, shared) => {
      standing = {
        generation: number,
        members: new Set(shared.members.map((member) => member.instance)),
        assigned: new Map(shared.accounts),
        apiKeyConflicts: shared.apiKeyConflicts ?? new Map(),
      };
      isCurrent = false;
      for (const here of all.values()) here.releaseRequestedAt = undefined;
      for (const account of shared.accounts.keys())
        if (isGiven(account)) assignedSince.set(account, number);
    },
    step: async () => {
      const newest = standing;
      if (!newest || isOver) return;
      if (!isCurrent) {
        await log.catchUp();
        isCurrent = newest === standing;
        if (!isCurrent) return onChange();
      }
      for (const account of newest.assigned.keys()) if (isGiven(account)) begin(account);
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
    memberMetadata: (configured) => ({
      configured,
      owned: new Map(
        [...assignedSince].map(([account, since]) => [
          account,
          { generation: since, weight: weightOf(account) },
        ]),
      ),
      warm: folders.warm(),
      apiKeyDigests: keysOf(configured),
    }),
    report: () =>
      Object.fromEntries(
        [...all].map(([account, { config, run, watched }]) => {
          const why = run.failure()?.error;
          const error = isFenced(why) ? undefined : why; // the new owner reports the account's state
          const figures = run.phase() === 'running' ? watched.figures?.() : undefined;
          return [account, accountReport({ weight: weightOf(account), config, error, figures })];
        }),
      ),
    localAccounts: () =>
      new Map(
        [...all].map(([account, { run }]) => [
          account,
          { doing: run.phase(), error: run.failure()?.error },
        ]),
      ),
    startLeaving: () => void (isLeaving = true),
    stopAll: async () => {
      isOver = true;
      await Promise.allSettled([...all.values()].map(({ run }) => run.stop()));
    },
  };
}
