import { ReplaySubject, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { LedgerSideMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { Hooks } from '../observe/hooks.ts';
import { allHooks } from '../observe/all-hooks.ts';
import type { AccountWork } from './account-work.ts';
import { finalPolls } from './final-polls.ts';
import type { FinalPolls } from './final-polls.ts';
import type { AccountPhase } from './next-step.ts';

/** Objects that all accounts of an instance share. */
export interface InstanceContext {
  /** Unique id of this process. */
  readonly instance: string;
  readonly work: AccountWork;
  readonly scheduler: SchedulerLike;
}

export interface AccountRunOptions {
  readonly config: AccountConfig;
  readonly context: InstanceContext;
  readonly hooks: Hooks;
  /** Called when the API first responds successfully to a request for one of the account's lists after the claim. */
  readonly onFirstResponse: () => void;
  /** Messages to commit in the same transactions as the account's claim and its release. */
  readonly ledgerMessages: LedgerSideMessages;
  /** Called whenever {@link AccountRun.phase} may have changed. */
  readonly onChange: () => void;
  readonly onFailed: (error: unknown, delayMs: number) => void;
}

/**
 * Restores, claims, serves and releases one account at this instance. It does one thing at a time: calls that do not fit its phase are
 * ignored.
 */
export interface AccountRun {
  readonly phase: () => AccountPhase;
  /** Last error of the account, and the scheduler time before which the account is not claimed again; undefined if there is none. */
  readonly failure: () => Failure | undefined;
  /** Current load of the account; 1 is normal, more while initial snapshots run. */
  readonly weight: () => number;
  /** Whether the account was claimed recently and none of its lists is being read yet. */
  readonly isStarting: () => boolean;
  readonly warm: () => void;
  readonly claim: () => void;
  /** Releases the account to another instance: polls its lists once more, then stops it. */
  readonly release: () => void;
  /** Stops the account; resolves once everything that runs for it has ended. */
  readonly stop: () => Promise<void>;
}

export interface Failure {
  readonly error: unknown;
  readonly retryAt: number;
}

/**
 * Pause before an account is claimed again after this instance was fenced, in ms; meanwhile the assignment may show that the new owner is
 * the right one.
 */
const RETRY_AFTER_FENCED_MS = 5_000;
/** Pause before an account is claimed again after any other error, in ms. */
const RETRY_AFTER_FAILURE_MS = 60_000;
/** Load that each list with a running initial snapshot adds to its account: the snapshot uses all of the list's quota. */
const SNAPSHOT_WEIGHT = 0.5;
/** An account that is still starting after this time (ms) no longer counts against the limit of concurrent starts. */
const START_TIMEOUT_MS = 15_000;

export function accountRun(options: AccountRunOptions): AccountRun {
  const { config, context, hooks, ledgerMessages, onChange, onFirstResponse, onFailed } = options;
  const { work, scheduler } = context;
  let doing: AccountPhase = 'nothing';
  let failure: Failure | undefined;
  let end: (() => void) | undefined;
  let polls: FinalPolls | undefined;
  let done: Promise<void> = Promise.resolve();
  let startedAt: number | undefined;
  let isAnswered = false;
  const snapshots = new Set<string>();

  const become = (next: AccountPhase): void => {
    doing = next;
    onChange();
  };
  const failed = (error: unknown): void => {
    const pauseMs = isFenced(error) ? RETRY_AFTER_FENCED_MS : RETRY_AFTER_FAILURE_MS;
    failure = { error, retryAt: scheduler.now() + pauseMs };
    onFailed(error, pauseMs);
    timer(pauseMs, scheduler).subscribe(onChange);
  };
  const own: Hooks = {
    onReady: () => (startedAt = undefined),
    onRequest: ({ what, status = 0 }) => {
      if (isAnswered || what === 'login' || status < 200 || status > 299) return;
      isAnswered = true;
      onFirstResponse();
    },
    onFailed: () => (startedAt = undefined),
    onProgress: ({ resource, done: isDone }) => {
      if (isDone) snapshots.delete(resource);
      else snapshots.add(resource);
    },
  };

  const warm = async (signal: AbortSignal): Promise<void> => {
    try {
      await work.warm(config, signal);
    } catch (error) {
      // The claim restores the images anyway, and reports what is wrong.
      if (!signal.aborted) hooks.onRetry?.({ what: 'kafka', error, count: 1, delayMs: 0 });
    }
    become(signal.aborted ? 'nothing' : 'warm');
  };
  const serve = async (stop$: ReplaySubject<void>, last: FinalPolls): Promise<void> => {
    snapshots.clear();
    failure = undefined;
    isAnswered = false;
    startedAt = scheduler.now();
    try {
      await work.serve({
        ...{ config, stop$, pollNow$: last.pollNow$, sideMessages: ledgerMessages },
        hooks: allHooks(own, last.hooks, hooks),
      });
    } catch (error) {
      failed(error);
    }
    startedAt = undefined;
    become('nothing');
  };

  return {
    phase: () => doing,
    failure: () => (failure && failure.retryAt > scheduler.now() ? failure : undefined),
    weight: () => 1 + SNAPSHOT_WEIGHT * snapshots.size,
    isStarting: () => startedAt !== undefined && scheduler.now() < startedAt + START_TIMEOUT_MS,
    warm: () => {
      if (doing !== 'nothing') return;
      const aborting = new AbortController();
      end = () => aborting.abort();
      doing = 'warming';
      done = warm(aborting.signal);
    },
    claim: () => {
      if (doing !== 'nothing' && doing !== 'warm') return;
      const stop$ = new ReplaySubject<void>(1);
      end = () => stop$.next();
      polls = finalPolls(scheduler);
      doing = 'running';
      done = serve(stop$, polls);
    },
    release: () => {
      if (doing !== 'running') return;
      doing = 'stopping';
      polls?.pollAll$.subscribe(end);
    },
    stop: () => {
      if (doing === 'warm') doing = 'nothing';
      if (doing === 'warming' || doing === 'running') {
        doing = 'stopping';
        end?.();
      }
      return done;
    },
  };
}

/** Whether the error says that another instance claimed the account. */
export function isFenced(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'FENCED';
}
