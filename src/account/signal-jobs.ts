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
import type { Offsets } from '../kafka/log.ts';
import type { Hooks } from '../observe/hooks.ts';
import { singleFlight } from '../core/single-flight.ts';
import type { SignalBatch, SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { parseSignal, signalMessage, SIGNAL_DAYS } from '../sinks/signals/signals.ts';
import type {
  CertifyAck,
  CertifyRequest,
  PermitsRequest,
  ResyncAck,
  ResyncRequest,
  Signal,
} from '../sinks/signals/signals.ts';
import type { Message } from '../sinks/sink.ts';

/** The part of a request for new certificates (published count and digest of live keys) that concerns one list. */
export interface CertifyJob {
  readonly id: string;
  readonly resource: string;
}

/** The part of a resync request (to publish records again) that concerns one list. */
export interface ResyncJob extends CertifyJob {
  /** Key of the single record to publish again; null: the whole list. */
  readonly key: string | null;
  /** Time in epoch ms: only records modified then or later are published again; null: all records are. */
  readonly since: number | null;
}

/** The part of a resync or certificate request that concerns one list. */
type SignalJob =
  ({ readonly type: 'resync' } & ResyncJob) | ({ readonly type: 'certify' } & CertifyJob);

type JobRequest = ResyncRequest | CertifyRequest;

/** Outcome of a resync request, as reported in its acknowledgement. */
export type ResyncOutcome = Pick<ResyncAck, 'status' | 'message'>;

/** Outcome of a certificate request, as reported in its acknowledgement. */
export type CertifyOutcome = Pick<CertifyAck, 'status' | 'number' | 'message'>;

/** Resync and certificate requests in the signals topic that concern one list, and their acknowledgements. */
export interface TaskJobs {
  /**
   * Emits the resync requests for this list (to publish records again): first all pending ones, oldest first, then new ones. Never
   * completes or errors.
   */
  readonly resyncs$: Observable<ResyncJob>;
  /**
   * Emits the requests for a certificate of a full scan of this list: first all pending ones, oldest first, then new ones. Never completes
   * or errors.
   */
  readonly certifications$: Observable<CertifyJob>;
  /**
   * Returns the acknowledgement of a resync request, to be committed with the last events of the resync. After the commit, {@link
   * TaskJobs.ackCommitted} must be called.
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

/** Maximum number of pending requests from the signals topic. Further ones are ignored, so that memory stays bounded. */
const MAX_PENDING_REQUESTS = 1_000;
const DAY_MS = 86_400_000;

/**
 * The requests of an account in the signals topic, for the tasks of its lists. Requests sent while the service was down are handled when it
 * runs again. Requests that are acknowledged are not handled again.
 */
export class SignalJobs {
  /**
   * While subscribed, reads the signals topic for the tasks, and refuses requests for lists that this process does not read. Never emits or
   * completes; retries after every error.
   */
  readonly following$: Observable<never>;
  readonly #options: SignalJobsOptions;
  readonly #pending: PendingJobs;
  readonly #newJobs$ = new Subject<SignalJob>();
  /** Lists for which the signals topic may contain an acknowledgement that this process has not read. At first all lists. */
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
    this.#options = options;
    this.#inDoubt = new Set(options.resources);
    this.#pending = new PendingJobs(options);
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
   * Emits the jobs of new requests. Must be called after the whole batch is applied, because the batch may also contain acknowledgements of
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
      // At the end of the topic it is certain which acknowledgements of earlier transactions were committed.
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

/**
 * The pending requests of one account: resync and certificate requests from the signals topic that lack an acknowledgement for at least
 * one of their lists.
 */
class PendingJobs {
  readonly #options: SignalJobsOptions;
  /** Pending requests by id. `left` contains the lists for which the request is not acknowledged yet. */
  readonly #requests = new Map<string, { request: JobRequest; left: Set<string> }>();
  /** Next offset to read in each partition of the signals topic, by partition. */
  readonly #readTo = new Map<number, bigint>();

  constructor(options: SignalJobsOptions) {
    this.#options = options;
  }

  /** Offsets from which to continue reading the topic. */
  get position(): Offsets {
    return new Map(this.#readTo);
  }

  /** Resets the position after the signals topic was deleted and recreated, so that it is read from its beginning. */
  topicRecreated(): void {
    this.#readTo.clear();
  }

  /**
   * Applies a batch of messages of the signals topic, and returns the new requests in it, including those that later messages of the batch
   * acknowledge. Calls the hook `onSignalIgnored` for invalid signals, and for requests beyond {@link MAX_PENDING_REQUESTS}.
   */
  apply({ partition, messages, next }: SignalBatch): (JobRequest | PermitsRequest)[] {
    const readTo = this.#readTo.get(partition) ?? 0n;
    if (next <= readTo) return [];
    this.#readTo.set(partition, next);
    const requests: (JobRequest | PermitsRequest)[] = [];
    for (const message of messages) {
      if (BigInt(message.offset) < readTo) continue;
      try {
        requests.push(...this.#applySignal(parseSignal(message)));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#options.hooks.onSignalIgnored?.({ partition, offset: message.offset, reason });
      }
    }
    return requests;
  }

  #applySignal(signal: Signal): (JobRequest | PermitsRequest)[] {
    if (signal.account !== this.#options.account) return [];
    const { type } = signal;
    if (type === 'permits') return [signal];
    if (type === 'resync' || type === 'certify') return this.#add(signal) ? [signal] : [];
    if (type === 'resync-ack' || type === 'certify-ack') this.acknowledged(signal);
    return [];
  }

  #add(request: JobRequest): boolean {
    const { id, resources } = request;
    if (this.#requests.has(id) || this.#isOld(request)) return false;
    if (this.#requests.size >= MAX_PENDING_REQUESTS) {
      throw new Error(
        `${MAX_PENDING_REQUESTS} requests to resync or certify are pending already: send this one again later`,
      );
    }
    this.#requests.set(id, { request, left: new Set(resources) });
    return true;
  }

  /**
   * Whether a request is older than the topic's retention time. Such a request must not be carried out, because it may have been carried
   * out and its acknowledgement deleted.
   */
  #isOld({ requested_at }: JobRequest): boolean {
    // Kafka deletes whole segments, so a request may still be readable after that time.
    return Date.parse(requested_at) < this.#options.scheduler.now() - SIGNAL_DAYS * DAY_MS;
  }

  acknowledged({ id, resource }: { readonly id: string; readonly resource: string }): void {
    const left = this.#requests.get(id)?.left;
    left?.delete(resource);
    if (left?.size === 0) this.#requests.delete(id);
  }

  isPending({ id, resource }: SignalJob): boolean {
    return this.#requests.get(id)?.left.has(resource) ?? false;
  }

  /** Returns the jobs of all pending requests, oldest request first: one job for each list, even if the job is acknowledged already. */
  all(): SignalJob[] {
    return [...this.#requests.values()].flatMap(({ request }) => jobsOf(request));
  }
}

/** Splits a request into one job for each list that it names. */
function jobsOf(request: JobRequest): SignalJob[] {
  const { id, type } = request;
  const resources = [...new Set(request.resources)];
  if (type === 'certify') return resources.map((resource) => ({ type, id, resource }));
  const { order_number, since } = request;
  return resources.map((resource) => ({
    type,
    id,
    resource,
    key: order_number === null ? null : String(BigInt(order_number)),
    since: since === null ? null : Date.parse(since),
  }));
}
