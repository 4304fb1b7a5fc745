import {
  concatMap,
  defer,
  filter,
  from,
  ignoreElements,
  lastValueFrom,
  merge,
  retry,
  Subject,
  switchMap,
  tap,
  timer,
  toArray,
} from 'rxjs';
import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable } from '../core/errors.ts';
import { PAUSES, pauseMs } from '../core/retries.ts';
import type { Hooks } from '../observe/hooks.ts';
import { singleFlight } from '../core/single-flight.ts';
import type { SignalBatch, SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../sinks/signals/signals.ts';
import type { CertifyAck, PermitsRequest, ResyncAck } from '../sinks/signals/signals.ts';
import type { Message } from '../sinks/sink.ts';
import { jobsOf, PendingJobs } from './pending-jobs.ts';
import type { CertifyJob, ResyncJob, SignalJob } from './pending-jobs.ts';

export type { CertifyJob, ResyncJob } from './pending-jobs.ts';

/** Outcome of a resync request, as reported in its acknowledgement. */
export type ResyncOutcome = Pick<ResyncAck, 'status' | 'message'>;

/** Outcome of a certificate request, as reported in its acknowledgement. */
export type CertifyOutcome = Pick<CertifyAck, 'status' | 'number' | 'message'>;

/** Resync and certificate requests in the signals topic that concern one list, and their acknowledgements. */
export interface TaskJobs {
  /**
   * Emits the requests to publish this list, or records of it, again (resyncs): first all pending requests, oldest first, then new ones.
   * Never completes or errors.
   */
  readonly resyncs$: Observable<ResyncJob>;
  /** Requests for a certificate of a full scan: first all pending ones, oldest first, then new ones. Never completes or errors. */
  readonly certifications$: Observable<CertifyJob>;
  /**
   * Returns the acknowledgement of a resync request, to be committed with the last events of the resync. Until
   * {@link TaskJobs.ackCommitted} is called, it is treated as unknown whether the acknowledgement was committed.
   */
  readonly resyncAck: (resync: ResyncJob, outcome: ResyncOutcome, events: number) => Message;
  /** Returns the acknowledgement of a certificate request, to be committed with the certificate. */
  readonly certifyAck: (asked: CertifyJob, outcome: CertifyOutcome) => Message;
  /** To be called once the acknowledgement of `request`, a resync or certificate request, has been committed. */
  readonly ackCommitted: (request: { readonly id: string }) => void;
}

export interface SignalJobsOptions {
  readonly topic: SignalTopic;
  /** Account whose requests are handled. Requests for other accounts are ignored. */
  readonly account: string;
  /** Lists that this process reads. */
  readonly resources: readonly string[];
  readonly scheduler: SchedulerLike;
  readonly hooks: Pick<Hooks, 'onResync' | 'onSignalIgnored' | 'onSignalsFailed'>;
  /** Called with each new request of another process for permits. Requests that were in the signals topic at the start are left out. */
  readonly onPermitsRequest?: (request: PermitsRequest) => void;
}

/**
 * The requests of an account in the signals topic, for the tasks of its lists. Requests sent while the service was down are handled when it
 * runs again. Requests that are acknowledged are not handled again.
 *
 * A task that has just been opened, or whose last acknowledgement may or may not have been committed, gets requests only after the topic
 * has been read to its end. By then it is certain which earlier transactions were committed.
 */
export class SignalJobs {
  /**
   * While subscribed, reads the signals topic, so that the tasks receive their requests, and refuses requests for lists that this process
   * does not read. Never emits or completes; retries after every error.
   */
  readonly following$: Observable<never>;
  readonly #options: SignalJobsOptions;
  readonly #pending: PendingJobs;
  readonly #newJobs$ = new Subject<SignalJob>();
  /**
   * Lists for which the signals topic may contain an acknowledgement that this process has not read: at first all lists, later each list
   * with an acknowledgement that was written and not yet reported as committed ({@link TaskJobs.ackCommitted}). Before the jobs of such a
   * list are emitted, the topic is read to its end.
   */
  readonly #inDoubt: Set<string>;
  /** Whether the signals topic has been read to its end once. Messages that are read after that are new. */
  #isFollowing = false;
  /** Reads the signals topic to its current end. */
  readonly #catchUp = singleFlight(async (): Promise<void> => {
    const batches$ = this.#options.topic.read({ from: this.#pending.position, follow: false });
    const jobs$ = batches$.pipe(
      concatMap((batch) => this.#apply(batch)),
      toArray(),
    );
    this.#emit(await lastValueFrom(jobs$));
  });

  constructor(options: SignalJobsOptions) {
    const { account, resources, scheduler, hooks } = options;
    this.#options = options;
    this.#inDoubt = new Set(resources);
    this.#pending = new PendingJobs(account, () => scheduler.now(), hooks.onSignalIgnored);
    this.following$ = merge(this.#follow(), this.#refuseForeign());
  }

  task(resource: string): TaskJobs {
    const jobs$ = this.#jobsOf(resource);
    const acknowledge = (id: string, outcome: AckOutcome): Message => {
      this.#inDoubt.add(resource);
      return this.#acknowledgement({ id, resource }, outcome);
    };
    return {
      resyncs$: jobs$.pipe(filter((job) => job.type === 'resync')),
      certifications$: jobs$.pipe(filter((job) => job.type === 'certify')),
      resyncAck: ({ id }, { status, message }, events) =>
        acknowledge(id, { type: 'resync-ack', status, events, message }),
      certifyAck: ({ id }, outcome) => acknowledge(id, { type: 'certify-ack', ...outcome }),
      ackCommitted: ({ id }) => {
        this.#inDoubt.delete(resource);
        this.#pending.acknowledged({ id, resource });
      },
    };
  }

  /**
   * Applies a batch of messages of the signals topic. Calls `onPermitsRequest` for new requests for permits, and returns the jobs of the
   * other new requests.
   */
  #apply(batch: SignalBatch): SignalJob[] {
    return this.#pending.apply(batch).flatMap((request) => {
      if (request.type !== 'permits') return jobsOf(request);
      if (this.#isFollowing) this.#options.onPermitsRequest?.(request);
      return [];
    });
  }

  /**
   * Emits the jobs of new requests. Must be called after the whole batch is applied, because it may also contain the acknowledgements of
   * these requests.
   */
  #emit(jobs: readonly SignalJob[]): void {
    for (const job of jobs) this.#newJobs$.next(job);
  }

  #pendingJobs(isMine: (resource: string) => boolean): Observable<SignalJob> {
    return defer(() => merge(from(this.#pending.all()), this.#newJobs$)).pipe(
      filter((job) => isMine(job.resource) && this.#pending.isPending(job)),
    );
  }

  #jobsOf(resource: string): Observable<SignalJob> {
    return defer(async () => {
      if (this.#inDoubt.has(resource)) await this.#catchUp();
      this.#inDoubt.delete(resource);
    }).pipe(
      this.#retried(),
      switchMap(() => this.#pendingJobs((each) => each === resource)),
    );
  }

  #follow(): Observable<never> {
    return defer(this.#catchUp).pipe(
      switchMap(() => {
        this.#isFollowing = true;
        return this.#options.topic.read({ from: this.#pending.position, follow: true });
      }),
      tap((batch) => this.#emit(this.#apply(batch))),
      this.#retried(),
      ignoreElements(),
    );
  }

  /** Refuses requests for lists that this process does not read: acknowledges them with status `refused`. Never emits or completes. */
  #refuseForeign(): Observable<never> {
    const { resources } = this.#options;
    return defer(this.#catchUp).pipe(
      switchMap(() => this.#pendingJobs((resource) => !resources.includes(resource))),
      concatMap((job) => this.#refuse(job)),
      this.#retried(),
      ignoreElements(),
    );
  }

  async #refuse(job: SignalJob): Promise<void> {
    if (!this.#pending.isPending(job)) return;
    const { topic, resources, hooks } = this.#options;
    const { id, resource, type } = job;
    const message = `this service does not read ${resource}: it reads ${resources.join(', ')}`;
    const refused = { status: 'refused', message } as const;
    const outcome: AckOutcome =
      type === 'certify'
        ? { type: 'certify-ack', ...refused, number: null }
        : { type: 'resync-ack', status: refused.status, events: 0, message };
    await topic.send(this.#acknowledgement(job, outcome));
    if (type === 'resync') hooks.onResync?.({ resource, id, ...refused, events: 0 });
  }

  #acknowledgement({ id, resource }: CertifyJob, outcome: AckOutcome): Message {
    const { topic, account, scheduler } = this.#options;
    const at = new Date(scheduler.now()).toISOString();
    const common = { type: outcome.type, id, account, resource };
    return signalMessage(topic.name, { ...common, ...outcome, at });
  }

  /**
   * Returns an operator that subscribes again after every error, after a pause and without limit, so that an error in reading signals does
   * not stop the service.
   */
  #retried<T>(): MonoTypeOperatorFunction<T> {
    const { scheduler, hooks } = this.#options;
    return retry<T>({
      resetOnSuccess: true,
      delay: (error: unknown, count) => {
        const isRecreated = error instanceof CellarstreamError && error.code === 'POSITION';
        if (isRecreated) this.#pending.topicRecreated();
        const canPass = isRetryable(error) || isRecreated;
        const delayMs = pauseMs(canPass ? PAUSES.restart : PAUSES.permanentError, count);
        hooks.onSignalsFailed?.({ error, delayMs });
        return timer(delayMs, scheduler);
      },
    });
  }
}

type OfRequest = 'id' | 'account' | 'resource' | 'at';
/** Type and outcome of an acknowledgement, without the fields that {@link OfRequest} names. */
type AckOutcome = Omit<ResyncAck, OfRequest> | Omit<CertifyAck, OfRequest>;
