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

/** Last error of an account, and the time on the scheduler's clock before which this instance does not claim the account again. */
export interface Failure {
  readonly error: unknown;
  readonly retryAt: number;
}

/**
 * Pause before an instance that was fenced claims the account again, in ms. A newer assignment may arrive meanwhile, which leaves the
 * account to the new owner.
 */
const RETRY_AFTER_FENCED_MS = 5_000;
/** Pause before an account is claimed again after an error other than `FENCED`, in ms. */
const RETRY_AFTER_FAILURE_MS = 60_000;
/** Load that each running initial snapshot adds to its account. Without snapshots the load is 1. A snapshot uses up its list's quota. */
const SNAPSHOT_WEIGHT = 0.5;
/** Time in ms after which an account that is still starting no longer counts against the limit of concurrent starts. */
const START_TIMEOUT_MS = 15_000;

/**
 * Restores, claims, serves and releases one account at this instance.
 *
 * The phase begins as `nothing`. {@link warm} leads to `warming` and, when the images are restored, to `warm`. {@link claim} leads from
 * `nothing` or `warm` to `running`. {@link release} and {@link stop} lead to `stopping` and then to `nothing`, or from `warm` directly to
 * `nothing`. An error while the account is served leads to `nothing`. Calls that do not fit the phase are ignored.
 */
export class AccountRun {
  readonly #options: AccountRunOptions;
  #phase: AccountPhase = 'nothing';
  #failure: Failure | undefined;
  /** Resolves when the work of the account's current phase, such as restoring its images, has ended. */
  #done: Promise<void> = Promise.resolve();
  /** Ends the work of the current phase: aborts restoring the images, or stops serving the account. */
  #end: () => void = () => undefined;
  #finalPolls: FinalPolls | undefined;
  /**
   * When this instance last began to claim the account, on the scheduler's clock; undefined once reading of a list begins or fails, and
   * when the account has stopped.
   */
  #startedAt: number | undefined;
  /** Lists with a running initial snapshot. */
  readonly #snapshots = new Set<string>();

  constructor(options: AccountRunOptions) {
    this.#options = options;
  }

  get phase(): AccountPhase {
    return this.#phase;
  }

  /** Last error of the account; undefined if there was none, or once the pause between the error and the next claim is over. */
  get failure(): Failure | undefined {
    return this.#failure && this.#failure.retryAt > this.#now() ? this.#failure : undefined;
  }

  /**
   * Current load of the account, for the assignment of accounts to instances: 1, and `SNAPSHOT_WEIGHT` more for each running initial
   * snapshot.
   */
  get weight(): number {
    return 1 + SNAPSHOT_WEIGHT * this.#snapshots.size;
  }

  /** Whether this instance claimed the account less than {@link START_TIMEOUT_MS} ago and reads none of its lists yet. */
  get isStarting(): boolean {
    return this.#startedAt !== undefined && this.#now() < this.#startedAt + START_TIMEOUT_MS;
  }

  warm(): void {
    if (this.#phase !== 'nothing') return;
    const aborting = new AbortController();
    this.#end = () => aborting.abort();
    this.#phase = 'warming';
    this.#done = this.#restore(aborting.signal);
  }

  claim(): void {
    if (this.#phase !== 'nothing' && this.#phase !== 'warm') return;
    const stop$ = new ReplaySubject<void>(1);
    this.#end = () => stop$.next();
    this.#finalPolls = finalPolls(this.#options.context.scheduler);
    this.#phase = 'running';
    this.#done = this.#serve(stop$, this.#finalPolls);
  }

  /** Releases a running account to another instance: polls the account's lists once more, then stops serving it. */
  release(): void {
    if (this.#phase !== 'running') return;
    this.#phase = 'stopping';
    this.#finalPolls?.pollAll$.subscribe(this.#end);
  }

  /** Stops the account. Resolves once all work for the account has ended. */
  stop(): Promise<void> {
    if (this.#phase === 'warm') this.#phase = 'nothing';
    if (this.#phase === 'warming' || this.#phase === 'running') {
      this.#phase = 'stopping';
      this.#end();
    }
    return this.#done;
  }

  #now(): number {
    return this.#options.context.scheduler.now();
  }

  #become(phase: AccountPhase): void {
    this.#phase = phase;
    this.#options.onChange();
  }

  async #restore(signal: AbortSignal): Promise<void> {
    const { config, context, hooks } = this.#options;
    try {
      await context.work.warm(config, signal);
    } catch (error) {
      // The claim restores the images anyway, and reports what is wrong.
      if (!signal.aborted) hooks.onRetry?.({ what: 'kafka', error, count: 1, delayMs: 0 });
    }
    this.#become(signal.aborted ? 'nothing' : 'warm');
  }

  async #serve(stop$: ReplaySubject<void>, { pollNow$, hooks }: FinalPolls): Promise<void> {
    const { config, context, ledgerMessages } = this.#options;
    this.#snapshots.clear();
    this.#failure = undefined;
    this.#startedAt = this.#now();
    try {
      await context.work.serve({
        ...{ config, stop$, pollNow$, sideMessages: ledgerMessages },
        hooks: allHooks(this.#progressHooks(), hooks, this.#options.hooks),
      });
    } catch (error) {
      this.#failed(error);
    }
    this.#startedAt = undefined;
    this.#become('nothing');
  }

  #progressHooks(): Hooks {
    let isAnswered = false;
    return {
      onReady: () => (this.#startedAt = undefined),
      onFailed: () => (this.#startedAt = undefined),
      onRequest: ({ what, status = 0 }) => {
        if (isAnswered || what === 'login' || status < 200 || status > 299) return;
        isAnswered = true;
        this.#options.onFirstResponse();
      },
      onProgress: ({ resource, done }) => {
        if (done) this.#snapshots.delete(resource);
        else this.#snapshots.add(resource);
      },
    };
  }

  #failed(error: unknown): void {
    const { context, onChange, onFailed } = this.#options;
    const pauseMs = isFenced(error) ? RETRY_AFTER_FENCED_MS : RETRY_AFTER_FAILURE_MS;
    this.#failure = { error, retryAt: this.#now() + pauseMs };
    onFailed(error, pauseMs);
    timer(pauseMs, context.scheduler).subscribe(onChange);
  }
}

/** Whether the error says that another instance claimed the account. */
export function isFenced(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'FENCED';
}
