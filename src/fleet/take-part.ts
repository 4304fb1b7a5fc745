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
import { membership } from '../sinks/membership/membership.ts';
import type { Generation } from '../sinks/membership/membership.ts';
import type { Group } from '../sinks/membership/group.ts';
import type { AccountFiles } from './account-files.ts';
import { fleetAccounts } from './fleet-accounts.ts';
import type { FleetAccountsOptions } from './fleet-accounts.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import { fleetViewOf } from './fleet-view-of.ts';
import { leader } from './leader.ts';
import { packTold, unpackSharedOut } from './member-data.ts';
import type { SharedOut } from './member-data.ts';
import { noReport } from './report.ts';
import { reporting } from './reporting.ts';
import { twinProblem } from './twins.ts';

export interface TakePartOptions {
  readonly group: Group;
  /** Files of accounts: at once, and whenever they change. */
  readonly files$: Observable<AccountFiles>;
  readonly accounts: Omit<FleetAccountsOptions, 'onChange'>;
  /** Its first value has the accounts handed over. It must replay that value. */
  readonly stop$: Observable<unknown>;
  readonly scheduler: SchedulerLike;
}

/** Without a sign of it for so long, an instance is out, ms. */
const SESSION_TIMEOUT_MS = 8_000;
/** How soon an instance hears that others came or went, ms. */
const HEARTBEAT_MS = 1_000;
/** What has no event of its own, as an answer that stays out, is noticed so soon, ms. */
const LOOK_EVERY_MS = 500;
const VIEW_EVERY_MS = 250;
/** What only time changes, as an account that nobody takes, is told so soon, ms. */
const VIEW_AT_LEAST_EVERY_MS = 5_000;
/** How soon the leader notices that it has become uneven, ms. */
const WEIGH_EVERY_MS = 15_000;
/** How long a stop waits for others to take its accounts, ms. */
const HAND_OVER_WITHIN_MS = 20_000;

/**
 * An instance in the group that shares accounts out, until `stop$`. Resolves when its accounts are handed over, or stopped where
 * there is nobody else.
 */
export async function takePart(options: TakePartOptions): Promise<void> {
  const { group, files$, stop$, scheduler } = options;
  const { name, topic, log, fleetHooks, parts } = options.accounts;
  const { instance } = parts;
  let generation: Generation | undefined;
  let given: SharedOut | undefined;
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
    const before = given?.twins;
    given = unpackSharedOut(next.given);
    for (const [account, other] of given.twins ?? []) {
      if (!files.has(account) || before?.has(account)) continue;
      const error = new CellarstreamError('SETTINGS', twinProblem(account, other));
      fleetHooks.onWrongFile?.({ account, error });
    }
    leading.begin(next, given);
    accounts.give(next.number, given);
    fleetHooks.onGeneration?.({
      number: next.number,
      instances: given.members.map((member) => member.name),
      accounts: [...given.accounts.values()].filter((each) => each === instance).length,
    });
    changed$.next();
  };
  const member$ = membership({
    group,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    heartbeatMs: HEARTBEAT_MS,
    tell: () => packTold({ instance, name, ...accounts.told(isLeaving ? [] : readable(files)) }),
    share: leading.share,
    ...{ rejoin$, leave$, scheduler },
    onIn: (now) => {
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
      if (readable(before).join() !== readable(now).join()) rejoin$.next();
      changed$.next();
    }),
  );
  // One look at a time: it may have to hear first what others have said.
  const stepping$ = merge(changed$, interval(LOOK_EVERY_MS, scheduler)).pipe(
    exhaustMap(() =>
      accounts
        .step()
        .catch((error: unknown) => onRetry({ error, count: 1, delayMs: LOOK_EVERY_MS })),
    ),
  );
  const reporting$ = reporting({
    ...{ instance, name, topic, log, scheduler },
    report: accounts.report,
    onRetry: onError,
  });
  /** What instances have told that are gone. */
  const forgetReports = (): void => {
    const members = new Set(given?.members.map((member) => member.instance));
    for (const gone of log.reports.keys()) {
      if (!members.has(gone)) log.send(noReport(topic, gone)).catch(onError);
    }
  };
  const weighing$ = interval(WEIGH_EVERY_MS, scheduler).pipe(
    filter(() => isIn && generation?.isLeader === true && !isLeaving),
    tap(() => {
      forgetReports();
      if (leading.isDue(log.reports)) rejoin$.next();
    }),
  );
  const show = (): void =>
    fleetHooks.onFleet?.(
      fleetViewOf({
        ...{ name, given, files, words: log.words, reports: log.reports },
        generation: isIn ? generation?.number : undefined,
        here: accounts.here(),
        now: scheduler.now(),
      }),
    );
  const showing$ = merge(changed$, interval(VIEW_AT_LEAST_EVERY_MS, scheduler)).pipe(
    auditTime(VIEW_EVERY_MS, scheduler),
    tap(show),
  );
  /** Whether others are to take what is run here: when all leave at once, nobody is. */
  const isAwaited = () =>
    [...accounts.here()].some(
      ([account, { doing }]) =>
        (doing === 'running' || doing === 'stopping') && given?.accounts.has(account),
    );
  /** Others take what is run here; where there are none it is stopped. */
  const leaving = async (): Promise<void> => {
    isLeaving = true;
    accounts.leave();
    const hasOthers = (given?.members.length ?? 0) > 1;
    if (hasOthers) {
      rejoin$.next();
      const empty$ = merge(changed$, interval(LOOK_EVERY_MS, scheduler)).pipe(
        filter(() => !isAwaited()),
      );
      await firstValueFrom(race(empty$, timer(HAND_OVER_WITHIN_MS, scheduler)));
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
    show(); // it has left
  }
}

/** The accounts that can be served here. */
function readable(files: AccountFiles): readonly string[] {
  return [...files].flatMap(([account, file]) => ('config' in file ? [account] : []));
}
