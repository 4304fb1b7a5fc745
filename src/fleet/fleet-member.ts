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
import type { AccountFiles } from './account-files.ts';
import { fleetAccounts } from './fleet-accounts.ts';
import type { FleetAccountsOptions } from './fleet-accounts.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import { fleetViewOf } from './fleet-view-of.ts';
import { leader } from './group-leader.ts';
import { packMemberMetadata, unpackFleetAssignment } from './member-metadata.ts';
import type { FleetAssignment } from './member-metadata.ts';
import { reportTombstone } from './report.ts';
import { reporting } from './reporting.ts';
import { apiKeyConflictText } from './api-key-conflicts.ts';

export interface FleetMemberOptions {
  readonly group: MembershipGroup;
  /** The accounts' files: emits at once, and whenever they change. */
  readonly files$: Observable<AccountFiles>;
  readonly accounts: Omit<FleetAccountsOptions, 'onChange'>;
  /** The first value starts the handover of this instance's accounts. The observable must replay that value to late subscribers. */
  readonly stop$: Observable<unknown>;
  readonly scheduler: SchedulerLike;
}

/**
 * Session timeout in Kafka's group, in ms: an instance without heartbeats for this long is removed. Shorter: pauses of the process cause
 * rebalances. Longer: crashes are detected later.
 */
const SESSION_TIMEOUT_MS = 8_000;
/** Heartbeat interval in Kafka's group, in ms; also how soon an instance learns of a rebalance. */
const HEARTBEAT_MS = 1_000;
/** How often each account's next step is checked for changes that raise no event, such as a timeout, in ms. */
const STEP_EVERY_MS = 500;
/** Shortest interval between two calls of the hook `onFleet`, in ms. */
const VIEW_EVERY_MS = 250;
/**
 * Longest interval between two calls of the hook `onFleet`, in ms, for changes that come with time alone, such as an account without an
 * owner.
 */
const VIEW_AT_LEAST_EVERY_MS = 5_000;
/** How often the group's leader checks whether the members' loads have become uneven, in ms. */
const CHECK_BALANCE_EVERY_MS = 15_000;
/** How long a stopping instance waits for other instances to claim its accounts, in ms. */
const HANDOVER_TIMEOUT_MS = 20_000;

/**
 * Runs an instance as a member of the fleet's Kafka group, until `stop$` emits. Resolves once the instance's accounts are handed over to
 * other instances, or are stopped if there is no other.
 */
export async function runFleetMember(options: FleetMemberOptions): Promise<void> {
  const { group, files$, stop$, scheduler } = options;
  const { name, topic, log, fleetHooks, context } = options.accounts;
  const { instance } = context;
  let generation: Generation | undefined;
  let assignment: FleetAssignment | undefined;
  let files: AccountFiles = new Map();
  let isIn = false;
  let isLeaving = false;
  const changed$ = new Subject<void>();
  const rejoin$ = new Subject<void>();
  const leave$ = new ReplaySubject<void>(1);

  const onRetry: NonNullable<FleetHooks['onRetry']> = (retry) => fleetHooks.onRetry?.(retry);
  const onError = (error: unknown): void => onRetry({ error, count: 1, delayMs: 0 });
  const accounts = fleetAccounts({ ...options.accounts, onChange: () => changed$.next() });
  const leading = leader(scheduler);

  const take$ = (next: Generation) => {
    generation = next;
    const before = assignment?.apiKeyConflicts;
    assignment = unpackFleetAssignment(next.assignment);
    for (const [account, other] of assignment.apiKeyConflicts ?? []) {
      if (!files.has(account) || before?.has(account)) continue;
      const error = new CellarstreamError('SETTINGS', apiKeyConflictText(account, other));
      fleetHooks.onWrongFile?.({ account, error });
    }
    leading.generationStarted(next, assignment);
    accounts.generationStarted(next.number, assignment);
    fleetHooks.onGeneration?.({
      number: next.number,
      instances: assignment.members.map((member) => member.name),
      accounts: [...assignment.accounts.values()].filter((each) => each === instance).length,
    });
    changed$.next();
  };
  const member$ = membership({
    group,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    heartbeatMs: HEARTBEAT_MS,
    memberMetadata: () =>
      packMemberMetadata({
        instance,
        name,
        ...accounts.memberMetadata(isLeaving ? [] : servableAccounts(files)),
      }),
    assign: leading.assign,
    ...{ rejoin$, leave$, scheduler },
    onMembershipChange: (now) => {
      isIn = now;
      changed$.next();
    },
    onRetry: onError,
  }).pipe(tap(take$));
  const reading$ = files$.pipe(
    tap((now) => {
      const before = files;
      files = now;
      for (const [account, file] of now) {
        if ('error' in file && before.get(account) !== file)
          fleetHooks.onWrongFile?.({ account, error: file.error });
      }
      accounts.setFiles(now);
      if (servableAccounts(before).join() !== servableAccounts(now).join()) rejoin$.next();
      changed$.next();
    }),
  );
  // Steps never overlap: a step may first have to read the fleet's topic to its end.
  const stepping$ = merge(changed$, interval(STEP_EVERY_MS, scheduler)).pipe(
    exhaustMap(() =>
      accounts
        .step()
        .catch((error: unknown) => onRetry({ error, count: 1, delayMs: STEP_EVERY_MS })),
    ),
  );
  const reporting$ = reporting({
    ...{ instance, name, topic, log, scheduler },
    report: accounts.report,
    onRetry: onError,
  });
  /** Deletes the reports of departed instances from the fleet's topic. */
  const forgetReports = (): void => {
    const members = new Set(assignment?.members.map((member) => member.instance));
    for (const departed of log.reports.keys()) {
      if (!members.has(departed)) log.send(reportTombstone(topic, departed)).catch(onError);
    }
  };
  const weighing$ = interval(CHECK_BALANCE_EVERY_MS, scheduler).pipe(
    filter(() => isIn && generation?.isLeader === true && !isLeaving),
    tap(() => {
      forgetReports();
      if (leading.isRebalanceDue(log.reports)) rejoin$.next();
    }),
  );
  const show = (): void =>
    fleetHooks.onFleet?.(
      fleetViewOf({
        ...{ name, assignment, files, accounts: log.accounts, reports: log.reports },
        generation: isIn ? generation?.number : undefined,
        localAccounts: accounts.localAccounts(),
        now: scheduler.now(),
      }),
    );
  const showing$ = merge(changed$, interval(VIEW_AT_LEAST_EVERY_MS, scheduler)).pipe(
    auditTime(VIEW_EVERY_MS, scheduler),
    tap(show),
  );
  /**
   * Whether an account that still runs at this instance is assigned to another one, which will claim it. Never true when all instances
   * leave at once.
   */
  const isAwaited = () =>
    [...accounts.localAccounts()].some(
      ([account, { doing }]) =>
        (doing === 'running' || doing === 'stopping') && assignment?.accounts.has(account),
    );
  /** Hands this instance's accounts over to other instances; without other instances it just stops the accounts. */
  const leaving = async (): Promise<void> => {
    isLeaving = true;
    accounts.startLeaving();
    const hasOthers = (assignment?.members.length ?? 0) > 1;
    if (hasOthers) {
      rejoin$.next();
      const empty$ = merge(changed$, interval(STEP_EVERY_MS, scheduler)).pipe(
        filter(() => !isAwaited()),
      );
      await firstValueFrom(race(empty$, timer(HANDOVER_TIMEOUT_MS, scheduler)));
    }
    await accounts.stopAll();
    leave$.next();
  };

  try {
    const over$ = new Subject<void>();
    const left = lastValueFrom(member$, { defaultValue: undefined });
    void firstValueFrom(stop$).then(leaving);
    const beside$ = merge(
      reading$,
      log.following$.pipe(tap(() => changed$.next())),
      stepping$,
      reporting$,
      weighing$,
      showing$,
    );
    await Promise.race([
      left,
      lastValueFrom(beside$.pipe(takeUntil(over$)), { defaultValue: undefined }),
    ]);
    over$.next();
  } finally {
    await accounts.stopAll();
    show(); // the final state, after leaving the group
  }
}

/** Returns the accounts whose files are valid. */
function servableAccounts(files: AccountFiles): readonly string[] {
  return [...files].flatMap(([account, file]) => ('config' in file ? [account] : []));
}
