import { ReplaySubject, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { LedgerMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { Hooks } from '../observe/hooks.ts';
import { allHooks } from '../observe/all-hooks.ts';
import type { AccountWork } from './account-work.ts';
import { lastPolls } from './last-polls.ts';
import type { LastPolls } from './last-polls.ts';
import type { Doing } from './next-step.ts';

/** What all accounts of an instance share. */
export interface InstanceParts {
  /** Names this process. */
  readonly instance: string;
  readonly work: AccountWork;
  readonly scheduler: SchedulerLike;
}

export interface AccountRunOptions {
  readonly config: AccountConfig;
  readonly parts: InstanceParts;
  readonly hooks: Hooks;
  /** Called when a list was answered for the first time since it was claimed. */
  readonly onAnswered: () => void;
  /** What is written when it is claimed, and when it is released. */
  readonly words: LedgerMessages;
  /** Called whenever {@link AccountRun.doing} may have changed. */
  readonly onChange: () => void;
  readonly onFailed: (error: unknown, delayMs: number) => void;
}

/** One account at this instance. One thing at a time: what is asked for out of turn is not done. */
export interface AccountRun {
  readonly doing: () => Doing;
  /** Whether it is to be claimed later: why, and when that may be, on the scheduler's clock. */
  readonly failure: () => Failure | undefined;
  /** What it costs now. */
  readonly weight: () => number;
  /** Whether it was claimed, and none of its lists is read yet. */
  readonly isStarting: () => boolean;
  readonly warm: () => void;
  readonly claim: () => void;
  /** Stops it for another instance, which goes on with it: its lists are polled a last time. */
  readonly release: () => void;
  /** Resolves when nothing of it is under way. */
  readonly stop: () => Promise<void>;
}

export interface Failure {
  readonly error: unknown;
  readonly until: number;
}

/** Whoever has it now may be the one that is to have it. */
const AFTER_FENCING_MS = 5_000;
const AFTER_FAILURE_MS = 60_000;
/** A list that is read for the first time uses all of its quota. */
const SNAPSHOT_WEIGHT = 0.5;
/** A start that takes longer does not keep others from theirs. */
const START_WITHIN_MS = 15_000;

export function accountRun(options: AccountRunOptions): AccountRun {
  const { config, parts, hooks, words, onChange, onAnswered, onFailed } = options;
  const { work, scheduler } = parts;
  let doing: Doing = 'nothing';
  let failure: Failure | undefined;
  let end: (() => void) | undefined;
  let polls: LastPolls | undefined;
  let done: Promise<void> = Promise.resolve();
  let startedAt: number | undefined;
  let isAnswered = false;
  const snapshots = new Set<string>();

  const become = (next: Doing): void => {
    doing = next;
    onChange();
  };
  const failed = (error: unknown): void => {
    const pauseMs = isFenced(error) ? AFTER_FENCING_MS : AFTER_FAILURE_MS;
    failure = { error, until: scheduler.now() + pauseMs };
    onFailed(error, pauseMs);
    timer(pauseMs, scheduler).subscribe(onChange);
  };
  const own: Hooks = {
    onReady: () => (startedAt = undefined),
    onRequest: ({ what, status = 0 }) => {
      if (isAnswered || what === 'login' || status < 200 || status > 299) return;
      isAnswered = true;
      onAnswered();
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
      // Whoever takes the account over restores it anyway, and says what is wrong.
      if (!signal.aborted) hooks.onRetry?.({ what: 'kafka', error, count: 1, delayMs: 0 });
    }
    become(signal.aborted ? 'nothing' : 'warm');
  };
  const serve = async (stop$: ReplaySubject<void>, last: LastPolls): Promise<void> => {
    snapshots.clear();
    failure = undefined;
    isAnswered = false;
    startedAt = scheduler.now();
    try {
      await work.serve({
        ...{ config, stop$, pollNow$: last.pollNow$, beside: words },
        hooks: allHooks(own, last.hooks, hooks),
      });
    } catch (error) {
      failed(error);
    }
    startedAt = undefined;
    become('nothing');
  };

  return {
    doing: () => doing,
    failure: () => (failure && failure.until > scheduler.now() ? failure : undefined),
    weight: () => 1 + SNAPSHOT_WEIGHT * snapshots.size,
    isStarting: () => startedAt !== undefined && scheduler.now() < startedAt + START_WITHIN_MS,
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
      polls = lastPolls(scheduler);
      doing = 'running';
      done = serve(stop$, polls);
    },
    release: () => {
      if (doing !== 'running') return;
      doing = 'stopping';
      polls?.polled$.subscribe(end);
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

/** Whether another instance has taken the account. */
export function isFenced(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'FENCED';
}
