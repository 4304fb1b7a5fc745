import type { SchedulerLike } from 'rxjs';
import type { AccountRun } from './account-run.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { AccountTopicState } from './fleet-record.ts';
import type { FleetTopicState } from './fleet-topic-state.ts';
import { isQuarantined, isSuspect, crashTimesOf, MAX_CRASHES, PROBATION_MS } from './crashes.ts';
import { nextStep } from './next-step.ts';
import type { AccountStep } from './next-step.ts';
import type { FleetAnnouncements } from './fleet-announcements.ts';
import type { ApiKeyConflicts } from './api-key-conflicts.ts';

/** A generation of the fleet's Kafka group, that is, the period between two rebalances, with its assignment of accounts. */
export interface GroupGeneration {
  readonly generation: number;
  /** Instance ids of the generation's members. */
  readonly members: ReadonlySet<string>;
  /** Id of the instance that each account is assigned to, by account. */
  readonly assigned: ReadonlyMap<string, string>;
  /** Accounts that no instance may serve because another account has the same API key. */
  readonly apiKeyConflicts: ApiKeyConflicts;
}

/** State of an account at this instance. Times are on the scheduler's clock. */
export interface LocalAccountState {
  readonly run: AccountRun;
  /** When this instance asked the account's owner for a release in the current generation; undefined if it has not. */
  releaseRequestedAt: number | undefined;
  /** Times at which instances crashed shortly after they claimed this account, as known when this instance claimed it. */
  crashTimes: readonly number[];
  /** When this instance claimed the account; undefined if it has not. */
  claimedAt: number | undefined;
  /**
   * When the handover of the account began: its previous owner stopped serving it, or was asked for a release. Undefined until then, and
   * after the first response to this instance.
   */
  silentSince: number | undefined;
  /**
   * State of the account in the fleet's topic when this instance quarantined it: prevents a second announcement of the quarantine before
   * the first has been read back.
   */
  quarantineBasis: AccountTopicState | undefined;
}

export interface AccountStepsOptions {
  /** Unique id of this process. */
  readonly instance: string;
  /** State of every account that this instance serves, restores or stops. */
  readonly accounts: ReadonlyMap<string, LocalAccountState>;
  readonly fleetTopic: FleetTopicState;
  readonly announcements: FleetAnnouncements;
  readonly fleetHooks: FleetHooks;
  readonly scheduler: SchedulerLike;
}

/**
 * Number of accounts that may be starting at this instance at the same time. Without a limit the first instance of a fleet would claim all
 * accounts before others have joined.
 */
const MAX_STARTING = 4;
/** Number of accounts whose images this instance restores at the same time while other instances serve them. */
const MAX_WARMING = 2;

/** Returns a function that takes the next step with an account of this instance, if one is due. */
export function accountSteps(
  options: AccountStepsOptions,
): (account: string, course: LocalAccountState, standing: GroupGeneration) => void {
  const { instance, accounts, fleetTopic, announcements, fleetHooks, scheduler } = options;
  const now = () => scheduler.now();
  const wordOf = (account: string) => fleetTopic.accounts.get(account);

  const counted = (is: (run: AccountRun) => boolean) =>
    [...accounts.values()].filter(({ run }) => is(run)).length;
  const isFull = (step: AccountStep): boolean =>
    (step === 'claim' && counted((run) => run.isStarting()) >= MAX_STARTING) ||
    (step === 'warm' && counted((run) => run.phase() === 'warming') >= MAX_WARMING);
  /**
   * Whether this instance has recently claimed an account that is suspected of causing crashes. Such accounts are claimed one at a time, so
   * that a crash can be attributed to one of them.
   */
  const isOnProbation = () =>
    [...accounts.values()].some(
      ({ crashTimes, claimedAt = -Infinity }) =>
        isSuspect(crashTimes) && now() < claimedAt + PROBATION_MS,
    );

  const quarantine = (account: string, course: LocalAccountState): void => {
    const word = wordOf(account);
    if (course.quarantineBasis === word) return;
    course.quarantineBasis = word;
    course.silentSince = undefined;
    announcements.quarantined(account).then(
      () => fleetHooks.onQuarantined?.({ account }),
      () => (course.quarantineBasis = undefined), // the next step tries again
    );
  };
  /**
   * Stops an account that another instance quarantined although this one was serving it, disconnected from Kafka. The `released` message
   * that the stop writes ends the quarantine, and the account is claimed again.
   */
  const disprove = (account: string, { run }: LocalAccountState): void => {
    if (run.phase() !== 'running') return;
    fleetHooks.onAccount?.({ account, step: 'drop' });
    void run.stop();
  };
  /**
   * Announces the release of an account after this instance has abandoned a claim that it had announced: the next owner would otherwise ask
   * this instance for a release and wait in vain.
   */
  const takeBack = (account: string, { run }: LocalAccountState): void => {
    const owner = wordOf(account)?.owner?.instance ?? instance;
    if (owner !== instance || run.phase() !== 'nothing') return;
    announcements.released(account).catch(() => undefined); // without it, the next owner claims after the release timeout
  };
  /**
   * Claims an account. An account that must be quarantined is quarantined instead; one that is suspected of causing crashes has to wait
   * while another such account is on probation.
   */
  const claim = (
    account: string,
    course: LocalAccountState,
    { generation, members }: GroupGeneration,
  ): void => {
    const crashTimes = crashTimesOf(wordOf(account), { instance, members, now: now() });
    if (crashTimes.length >= MAX_CRASHES) return quarantine(account, course);
    if (isSuspect(crashTimes) && isOnProbation()) return;
    fleetHooks.onAccount?.({ account, step: 'claim' });
    course.crashTimes = crashTimes;
    course.claimedAt = now();
    // Not awaited: an instance that misses the announcement claims the account as well, and fences this one.
    announcements.claiming(account, { generation, crashTimes }).catch(() => undefined);
    course.run.claim();
  };
  /** Sets the time since when an account assigned to this instance has not been served, to measure the length of the handover. */
  const watchSilence = (
    account: string,
    course: LocalAccountState,
    { members }: GroupGeneration,
  ): void => {
    const word = wordOf(account);
    const last = word?.owner?.instance ?? word?.releasedBy;
    if (last === undefined || last === instance) return;
    const goesOn = word?.owner !== undefined && members.has(last);
    course.silentSince = goesOn
      ? course.releaseRequestedAt
      : (course.silentSince ?? course.releaseRequestedAt ?? now());
  };

  return (account, course, standing) => {
    const { generation, members, assigned, apiKeyConflicts } = standing;
    const word = wordOf(account);
    const { run, releaseRequestedAt } = course;
    const isAssigned = assigned.get(account) === instance;
    if (isAssigned && run.phase() !== 'running') watchSilence(account, course, standing);
    const step = nextStep({
      ...{ instance, generation, members, account: word, isAssigned },
      hasApiKeyConflict: apiKeyConflicts.has(account),
      phase: run.phase(),
      releaseRequestedMs: releaseRequestedAt === undefined ? undefined : now() - releaseRequestedAt,
    });
    if (isQuarantined(word, now())) return disprove(account, course);
    if (step === 'stay' || isFull(step)) return;
    if (run.failure() && step !== 'drop') return;
    if (step === 'claim') return claim(account, course, standing);
    fleetHooks.onAccount?.({ account, step });
    if (step === 'warm') run.warm();
    else if (step === 'ask') {
      course.releaseRequestedAt = now();
      // On failure the request is repeated: the account would otherwise be claimed after the timeout, without a release.
      announcements
        .requestRelease(account, generation, word!.owner!)
        .catch(() => (course.releaseRequestedAt = undefined));
    } else if (step === 'drop' && run.phase() === 'running') {
      void run.stop().then(() => takeBack(account, course));
    } else if (step === 'release') run.release();
    else void run.stop();
  };
}
