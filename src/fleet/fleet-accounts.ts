import type { LedgerMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { AccountFiles } from './account-files.ts';
import { accountRun } from './account-run.ts';
import type { AccountRun, InstanceParts } from './account-run.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { FleetLog } from './fleet-log.ts';
import { fleetMessage } from './fleet-record.ts';
import type { Owner } from './fleet-record.ts';
import type { SharedOut, Told } from './member-data.ts';
import { nextStep } from './next-step.ts';
import type { Doing, Step } from './next-step.ts';
import { warmFolders } from './warm-folders.ts';

export interface FleetAccountsOptions {
  readonly parts: InstanceParts;
  /** Of the instance, as people know it. */
  readonly name: string;
  /** The instance's state folder: one of its own for each account. */
  readonly stateDir: string;
  /** The fleet's. */
  readonly topic: string;
  readonly log: FleetLog;
  readonly hooksOf: (config: AccountConfig) => Hooks;
  readonly fleetHooks: FleetHooks;
  /** Called whenever there may be another step to take. */
  readonly onChange: () => void;
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
  readonly told: (known: readonly string[]) => Pick<Told, 'known' | 'held' | 'warm'>;
  readonly here: () => ReadonlyMap<string, { readonly doing: Doing; readonly error: unknown }>;
  readonly stopAll: () => Promise<void>;
}

/** How many accounts begin at once: the first instance to come would take all, before others are there. */
const MAX_STARTING = 4;
/** How many accounts' images are read at once. */
const MAX_WARMING = 2;

interface Here {
  readonly config: AccountConfig;
  readonly run: AccountRun;
  /** When the owner was asked in this generation, on the scheduler's clock. */
  askedAt: number | undefined;
}

export function fleetAccounts(options: FleetAccountsOptions): FleetAccounts {
  const { parts, name, topic, log, hooksOf, fleetHooks, onChange } = options;
  const { instance, scheduler } = parts;
  const all = new Map<string, Here>();
  /** By account, the generation in which it was given. */
  const held = new Map<string, number>();
  const folders = warmFolders(options.stateDir, scheduler);
  let files: AccountFiles = new Map();
  let generation: number | undefined;
  let given = new Map<string, string>();
  let members: ReadonlySet<string> = new Set();
  /** Whether all that was said before the generation began is known. */
  let isCurrent = false;
  let isOver = false;

  const now = () => scheduler.now();
  const isGiven = (account: string) => given.get(account) === instance;
  const own = (account: string) => ({
    ...{ account, instance, name },
    at: new Date(now()).toISOString(),
  });
  const wordsOf = (account: string): LedgerMessages => ({
    claim: () => [
      fleetMessage(topic, { type: 'runs', ...own(account), generation: generation ?? 0 }),
    ],
    settle: () => [fleetMessage(topic, { type: 'released', ...own(account) })],
  });
  const configOf = (account: string): AccountConfig | undefined => {
    const file = files.get(account);
    return file && 'config' in file ? file.config : undefined;
  };
  /** What is here of an account; made for one that is given, whose file is there. */
  const hereOf = (account: string): Here | undefined => {
    const known = all.get(account);
    if (known) return known;
    const config = configOf(account);
    if (!config) return undefined;
    const run = accountRun({
      ...{ config, parts, onChange },
      hooks: hooksOf(config),
      words: wordsOf(account),
      onFailed: (error, delayMs) => fleetHooks.onAccountFailed?.({ account, error, delayMs }),
    });
    const here = { config, run, askedAt: undefined };
    all.set(account, here);
    return here;
  };
  const counted = (is: (run: AccountRun) => boolean) =>
    [...all.values()].filter(({ run }) => is(run)).length;

  const ask = async (account: string, owner: Owner): Promise<void> => {
    const { instance: asked, name: ofAsked, generation: since } = owner;
    const whom = { instance: asked, name: ofAsked, generation: since };
    await log.send({ type: 'asks', ...own(account), generation: generation!, owner: whom });
  };
  const isFull = (step: Step): boolean =>
    (step === 'claim' && counted((run) => run.isStarting()) >= MAX_STARTING) ||
    (step === 'warm' && counted((run) => run.doing() === 'warming') >= MAX_WARMING);

  const take = (account: string, here: Here): void => {
    const word = log.words.get(account);
    const { run, askedAt } = here;
    const step = nextStep({
      ...{ me: instance, generation, members, word },
      doing: run.doing(),
      isGiven: isGiven(account),
      askedMs: askedAt === undefined ? undefined : now() - askedAt,
    });
    if (step === 'stay' || isFull(step)) return;
    if (run.failure() && step !== 'drop') return;
    fleetHooks.onAccount?.({ account, step });
    if (step === 'claim') {
      // Not waited for: who does not hear of it claims the account as well, and is the only one to have it then.
      log.send({ type: 'takes', ...own(account), generation: generation! }).catch(() => undefined);
      run.claim();
    } else if (step === 'warm') run.warm();
    else if (step === 'ask') {
      here.askedAt = now();
      // It is asked again: else the account is claimed without an answer.
      ask(account, word!.owner!).catch(() => (here.askedAt = undefined));
    } else void run.stop();
  };
  /** What has come to its end, and is not to begin again. */
  const forget = (account: string, { run }: Here): void => {
    if (run.doing() !== 'nothing' || run.failure() || isGiven(account)) return;
    all.delete(account);
    held.delete(account);
    folders.leave(account);
  };
  const begin = (account: string): void => {
    folders.use(account);
    hereOf(account);
  };

  return {
    setFiles: (next) => {
      files = next;
      for (const [account, { config, run }] of all) {
        if (configOf(account) === config) continue;
        fleetHooks.onAccount?.({ account, step: 'stop' });
        // Begun again with what the file says now, if it is given still.
        void run.stop().then(() => {
          all.delete(account);
          onChange();
        });
      }
    },
    give: (number, shared) => {
      generation = number;
      given = new Map(shared.accounts);
      members = new Set(shared.members.map((member) => member.instance));
      isCurrent = false;
      for (const here of all.values()) here.askedAt = undefined;
      for (const account of given.keys()) if (isGiven(account)) held.set(account, number);
    },
    step: async () => {
      if (generation === undefined || isOver) return;
      if (!isCurrent) {
        const of = generation;
        await log.caughtUp();
        isCurrent = of === generation;
        if (!isCurrent) return onChange();
      }
      for (const account of given.keys()) if (isGiven(account)) begin(account);
      for (const [account, here] of all) {
        take(account, here);
        forget(account, here);
      }
      folders.clear();
    },
    told: (known) => ({
      known,
      held: new Map(
        [...held].map(([account, since]) => {
          const weight = all.get(account)?.run.weight() ?? 1;
          return [account, { generation: since, weight }];
        }),
      ),
      warm: folders.warm(),
    }),
    here: () =>
      new Map(
        [...all].map(([account, { run }]) => [
          account,
          { doing: run.doing(), error: run.failure()?.error },
        ]),
      ),
    stopAll: async () => {
      isOver = true;
      await Promise.allSettled([...all.values()].map(({ run }) => run.stop()));
    },
  };
}
