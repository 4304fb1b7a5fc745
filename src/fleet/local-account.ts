import type { AccountConfig } from '../config/accounts.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import type { Hooks } from '../observe/hooks.ts';
import { AccountRun, isFenced } from './account-run.ts';
import type { InstanceContext } from './account-run.ts';
import { isQuarantined, isSuspect, crashTimesOf, MAX_CRASHES, PROBATION_MS } from './crashes.ts';
import type { FleetAnnouncements } from './fleet-announcements.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { AccountTopicState } from './fleet-record.ts';
import type { FleetTopicState } from './fleet-log.ts';
import { nextStep } from './next-step.ts';
import type { AccountStep } from './next-step.ts';

/** A generation of the fleet's Kafka group, that is, the period between two rebalances, with its assignment of accounts. */
export interface GroupGeneration {
  readonly generation: number;
  /** Instance ids of the generation's members. */
  readonly members: ReadonlySet<string>;
  /** Id of the instance to which each account is assigned, by account. */
  readonly assigned: ReadonlyMap<string, string>;
  /** Accounts that must not be served, each mapped to the account that has the same API key and is served. */
  readonly apiKeyConflicts: ReadonlyMap<string, string>;
}

/**
 * Observers of one account at this instance. `hooks`: called by the account. `onFailed`: called when serving the account has ended with an
 * error; the account may be claimed again after `delayMs`. `end`: called once the account is removed from this instance.
 */
export interface AccountObservers {
  readonly hooks: Hooks;
  /** Returns a summary of the account (readiness, lag, use of the quota, events per second), for the report to the other instances. */
  readonly figures?: () => AccountFigures;
  readonly onFailed?: (error: unknown, delayMs: number) => void;
  readonly end: () => void;
}

/** Objects that the accounts of an instance share. */
export interface SharedByAccounts {
  readonly context: InstanceContext;
  readonly watch: (config: AccountConfig) => AccountObservers;
  readonly fleetHooks: FleetHooks;
  /** Called when something has changed about an account, so that its next step, such as its claim or its release, may be due. */
  readonly onChange: () => void;
}

export interface LocalAccountOptions extends SharedByAccounts {
  readonly log: FleetTopicState;
  readonly announcements: FleetAnnouncements;
  /** All accounts that this instance serves, restores or stops. */
  readonly accounts: ReadonlyMap<string, LocalAccount>;
  /** Number of the newest generation of the fleet's Kafka group. */
  readonly newestGeneration: () => number;
}

/**
 * Number of accounts that may be starting at this instance at the same time. Without this limit, the first instance of a fleet would claim
 * all accounts before other instances have joined.
 */
const MAX_STARTING = 4;
/**
 * Maximum number of accounts whose images this instance restores at the same time while other instances serve them; further accounts wait.
 */
const MAX_WARMING = 2;

/**
 * An account at this instance, from its assignment until it has stopped. {@link step} chooses and takes the next step, according to the
 * assignment and the account's state in the fleet's topic.
 */
export class LocalAccount {
  readonly config: AccountConfig;
  readonly observers: AccountObservers;
  readonly run: AccountRun;
  readonly #options: LocalAccountOptions;
  /**
   * When this instance asked the account's owner for a release in the current generation; undefined if it has not, or if the request could
   * not be written.
   */
  #releaseRequestedAt: number | undefined;
  /** When this instance last began to claim the account; undefined if it never has. */
  #claimedAt: number | undefined;
  /** Times at which instances crashed shortly after they claimed this account, as known when this instance last claimed it. */
  #crashTimes: readonly number[] = [];
  /**
   * When the handover of the account to this instance began; undefined while there is none. A handover begins when this instance asks for a
   * release. Without a request, it begins when the previous owner is found to have released the account or to have crashed.
   */
  #handoverSince: number | undefined;
  /**
   * State of the account in the fleet's topic when this instance last wrote a quarantine message; undefined without such a message. The
   * message is not repeated while the state is the same.
   */
  #quarantineBasis: AccountTopicState | undefined;

  constructor(config: AccountConfig, options: LocalAccountOptions) {
    const { context, announcements, onChange } = options;
    this.config = config;
    this.#options = options;
    this.observers = options.watch(config);
    this.run = new AccountRun({
      ...{ config, context, onChange, hooks: this.observers.hooks },
      ledgerMessages: announcements.ledgerMessages(config.account, () => ({
        generation: options.newestGeneration(),
        crashTimes: this.#crashTimes,
      })),
      onFirstResponse: () => this.#handedOver(),
      onFailed: (error, delayMs) => this.#failed(error, delayMs),
    });
  }

  /** Whether this instance claimed the account less than {@link PROBATION_MS} ago although the account is suspected of causing crashes. */
  get isOnProbation(): boolean {
    const { context } = this.#options;
    const claimedAt = this.#claimedAt ?? -Infinity;
    return isSuspect(this.#crashTimes) && context.scheduler.now() < claimedAt + PROBATION_MS;
  }

  /** Called when a generation begins. Forgets this instance's request for a release, which counts only in the generation of the request. */
  generationStarted(): void {
    this.#releaseRequestedAt = undefined;
  }

  /**
   * Begins this instance's next step with the account, such as its claim or its release, in the generation `newest`. A limit, a quarantine
   * or a recent error may prevent the step.
   */
  step(newest: GroupGeneration): void {
    const { account } = this.config;
    const { instance, scheduler } = this.#options.context;
    const { generation, members, assigned, apiKeyConflicts } = newest;
    const { run } = this;
    const now = scheduler.now();
    const isAssigned = assigned.get(account) === instance;
    if (isAssigned && run.phase !== 'running') this.#watchHandover(newest);
    const step = nextStep({
      ...{ instance, generation, members, account: this.#topicState, isAssigned },
      hasApiKeyConflict: apiKeyConflicts.has(account),
      phase: run.phase,
      releaseRequestedMs:
        this.#releaseRequestedAt === undefined ? undefined : now - this.#releaseRequestedAt,
    });
    if (isQuarantined(this.#topicState, now)) return this.#disproveQuarantine();
    if (step === 'stay' || this.#isFull(step)) return;
    if (run.failure && step !== 'drop') return;
    if (step === 'claim') return this.#claim(newest);
    this.#options.fleetHooks.onAccount?.({ account, step });
    if (step === 'warm') run.warm();
    else if (step === 'ask') this.#requestRelease(generation);
    else if (step === 'release') run.release();
    else if (run.phase === 'running') void run.stop().then(() => this.#withdrawClaim());
    else void run.stop();
  }

  get #topicState(): AccountTopicState | undefined {
    return this.#options.log.accounts.get(this.config.account);
  }

  #isFull(step: AccountStep): boolean {
    const runs = [...this.#options.accounts.values()].map(({ run }) => run);
    return (
      (step === 'claim' && runs.filter((run) => run.isStarting).length >= MAX_STARTING) ||
      (step === 'warm' && runs.filter((run) => run.phase === 'warming').length >= MAX_WARMING)
    );
  }

  /**
   * Claims the account, or quarantines it after too many crashes. If one more crash would quarantine the account, does nothing if this
   * instance has claimed such an account within the last {@link PROBATION_MS} ms.
   */
  #claim({ generation, members }: GroupGeneration): void {
    const { context, accounts, announcements, fleetHooks } = this.#options;
    const { account } = this.config;
    const { instance, scheduler } = context;
    const crashTimes = crashTimesOf(this.#topicState, { instance, members, now: scheduler.now() });
    if (crashTimes.length >= MAX_CRASHES) return this.#quarantine();
    // Otherwise a crash of this instance would not show which of the two accounts caused it.
    if (isSuspect(crashTimes) && [...accounts.values()].some((one) => one.isOnProbation)) return;
    fleetHooks.onAccount?.({ account, step: 'claim' });
    this.#crashTimes = crashTimes;
    this.#claimedAt = scheduler.now();
    // Not awaited: an instance that misses the announcement claims the account as well, and fences this one.
    announcements.claiming(account, { generation, crashTimes }).catch(() => undefined);
    this.run.claim();
  }

  #requestRelease(generation: number): void {
    const { context, announcements } = this.#options;
    this.#releaseRequestedAt = context.scheduler.now();
    // On failure the request is repeated: the account would otherwise be claimed after the timeout, without a release.
    announcements
      .requestRelease(this.config.account, generation, this.#topicState!.owner!)
      .catch(() => (this.#releaseRequestedAt = undefined));
  }

  #quarantine(): void {
    const { announcements, fleetHooks } = this.#options;
    const { account } = this.config;
    if (this.#quarantineBasis === this.#topicState) return;
    this.#quarantineBasis = this.#topicState;
    this.#handoverSince = undefined;
    announcements.announce(account, 'quarantined').then(
      () => fleetHooks.onQuarantined?.({ account }),
      () => (this.#quarantineBasis = undefined), // the next step tries again
    );
  }

  /**
   * Stops the quarantined account if it still runs at this instance. Stopping writes the message `released`, which ends the quarantine, so
   * that the account can be claimed again.
   */
  #disproveQuarantine(): void {
    if (this.run.phase !== 'running') return;
    // Other instances counted this instance as crashed while it had no connection to Kafka.
    this.#options.fleetHooks.onAccount?.({ account: this.config.account, step: 'drop' });
    void this.run.stop();
  }

  /** Announces that the account has no owner, after this instance has dropped it. Does nothing if another instance is the owner by then. */
  #withdrawClaim(): void {
    const { context, announcements } = this.#options;
    const owner = this.#topicState?.owner;
    if (this.run.phase !== 'nothing' || (owner && owner.instance !== context.instance)) return;
    announcements.announce(this.config.account, 'released').catch(() => undefined); // without it, the next owner claims after the release timeout
  }

  /**
   * Updates `#handoverSince` (begin of the handover). Called while the account is assigned to this instance but not served by it. Does
   * nothing unless another instance was the account's last owner.
   */
  #watchHandover({ members }: GroupGeneration): void {
    const { instance, scheduler } = this.#options.context;
    const { owner, releasedBy } = this.#topicState ?? {};
    const last = owner?.instance ?? releasedBy;
    if (last === undefined || last === instance) return;
    this.#handoverSince =
      owner !== undefined && members.has(last)
        ? this.#releaseRequestedAt
        : (this.#handoverSince ?? this.#releaseRequestedAt ?? scheduler.now());
  }

  /** Calls the hook `onHandover` at the API's first successful response after the claim. Does nothing if there was no handover. */
  #handedOver(): void {
    const { context, fleetHooks } = this.#options;
    const since = this.#handoverSince;
    this.#handoverSince = undefined;
    if (since === undefined) return;
    const elapsedMs = context.scheduler.now() - since;
    fleetHooks.onHandover?.({ account: this.config.account, elapsedMs });
  }

  #failed(error: unknown, delayMs: number): void {
    const { fleetHooks } = this.#options;
    const { account } = this.config;
    this.#handoverSince = undefined; // the failure is reported by other hooks
    if (isFenced(error)) fleetHooks.onFenced?.({ account });
    this.observers.onFailed?.(error, delayMs);
    fleetHooks.onAccountFailed?.({ account, error, delayMs });
  }
}
