import { merge, Observable, ReplaySubject, Subject, take, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { LedgerSideMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { Hooks } from '../observe/hooks.ts';
import { allHooks } from '../observe/all-hooks.ts';
import type { AccountWork } from './account-work.ts';
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
  /** Called once after each claim: at the first successful response of the API to a request for one of the account's lists. */
  readonly onFirstResponse: () => void;
  /** Messages to commit in one transaction with the claim of the account or with its release. */
  readonly ledgerMessages: LedgerSideMessages;
  /** Called at the end of restoring the images, of serving the account, and of the pause after a failure. */
  readonly onChange: () => void;
  readonly onFailed: (error: unknown, delayMs: number) => void;
}

/** Last error of an account, and the time on the scheduler's clock before which this instance does not claim the account again. */
export interface Failure {
  readonly error: unknown;
  readonly retryAt: number;
}

/**
 * Pause after an instance was fenced, before it claims the account again, in ms. In this time, a newer assignment may give the account to
 * another instance.
 */
const RETRY_AFTER_FENCED_MS = 5_000;
/** Pause before an account is claimed again after an error other than `FENCED`, in ms. */
const RETRY_AFTER_FAILURE_MS = 60_000;
/**
 * Maximum duration of the final polls before a release, in ms. Must be well below `RELEASE_TIMEOUT_MS`, after which the next owner claims
 * the account without a release.
 */
const FINAL_POLL_TIMEOUT_MS = 1_000;
/** Amount that each running initial snapshot adds to the load of its account. Without snapshots, the load of an account is 1. */
const SNAPSHOT_WEIGHT = 0.5; // a snapshot uses up its list's quota
/** Time in ms after which an account that is still starting no longer counts against the limit of concurrent starts. */
const START_TIMEOUT_MS = 15_000;

/**
 * Restores, claims, serves and releases one account at this instance. The phase begins as `nothing`. These calls and events change it:
 *
 * - {@link warm}: from `nothing` to `warming`. It becomes `warm` when the images are restored or restoring has failed.
 * - {@link claim}: from `nothing` or `warm` to `running`. An error while the account is claimed or served leads to `nothing`.
 * - {@link release}: from `running` to `stopping`, and then to `nothing`.
 * - {@link stop}: from `running` or `warming` to `stopping`, and then to `nothing`; from `warm` directly to `nothing`.
 *
 * Calls in any other phase are ignored.
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
   * Time on the scheduler's clock when this instance last began to claim the account. Undefined again as soon as one of the account's lists
   * is being read or has failed, or the account has stopped.
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

  /** Last error of the account, during the pause before the account is claimed again; undefined at other times. */
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

  /**
   * Whether the account is starting: this instance began to claim it less than `START_TIMEOUT_MS` ago, and so far none of the account's
   * lists is being read or has failed.
   */
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
    this.#finalPolls = new FinalPolls(this.#options.context.scheduler);
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

/** Polls an account's lists once more before its release, so that the pause in polling begins as late as possible. */
export class FinalPolls {
  readonly #scheduler: SchedulerLike;
  /** Each value triggers an immediate poll of the account's lists. */
  readonly pollNow$ = new Subject<void>();
  readonly #allPolled$ = new Subject<void>();
  /** Lists of which a complete poll has been published. The final polls poll each of them again: see `#waiting`. */
  readonly #lists = new Set<string>();
  /** Lists whose final poll, before the account's release, is not published yet; undefined until the final polls begin. */
  #waiting: Set<string> | undefined;

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
  }

  /** Hooks for the account to call. They let this object notice when the last page of a list's poll has been published. */
  readonly hooks: Hooks = {
    onPublished: ({ resource, lane, completes }) => {
      if (lane !== 'poll' || !completes) return;
      this.#lists.add(resource);
      this.#waiting?.delete(resource);
      if (this.#waiting?.size === 0) this.#allPolled$.next();
    },
  };

  /**
   * Starts the final polls on subscription. Emits once a new poll of each list that was polled before is published, after
   * `FINAL_POLL_TIMEOUT_MS` at the latest.
   */
  readonly pollAll$ = new Observable<unknown>((subscriber) => {
    this.#waiting = new Set(this.#lists);
    const within = timer(this.#waiting.size > 0 ? FINAL_POLL_TIMEOUT_MS : 0, this.#scheduler);
    const subscription = merge(this.#allPolled$, within).pipe(take(1)).subscribe(subscriber);
    this.pollNow$.next();
    return subscription;
  });
}

/** Whether the error says that another instance claimed the account. */
export function isFenced(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'FENCED';
}
