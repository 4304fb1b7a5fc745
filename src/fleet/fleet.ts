import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  auditTime,
  defer,
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
import type { logCreator } from 'kafkajs';
import type { AccountsOptions } from '../config/accounts.ts';
import type { Config, ConfigWith } from '../config/config.ts';
import { steadyScheduler } from '../core/clock.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { openLinks } from '../sinks/client/open-kafka.ts';
import { membership } from '../sinks/membership/membership.ts';
import type { Generation } from '../sinks/membership/membership.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import { sharedSignals } from '../sinks/signals/shared-signals.ts';
import { ensureTopics } from '../sinks/topics/kafka-topics.ts';
import { sharedTopicsOf } from '../sinks/topics/destination.ts';
import { lockFolder } from '../state/lock.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { watchAccounts } from './account-files.ts';
import type { AccountFiles } from './account-files.ts';
import { fleetAccounts } from './fleet-accounts.ts';
import type { FleetAccountsOptions } from './fleet-accounts.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import { fleetLog } from './fleet-log.ts';
import { fleetViewOf } from './fleet-view-of.ts';
import { packTold, unpackSharedOut } from './member-data.ts';
import type { SharedOut } from './member-data.ts';
import { shareOut } from './share-out.ts';

/** What {@link runFleet} needs. */
export interface FleetOptions {
  /** The instance's own settings. */
  readonly config: ConfigWith<'kafka' | 'registry'> & AccountsOptions['config'];
  /** Of the instance, as people know it. See {@link instanceNameOf}. */
  readonly name: string;
  /** Where accounts' settings come from, beside their files. */
  readonly source: Pick<AccountsOptions, 'env' | 'cwd'>;
  /** Its first value stops the instance: its accounts are handed over. It must replay that value. */
  readonly stop$: Observable<unknown>;
  /** Told of the fleet. */
  readonly fleetHooks?: FleetHooks;
  /** Told of an account, from when it is given to this instance. */
  readonly watch: FleetAccountsOptions['watch'];
  readonly scheduler?: SchedulerLike;
  readonly kafkaLog?: logCreator;
}

/** `INSTANCE_NAME`, or the name of the host and a random part. */
export function instanceNameOf({ instanceName }: Pick<Config, 'instanceName'>): string {
  return instanceName ?? `${hostname()}-${randomUUID().slice(0, 4)}`;
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
/** How long a stop waits for others to take its accounts, ms. */
const HAND_OVER_WITHIN_MS = 20_000;
const MAX_PAUSE_MS = 5_000;

/**
 * An instance of a fleet until `stop$`: a member of the group that shares accounts out, and each account that it is given, by
 * itself. Resolves when its accounts are handed over, or stopped where there is nobody else.
 *
 * @throws CellarstreamError `SETTINGS`, `STATE_LOCKED`, `STATE_FOLDER` at the start; `KAFKA_REFUSED`, `TLS_REFUSED`.
 */
export async function runFleet(options: FleetOptions): Promise<void> {
  const { config, name, source, stop$, fleetHooks = {}, watch, kafkaLog } = options;
  const { scheduler = steadyScheduler } = options;
  const names = topicNames(config.topics.sharedPrefix);
  const instance = randomUUID();
  const unlock = lockFolder(config.stateDir);
  const links = openLinks(config, { log: kafkaLog });
  const signals = sharedSignals(kafkaSignals(links.kafka, names.signals));

  let generation: Generation | undefined;
  let given: SharedOut | undefined;
  let files: AccountFiles = new Map();
  let isLeaving = false;
  const changed$ = new Subject<void>();
  const rejoin$ = new Subject<void>();
  const leave$ = new ReplaySubject<void>(1);

  const onRetry: NonNullable<FleetHooks['onRetry']> = (retry) => fleetHooks.onRetry?.(retry);
  const log = fleetLog({ kafka: links.kafka, topic: names.fleet, scheduler, onRetry });
  const accounts = fleetAccounts({
    parts: { instance, links, signals, scheduler, kafkaLog },
    ...{ name, stateDir: config.stateDir, topic: names.fleet, log, watch, fleetHooks },
    onChange: () => changed$.next(),
  });

  const take$ = (next: Generation) => {
    generation = next;
    given = unpackSharedOut(next.given);
    accounts.give(next.number, given);
    fleetHooks.onGeneration?.({
      number: next.number,
      instances: given.members.map((member) => member.name),
      accounts: [...given.accounts.values()].filter((each) => each === instance).length,
    });
    changed$.next();
  };
  const member$ = membership({
    kafka: links.kafka,
    group: `cellarstream.${config.topics.sharedPrefix}.fleet`,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    heartbeatMs: HEARTBEAT_MS,
    tell: () => packTold({ instance, name, ...accounts.told(isLeaving ? [] : readable(files)) }),
    share: (members) => shareOut(members, new Set(given?.members.map((member) => member.instance))),
    rejoin$,
    leave$,
    onRetry: (error) => onRetry({ error, count: 1, delayMs: 0 }),
  }).pipe(tap(take$));
  const files$ = watchAccounts({ ...source, config, scheduler }).pipe(
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
  const showing$ = merge(changed$, interval(VIEW_AT_LEAST_EVERY_MS, scheduler)).pipe(
    auditTime(VIEW_EVERY_MS, scheduler),
    tap(() =>
      fleetHooks.onFleet?.(
        fleetViewOf({
          ...{ name, generation: generation?.number, given, files, words: log.words },
          here: accounts.here(),
          now: scheduler.now(),
        }),
      ),
    ),
  );
  /** Others take what is run here; where there are none it is stopped. */
  const leaving = async (): Promise<void> => {
    isLeaving = true;
    const hasOthers = (given?.members.length ?? 0) > 1;
    if (hasOthers) {
      rejoin$.next();
      const empty$ = merge(changed$, interval(LOOK_EVERY_MS, scheduler)).pipe(
        filter(() => accounts.count() === 0),
      );
      await firstValueFrom(race(empty$, timer(HAND_OVER_WITHIN_MS, scheduler)));
    }
    await accounts.stopAll();
    leave$.next();
  };

  try {
    const topics$ = defer(() => ensureTopics(sharedTopicsOf(config, links.kafka))).pipe(
      backoff({ maxMs: MAX_PAUSE_MS, scheduler, onRetry }),
      takeUntil(stop$),
    );
    const isThere = await lastValueFrom(topics$, { defaultValue: undefined });
    if (!isThere) return;
    const over$ = new Subject<void>();
    const left = lastValueFrom(member$, { defaultValue: undefined });
    void firstValueFrom(stop$).then(leaving);
    const beside$ = merge(
      files$,
      log.following$.pipe(tap(() => changed$.next())),
      stepping$,
      showing$,
    );
    await Promise.race([
      left,
      lastValueFrom(beside$.pipe(takeUntil(over$)), { defaultValue: undefined }),
    ]);
    over$.next();
  } finally {
    await accounts.stopAll();
    log.close();
    links.connections.close();
    await Promise.allSettled([links.registry.close(), signals.close()]);
    unlock();
  }
}

/** The accounts that can be served here. */
function readable(files: AccountFiles): readonly string[] {
  return [...files].flatMap(([account, file]) => ('config' in file ? [account] : []));
}
