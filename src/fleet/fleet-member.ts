import {
  auditTime,
  exhaustMap,
  filter,
  firstValueFrom,
  interval,
  lastValueFrom,
  merge,
  race,
  ReplaySubject,
  Subject,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import { membership } from '../kafka/membership/membership.ts';
import type { Generation } from '../kafka/membership/membership.ts';
import type { MembershipGroup } from '../kafka/membership/group.ts';
import { servableAccounts } from './account-files.ts';
import type { AccountFiles } from './account-files.ts';
import { FleetAccounts } from './fleet-accounts.ts';
import type { FleetAccountsOptions } from './fleet-accounts.ts';
import { reportTombstone } from './report.ts';
import { accountViews, apiKeyConflictText } from './account-views.ts';
import { Leader } from './group-leader.ts';
import { packMemberMetadata, unpackFleetAssignment } from './member-metadata.ts';
import type { FleetAssignment } from './member-metadata.ts';

export interface FleetMemberOptions {
  readonly group: MembershipGroup;
  /** The accounts' files. Emits at once, and whenever a file changes. */
  readonly files$: Observable<AccountFiles>;
  readonly accounts: Omit<FleetAccountsOptions, 'onChange'>;
  /**
   * The first value of this observable makes the instance hand over its accounts. The observable must replay that value to late
   * subscribers.
   */
  readonly stop$: Observable<unknown>;
}

/** Session timeout in Kafka's group, in ms. Shorter: pauses of the process cause rebalances. Longer: crashes are detected later. */
const SESSION_TIMEOUT_MS = 8_000;
/** Heartbeat interval in Kafka's group, in ms. Heartbeats also notify an instance of a rebalance, after at most this time. */
const HEARTBEAT_MS = 1_000;
/**
 * Interval at which each account's next step is determined even if no event has occurred, in ms. A timeout may be detected this much later
 * than it occurs.
 */
const STEP_EVERY_MS = 500;
/** Shortest interval between two calls of the hook `onFleet`, in ms. */
const VIEW_EVERY_MS = 250;
/**
 * Interval at which the hook `onFleet` is called even without an event, in ms. Parts of the state, such as a quarantine, change as time
 * passes.
 */
const VIEW_AT_LEAST_EVERY_MS = 5_000;
/** How often the group's leader checks whether the members' loads have become uneven, in ms. */
const CHECK_BALANCE_EVERY_MS = 15_000;
/**
 * How long a stopping instance waits for other instances to ask for the release of its accounts, in ms. After that, it stops the remaining
 * accounts and leaves.
 */
const HANDOVER_TIMEOUT_MS = 20_000;

/**
 * An instance as a member of the fleet's Kafka group, from joining to leaving. While it is leaving, it names no account files to the group,
 * so that its accounts are assigned to other instances.
 */
export class FleetMember {
  readonly #options: FleetMemberOptions;
  readonly #scheduler: SchedulerLike;
  readonly #accounts: FleetAccounts;
  readonly #leader: Leader;
  #files: AccountFiles = new Map();
  #generation: Generation | undefined;
  #assignment: FleetAssignment | undefined;
  /** Whether the instance is a member of the group at present. */
  #isMember = false;
  #isLeaving = false;
  readonly #changed$ = new Subject<void>();
  readonly #rejoin$ = new Subject<void>();
  readonly #leave$ = new ReplaySubject<void>(1);

  constructor(options: FleetMemberOptions) {
    this.#options = options;
    this.#scheduler = options.accounts.context.scheduler;
    const onChange = () => this.#changed$.next();
    this.#accounts = new FleetAccounts({ ...options.accounts, onChange });
    this.#leader = new Leader(this.#scheduler);
  }

  /**
   * Runs this instance until `stop$` emits. Resolves once its accounts are handed over to other instances or stopped, and it has left the
   * group.
   */
  async run(): Promise<void> {
    const { accounts, stop$ } = this.#options;
    try {
      const over$ = new Subject<void>();
      const left = lastValueFrom(this.#membership(), { defaultValue: undefined });
      void firstValueFrom(stop$).then(() => this.#handOver());
      const beside$ = merge(
        this.#readFiles(),
        accounts.log.following$.pipe(tap(() => this.#changed$.next())),
        this.#takeSteps(),
        this.#accounts.reporting(this.#onError),
        this.#watchBalance(),
        this.#showFleet(),
      ).pipe(takeUntil(over$));
      await Promise.race([left, lastValueFrom(beside$, { defaultValue: undefined })]);
      over$.next();
    } finally {
      await this.#accounts.stopAll();
      this.#show(); // the final state, after leaving the group
    }
  }

  #membership(): Observable<Generation> {
    return membership({
      group: this.#options.group,
      scheduler: this.#scheduler,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      heartbeatMs: HEARTBEAT_MS,
      memberMetadata: () => packMemberMetadata(this.#accounts.memberMetadata(this.#isLeaving)),
      assign: (members) => this.#leader.assign(members),
      rejoin$: this.#rejoin$,
      leave$: this.#leave$,
      onMembershipChange: (isMember) => {
        this.#isMember = isMember;
        this.#changed$.next();
      },
      onRetry: this.#onError,
    }).pipe(tap((generation) => this.#generationStarted(generation)));
  }

  #generationStarted(generation: Generation): void {
    const { fleetHooks, context } = this.#options.accounts;
    const before = this.#assignment?.apiKeyConflicts;
    const assignment = unpackFleetAssignment(generation.assignment);
    this.#generation = generation;
    this.#assignment = assignment;
    for (const [account, other] of assignment.apiKeyConflicts ?? []) {
      if (!this.#files.has(account) || before?.has(account)) continue;
      const error = new CellarstreamError('SETTINGS', apiKeyConflictText(account, other));
      fleetHooks.onWrongFile?.({ account, error });
    }
    this.#leader.generationStarted(generation, assignment);
    this.#accounts.generationStarted(generation.number, assignment);
    fleetHooks.onGeneration?.({
      number: generation.number,
      instances: assignment.members.map(({ name }) => name),
      accounts: [...assignment.accounts.values()].filter((each) => each === context.instance)
        .length,
    });
    this.#changed$.next();
  }

  #readFiles(): Observable<AccountFiles> {
    const { files$, accounts } = this.#options;
    return files$.pipe(
      tap((files) => {
        const before = this.#files;
        this.#files = files;
        for (const [account, file] of files) {
          if ('error' in file && before.get(account) !== file)
            accounts.fleetHooks.onWrongFile?.({ account, error: file.error });
        }
        this.#accounts.setFiles(files);
        if (servableAccounts(before).join() !== servableAccounts(files).join())
          this.#rejoin$.next();
        this.#changed$.next();
      }),
    );
  }

  /** Lets every account take its next step (restore, claim, release or stop) after changes and at regular intervals. */
  #takeSteps(): Observable<void> {
    return merge(this.#changed$, interval(STEP_EVERY_MS, this.#scheduler)).pipe(
      // A change during a run does not cause another one, but the next interval does.
      exhaustMap(() =>
        this.#accounts.step().catch((error: unknown) => this.#onError(error, STEP_EVERY_MS)),
      ),
    );
  }

  /**
   * Makes the group leader's regular checks: triggers a rebalance if loads have been uneven for too long, and deletes the reports of
   * departed instances.
   */
  #watchBalance(): Observable<unknown> {
    return interval(CHECK_BALANCE_EVERY_MS, this.#scheduler).pipe(
      filter(() => this.#isMember && this.#generation?.isLeader === true && !this.#isLeaving),
      tap(() => {
        this.#deleteDepartedReports();
        if (this.#leader.isRebalanceDue(this.#options.accounts.log.reports)) this.#rejoin$.next();
      }),
    );
  }

  #deleteDepartedReports(): void {
    const { topic, log } = this.#options.accounts;
    const members = new Set(this.#assignment?.members.map(({ instance }) => instance));
    for (const instance of log.reports.keys()) {
      if (!members.has(instance)) log.send(reportTombstone(topic, instance)).catch(this.#onError);
    }
  }

  #showFleet(): Observable<unknown> {
    return merge(this.#changed$, interval(VIEW_AT_LEAST_EVERY_MS, this.#scheduler)).pipe(
      auditTime(VIEW_EVERY_MS, this.#scheduler),
      tap(() => this.#show()),
    );
  }

  #show(): void {
    const { name, log, fleetHooks } = this.#options.accounts;
    const [assignment, files] = [this.#assignment, this.#files];
    fleetHooks.onFleet?.({
      instance: name,
      generation: this.#isMember ? this.#generation?.number : undefined,
      instances: (assignment?.members ?? []).map((member) => member.name).sort(),
      accounts: accountViews({
        ...{ accounts: log.accounts, reports: log.reports, assignment, files },
        localAccounts: this.#accounts.localAccounts,
        now: this.#scheduler.now(),
      }),
    });
  }

  /**
   * Hands this instance's accounts over to other instances, stops the accounts that are left after {@link HANDOVER_TIMEOUT_MS}, and leaves
   * the group.
   */
  async #handOver(): Promise<void> {
    this.#isLeaving = true;
    if ((this.#assignment?.members.length ?? 0) > 1) {
      this.#rejoin$.next();
      const empty$ = merge(this.#changed$, interval(STEP_EVERY_MS, this.#scheduler)).pipe(
        filter(() => !this.#isAwaited()),
      );
      await firstValueFrom(race(empty$, timer(HANDOVER_TIMEOUT_MS, this.#scheduler)));
    }
    await this.#accounts.stopAll();
    this.#leave$.next();
  }

  /**
   * Whether an account that this leaving instance still serves is in the newest assignment, so that another instance will ask for its
   * release.
   */
  #isAwaited(): boolean {
    // If all instances leave at the same time, no account is assigned, because leaving instances report no account files.
    return [...this.#accounts.localAccounts].some(
      ([account, { run }]) =>
        (run.phase === 'running' || run.phase === 'stopping') &&
        this.#assignment?.accounts.has(account),
    );
  }

  readonly #onError = (error: unknown, delayMs = 0): void =>
    this.#options.accounts.fleetHooks.onRetry?.({ error, count: 1, delayMs });
}
