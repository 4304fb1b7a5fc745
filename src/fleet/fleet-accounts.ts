import type { Observable } from 'rxjs';
import type { AccountConfig } from '../config/accounts.ts';
import { keyDigest } from '../config/key-digest.ts';
import { servableAccounts } from './account-files.ts';
import type { AccountFiles } from './account-files.ts';
import { isFenced } from './account-run.ts';
import type { FleetLog } from './fleet-log.ts';
import { isQuarantined } from './crashes.ts';
import { LocalAccount } from './local-account.ts';
import type { GroupGeneration, LocalAccountOptions, SharedByAccounts } from './local-account.ts';
import type { FleetAssignment, MemberMetadata } from './member-metadata.ts';
import { FleetAnnouncements } from './fleet-announcements.ts';
import { accountReport } from './report.ts';
import type { Report } from './report.ts';
import type { WarmFolders } from './warm-folders.ts';

export interface FleetAccountsOptions extends SharedByAccounts {
  /** Human-readable name of the instance. */
  readonly name: string;
  readonly folders: WarmFolders;
  readonly topic: string;
  readonly log: FleetLog;
}

/** Load of a quarantined account, which is assigned but not served. (The load of an account that is served is at least 1.) */
const QUARANTINED_WEIGHT = 0.01;

/**
 * The accounts of one instance, each from its assignment until it has stopped. Accounts without a valid file are left out. An account whose
 * file has changed is restarted.
 */
export class FleetAccounts {
  readonly #options: FleetAccountsOptions;
  readonly #announcements: FleetAnnouncements;
  readonly #accounts = new Map<string, LocalAccount>();
  readonly #accountOptions: LocalAccountOptions;
  /** Newest generation in which each account was assigned to this instance, by account. */
  readonly #assignedSince = new Map<string, number>();
  #files: AccountFiles = new Map();
  /** Newest generation of the fleet's Kafka group, with its assignment; undefined before the first generation. */
  #newest: GroupGeneration | undefined;
  /** Whether the fleet's topic has been read up to an end offset that was requested after the newest generation had begun. */
  #isCurrent = false;
  #isOver = false;

  constructor(options: FleetAccountsOptions) {
    this.#options = options;
    this.#announcements = new FleetAnnouncements({ ...options, ...options.context });
    this.#accountOptions = {
      ...options,
      announcements: this.#announcements,
      accounts: this.#accounts,
      newestGeneration: () => this.#newest?.generation ?? 0,
    };
  }

  /**
   * Sets the accounts' files. The following calls of {@link step} restart an account whose file has changed, and stop an account whose file
   * was removed or is invalid.
   */
  setFiles(files: AccountFiles): void {
    this.#files = files;
  }

  /**
   * Begins a generation of the fleet's Kafka group with this assignment. Forgets this instance's requests for releases, which count only in
   * the generation in which they were made.
   */
  generationStarted(generation: number, assignment: FleetAssignment): void {
    this.#newest = {
      generation,
      members: new Set(assignment.members.map(({ instance }) => instance)),
      assigned: assignment.accounts,
      apiKeyConflicts: assignment.apiKeyConflicts ?? new Map(),
    };
    this.#isCurrent = false;
    for (const here of this.#accounts.values()) here.generationStarted();
    for (const account of assignment.accounts.keys())
      if (this.#isAssigned(account)) this.#assignedSince.set(account, generation);
  }

  /** Adds assigned accounts, begins each one's next step, and removes stopped ones. Rejects if the end of the topic can't be requested. */
  async step(): Promise<void> {
    const newest = this.#newest;
    if (!newest || this.#isOver) return;
    if (!this.#isCurrent) {
      await this.#options.log.catchUp();
      this.#isCurrent = newest === this.#newest;
      if (!this.#isCurrent) return this.#options.onChange();
    }
    for (const account of newest.assigned.keys())
      if (this.#isAssigned(account)) this.#begin(account);
    for (const [account, here] of this.#accounts) {
      if (this.#configOf(account) === here.config) {
        here.step(newest);
        const { phase, failure } = here.run; // an account with a failure is removed after the pause that follows the error
        if (phase === 'nothing' && !failure && !this.#isAssigned(account))
          this.#remove(account, here);
      } else this.#end(account, here);
    }
    this.#forgetOthers();
    this.#options.folders.clear();
  }

  /**
   * Returns the metadata that this instance sends when it joins the fleet's Kafka group. While it is leaving the fleet (`isLeaving`), the
   * metadata contain no account files, and digests of API keys only of accounts that have not stopped here yet.
   */
  memberMetadata(isLeaving: boolean): MemberMetadata {
    const { context, name, folders } = this.#options;
    // Without files, the accounts are assigned to other instances in the next generation.
    const configured = isLeaving ? [] : servableAccounts(this.#files);
    // A leaving instance reports the API keys still in use, so that no other account with the same API key is served meanwhile.
    const configs = isLeaving
      ? [...this.#accounts.values()].map(({ config }) => config)
      : configured.flatMap((account) => this.#configOf(account) ?? []);
    return {
      instance: context.instance,
      name,
      configured,
      owned: new Map(
        [...this.#assignedSince].map(([account, generation]) => [
          account,
          { generation, weight: this.#weightOf(account) },
        ]),
      ),
      warm: folders.warm(),
      apiKeyDigests: new Map(configs.map(({ account, api }) => [account, keyDigest(api)])),
    };
  }

  /** Writes this instance's reports on its accounts to the fleet's topic. See {@link FleetAnnouncements.reporting}. */
  reporting(onError: (error: unknown) => void): Observable<never> {
    return this.#announcements.reporting(() => this.#report(), onError);
  }

  #report(): Report['accounts'] {
    return Object.fromEntries(
      [...this.#accounts].map(([account, { config, run, observers }]) => {
        const failure = run.failure?.error;
        const error = isFenced(failure) ? undefined : failure; // the new owner reports the account's state
        const figures = run.phase === 'running' ? observers.figures?.() : undefined;
        const weight = this.#weightOf(account);
        return [account, accountReport({ config, weight, error, figures })];
      }),
    );
  }

  get localAccounts(): ReadonlyMap<string, LocalAccount> {
    return this.#accounts;
  }

  async stopAll(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled([...this.#accounts.values()].map(({ run }) => run.stop()));
  }

  #isAssigned(account: string): boolean {
    return this.#newest?.assigned.get(account) === this.#options.context.instance;
  }

  #configOf(account: string): AccountConfig | undefined {
    const file = this.#files.get(account);
    return file && 'config' in file ? file.config : undefined;
  }

  #isQuarantined(account: string): boolean {
    const { log, context } = this.#options;
    return isQuarantined(log.accounts.get(account), context.scheduler.now());
  }

  #weightOf(account: string): number {
    if (this.#isQuarantined(account)) return QUARANTINED_WEIGHT;
    return this.#accounts.get(account)?.run.weight ?? 1;
  }

  #begin(account: string): void {
    this.#options.folders.use(account);
    const config = this.#configOf(account);
    if (!config || this.#accounts.has(account)) return;
    this.#accounts.set(account, new LocalAccount(config, this.#accountOptions));
  }

  /** Stops an account whose file has changed or was removed. Removes the account if it has stopped already. */
  #end(account: string, here: LocalAccount): void {
    const { fleetHooks, onChange } = this.#options;
    const { run } = here;
    if (run.phase === 'nothing') {
      // The changed file may have solved the problem. Without this message the quarantine ends after an hour.
      if (this.#isAssigned(account) && this.#isQuarantined(account))
        this.#announcements.announce(account, 'released').catch(() => undefined);
      this.#remove(account, here);
      onChange();
    } else if (run.phase !== 'stopping') {
      fleetHooks.onAccount?.({ account, step: 'stop' });
      void run.stop().then(onChange);
    }
  }
  #remove(account: string, { observers }: LocalAccount): void {
    this.#accounts.delete(account);
    observers.end();
  }

  /**
   * Forgets the accounts that have stopped here and are not assigned to this instance, so that they are no longer reported as owned. Marks
   * their folders as unused.
   */
  #forgetOthers(): void {
    for (const account of this.#assignedSince.keys()) {
      if (this.#accounts.has(account) || this.#isAssigned(account)) continue;
      this.#assignedSince.delete(account);
      this.#options.folders.release(account);
    }
  }
}
