import type { LedgerMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import type { Hooks } from '../observe/hooks.ts';
import { accountReport } from './account-report.ts';
import type { AccountFiles } from './account-files.ts';
import { accountRun, isFenced } from './account-run.ts';
import type { AccountRun, InstanceParts } from './account-run.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { FleetLog } from './fleet-log.ts';
import { fleetMessage } from './fleet-record.ts';
import type { AccountWord, FleetRecord, Owner } from './fleet-record.ts';
import { isQuarantined, isSuspect, lossesOf, MAX_LOSSES, PROBATION_MS } from './losses.ts';
import type { SharedOut, Told } from './member-data.ts';
import type { Report } from './report.ts';
import { nextStep } from './next-step.ts';
import type { Doing, Step } from './next-step.ts';
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
  readonly told: (known: readonly string[]) => Pick<Told, 'known' | 'held' | 'warm'>;
  /** What the fleet is told in between. */
  readonly report: () => Report['accounts'];
  readonly here: () => ReadonlyMap<string, { readonly doing: Doing; readonly error: unknown }>;
  readonly stopAll: () => Promise<void>;
}

/** How many accounts begin at once: the first instance to come would take all, before others are there. */
const MAX_STARTING = 4;
/** What an account costs that is given, and not run. */
const QUARANTINED_WEIGHT = 0.01;
/** How many accounts' images are read at once. */
const MAX_WARMING = 2;

interface Here {
  readonly config: AccountConfig;
  readonly run: AccountRun;
  readonly watched: Watched;
  /** When the owner was asked in this generation, on the scheduler's clock. */
  askedAt: number | undefined;
  /** When instances were lost that had just taken it; as of when it was taken here. */
  losses: readonly number[];
  /** When it was taken here, on the scheduler's clock. */
  takenAt: number | undefined;
  /** Since when the instance that had it has not run it any more, or may not; undefined while it does, and once it is read here. */
  silentSince: number | undefined;
  /** What it was quarantined upon: that is said once, and heard a little later. */
  judged: AccountWord | undefined;
}

export function fleetAccounts(options: FleetAccountsOptions): FleetAccounts {
  const { parts, name, folders, topic, log, watch, fleetHooks, onChange } = options;
  const { instance, scheduler } = parts;
  const all = new Map<string, Here>();
  /** By account, the generation in which it was given. */
  const held = new Map<string, number>();
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
  const tenure = (account: string) => ({
    generation: generation ?? 0,
    losses: (all.get(account)?.losses ?? []).map((at) => new Date(at).toISOString()),
  });
  const wordsOf = (account: string): LedgerMessages => ({
    claim: () => [fleetMessage(topic, { type: 'runs', ...own(account), ...tenure(account) })],
    settle: () => [fleetMessage(topic, { type: 'released', ...own(account) })],
  });
  const configOf = (account: string): AccountConfig | undefined => {
    const file = files.get(account);
    return file && 'config' in file ? file.config : undefined;
  };
  const isAsFiled = (account: string, { config }: Here) => configOf(account) === config;
  /** What is here of an account; made for one that is given, whose file is there. */
  const hereOf = (account: string): Here | undefined => {
    const known = all.get(account);
    if (known) return known;
    const config = configOf(account);
    if (!config) return undefined;
    const watched = watch(config);
    const run = accountRun({
      ...{ config, parts, onChange },
      hooks: watched.hooks,
      words: wordsOf(account),
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
    return here;
  };
  const counted = (is: (run: AccountRun) => boolean) =>
    [...all.values()].filter(({ run }) => is(run)).length;

  const weightOf = (account: string): number =>
    isQuarantined(log.words.get(account), now())
      ? QUARANTINED_WEIGHT
      : (all.get(account)?.run.weight() ?? 1);

  const say = (record: FleetRecord): Promise<void> => log.send(fleetMessage(topic, record));
  const ask = async (account: string, owner: Owner): Promise<void> => {
    const { instance: asked, name: ofAsked, generation: since } = owner;
    const whom = { instance: asked, name: ofAsked, generation: since };
    await say({ type: 'asks', ...own(account), generation: generation!, owner: whom });
  };
  const quarantine = (account: string, here: Here): void => {
    const word = log.words.get(account);
    if (here.judged === word) return;
    here.judged = word;
    here.silentSince = undefined;
    say({ type: 'quarantined', ...own(account) }).then(
      () => fleetHooks.onQuarantined?.({ account }),
      () => (here.judged = undefined), // it is looked at again
    );
  };
  /** What was wrong with it may have been mended. */
  const free = (account: string): void => {
    say({ type: 'released', ...own(account) }).catch(() => undefined); // it is over in an hour
  };
  /** It was taken for lost here while it was out of reach. What it says as it lets go ends the quarantine: the account is taken anew. */
  const disprove = (account: string, { run }: Here): void => {
    if (run.doing() !== 'running') return;
    fleetHooks.onAccount?.({ account, step: 'drop' });
    void run.stop();
  };
  /** This instance has said that it takes it: whoever is to have it would ask, and wait for an answer. */
  const takeBack = (account: string, { run }: Here): void => {
    const owner = log.words.get(account)?.owner?.instance ?? instance;
    if (owner !== instance || run.doing() !== 'nothing') return;
    say({ type: 'released', ...own(account) }).catch(() => undefined); // it is taken a little later
  };
  const isFull = (step: Step): boolean =>
    (step === 'claim' && counted((run) => run.isStarting()) >= MAX_STARTING) ||
    (step === 'warm' && counted((run) => run.doing() === 'warming') >= MAX_WARMING);
  /** One at a time: which of them takes the instance down is plain then. */
  const isOnProbation = () =>
    [...all.values()].some(
      ({ losses, takenAt = -Infinity }) => isSuspect(losses) && now() < takenAt + PROBATION_MS,
    );
  /** Claims an account, unless it has taken down too many instances, or may and another one may as well. */
  const claim = (account: string, here: Here): void => {
    const losses = lossesOf(log.words.get(account), { me: instance, members, now: now() });
    if (losses.length >= MAX_LOSSES) return quarantine(account, here);
    if (isSuspect(losses) && isOnProbation()) return;
    fleetHooks.onAccount?.({ account, step: 'claim' });
    here.losses = losses;
    here.takenAt = now();
    // Not waited for: who does not hear of it claims the account as well, and is the only one to have it then.
    say({ type: 'takes', ...own(account), ...tenure(account) }).catch(() => undefined);
    here.run.claim();
  };

  /** The account is to come here: from when it is asked for, or found to be without an owner, its handover takes time. */
  const watchSilence = (here: Here, word: AccountWord | undefined): void => {
    const last = word?.owner?.instance ?? word?.releasedBy;
    if (last === undefined || last === instance) return;
    const goesOn = word?.owner !== undefined && members.has(last);
    here.silentSince = goesOn ? here.askedAt : (here.silentSince ?? here.askedAt ?? now());
  };
  const take = (account: string, here: Here): void => {
    const word = log.words.get(account);
    const { run, askedAt } = here;
    if (isGiven(account) && run.doing() !== 'running') watchSilence(here, word);
    const step = nextStep({
      ...{ me: instance, generation, members, word },
      doing: run.doing(),
      isGiven: isGiven(account),
      askedMs: askedAt === undefined ? undefined : now() - askedAt,
    });
    if (isQuarantined(word, now())) return disprove(account, here);
    if (step === 'stay' || isFull(step)) return;
    if (run.failure() && step !== 'drop') return;
    if (step === 'claim') return claim(account, here);
    fleetHooks.onAccount?.({ account, step });
    if (step === 'warm') run.warm();
    else if (step === 'ask') {
      here.askedAt = now();
      // It is asked again: else the account is claimed without an answer.
      ask(account, word!.owner!).catch(() => (here.askedAt = undefined));
    } else if (step === 'drop' && run.doing() === 'running') {
      void run.stop().then(() => takeBack(account, here));
    } else void run.stop();
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
  const begin = (account: string): void => {
    folders.use(account);
    hereOf(account);
  };

  return {
    setFiles: (next) => (files = next),
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
        if (!isAsFiled(account, here)) {
          end(account, here);
          continue;
        }
        take(account, here);
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
    stopAll: async () => {
      isOver = true;
      await Promise.allSettled([...all.values()].map(({ run }) => run.stop()));
    },
  };
}
