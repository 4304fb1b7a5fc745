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
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError, isRetryable } from '../core/errors.ts';
import { PAUSES, pauseMs } from '../core/retries.ts';
import type { Hooks } from '../observe/hooks.ts';
import { singleFlight } from '../core/single-flight.ts';
import type { SignalBatch, SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { parseSignal, SIGNAL_DAYS, signalMessage } from '../sinks/signals/signals.ts';
import type {
  CertifyAck,
  CertifyRequest,
  PermitsRequest,
  ResyncAck,
  ResyncRequest,
  Signal,
} from '../sinks/signals/signals.ts';
import type { Message } from '../sinks/sink.ts';

/** The part of a resync request (to publish records again) that concerns one list. */
export interface ResyncJob {
  readonly id: string;
  readonly resource: string;
  /** Key of the single order to publish again; null: the whole list. */
  readonly orderNumber: string | null;
  /** Restricts the resync to records modified at this time (epoch ms) or later; null: no restriction. */
  readonly since: number | null;
}

/** Outcome of a resync request, as its acknowledgement reports it. */
export type ResyncOutcome = Pick<ResyncAck, 'status' | 'message'>;

/** The part of a certificate request that concerns one list. */
export interface CertifyJob {
  readonly id: string;
  readonly resource: string;
}

/** Outcome of a certificate request, as its acknowledgement reports it. */
export type CertifyOutcome = Pick<CertifyAck, 'status' | 'number' | 'message'>;

/** Requests from the signals topic that concern one list, for the list's task. */
export interface TaskJobs {
  /** Resync requests: first those not acknowledged yet, oldest first, then new ones. Never completes or errors. */
  readonly resyncs$: Observable<ResyncJob>;
  /** Certificate requests: first those not acknowledged yet, oldest first, then new ones. Never completes or errors. */
  readonly certifications$: Observable<CertifyJob>;
  /**
   * Returns the acknowledgement of a resync request, to be committed with its last events. Until {@link TaskJobs.ackCommitted} is called it
   * counts as unknown whether the acknowledgement was committed.
   */
  readonly resyncAck: (resync: ResyncJob, outcome: ResyncOutcome, events: number) => Message;
  /** Returns the acknowledgement of a certificate request, to be committed with the certificate. */
  readonly certifyAck: (asked: CertifyJob, outcome: CertifyOutcome) => Message;
  /** To be called once a request's acknowledgement has been committed. */
  readonly ackCommitted: (request: { readonly id: string }) => void;
}

/** Requests in the signals topic, for all lists of an account. */
export interface SignalJobs {
  readonly task: (resource: string) => TaskJobs;
  /**
   * Follows the signals topic while subscribed, and refuses requests for lists that this process does not read. Emits nothing; retries
   * after every error.
   */
  readonly following$: Observable<never>;
}

export interface SignalJobsOptions {
  readonly topic: SignalTopic;
  /** Account whose requests are handled; requests for other accounts are ignored. */
  readonly account: string;
  /** Lists that this process reads. */
  readonly resources: readonly string[];
  readonly scheduler: SchedulerLike;
  readonly hooks: Pick<Hooks, 'onResync' | 'onSignalIgnored' | 'onSignalsFailed'>;
  /** Called with each new request of a guest for permits of the account; not with requests that were in the topic at the start. */
  readonly onPermitsRequest?: (request: PermitsRequest) => void;
}

/** Maximum number of pending requests from the signals topic. Further ones are ignored, so that memory stays bounded. */
const MAX_PENDING_REQUESTS = 1_000;
const DAY_MS = 86_400_000;

/**
 * Tracks the requests of an account in the signals topic that are not acknowledged yet. Requests sent while the service was down are
 * handled when it runs again, and acknowledged ones are not repeated.
 *
 * A task that has just been opened, or whose last acknowledgement may not have been committed, gets requests only after the topic has been
 * read to its end: by then the outcome of earlier transactions is final.
 */
export function signalJobs(options: SignalJobsOptions): SignalJobs {
  const { topic, account, resources, scheduler, hooks, onPermitsRequest } = options;
  /** Whether the signals topic has been read to its end once, so that further messages are new. */
  let isFollowing = false;
  /** Pending requests by id, and the lists for which each is not acknowledged yet. */
  const pending = new Map<string, { request: JobRequest; left: Set<string> }>();
  const come$ = new Subject<AnyJob>();
  /** Offset up to which each partition of the signals topic has been read. */
  const readTo = new Map<number, bigint>();
  /** Lists with a request whose acknowledgement may or may not have been committed. */
  const inDoubt = new Set(resources);

  /** Applies a batch of messages of the signals topic, and returns the new requests in it. */
  const fold = ({ partition, messages, next }: SignalBatch): JobRequest[] => {
    const at = readTo.get(partition) ?? 0n;
    if (next <= at) return []; // both readers, `catchUp` and `live$`, may deliver a batch
    readTo.set(partition, next);
    const fresh: JobRequest[] = [];
    for (const message of messages) {
      if (BigInt(message.offset) < at) continue;
      try {
        fresh.push(...take(parseSignal(message)));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        hooks.onSignalIgnored?.({ partition, offset: message.offset, reason });
      }
    }
    return fresh;
  };
  const take = (signal: Signal): JobRequest[] => {
    if (signal.account !== account) return [];
    const { type } = signal;
    if (type === 'resync-ack' || type === 'certify-ack') removePending(signal.id, signal.resource);
    if (type === 'permits' && isFollowing) onPermitsRequest?.(signal);
    if (type !== 'resync' && type !== 'certify') return [];
    if (pending.has(signal.id) || isOld(signal)) return [];
    if (pending.size >= MAX_PENDING_REQUESTS) {
      throw new Error(`${MAX_PENDING_REQUESTS} requests are waiting already`);
    }
    pending.set(signal.id, { request: signal, left: new Set(signal.resources) });
    return [signal];
  };
  /**
   * Whether a request is older than the topic's retention time, so that it is ignored. Kafka deletes whole segments: such a request may
   * still be readable although its acknowledgement has been deleted, and must not be carried out again.
   */
  const isOld = ({ requested_at }: JobRequest) =>
    Date.parse(requested_at) < scheduler.now() - SIGNAL_DAYS * DAY_MS;
  /**
   * Emits new requests to the lists that they concern. To be called after the whole batch is applied, as their acknowledgements may be in
   * the same batch.
   */
  const announce = (fresh: readonly JobRequest[]): void => {
    for (const asked of fresh.flatMap(jobsOf)) come$.next(asked); // subscribers drop those acknowledged by now
  };
  const removePending = (id: string, resource: string): void => {
    const left = pending.get(id)?.left;
    left?.delete(resource);
    if (left?.size === 0) pending.delete(id);
  };
  const isWaiting = ({ id, resource }: CertifyJob) => pending.get(id)?.left.has(resource) ?? false;
  const waitingNow = () => [...pending.values()].flatMap(({ request }) => jobsOf(request));

  const catchUp = singleFlight(async (): Promise<void> => {
    const batches$ = topic.read({ from: new Map(readTo), follow: false });
    announce(await lastValueFrom(batches$.pipe(concatMap(fold), toArray())));
  });
  const requests = (isMine: (resource: string) => boolean) =>
    defer(() => merge(from(waitingNow()), come$)).pipe(
      filter((asked) => isMine(asked.resource) && isWaiting(asked)),
    );

  const ackOf = (
    resync: ResyncJob,
    { status, message }: ResyncOutcome,
    events: number,
  ): Message => {
    const { id, resource } = resync;
    const at = new Date(scheduler.now()).toISOString();
    return signalMessage(topic.name, {
      type: 'resync-ack',
      id,
      account,
      resource,
      status,
      events,
      message,
      at,
    });
  };
  const certifyAckOf = ({ id, resource }: CertifyJob, outcome: CertifyOutcome): Message => {
    const at = new Date(scheduler.now()).toISOString();
    return signalMessage(topic.name, {
      type: 'certify-ack',
      id,
      account,
      resource,
      ...outcome,
      at,
    });
  };
  const refuse = async (asked: AnyJob): Promise<void> => {
    if (!isWaiting(asked)) return;
    const { id, resource } = asked;
    const message = `this service does not read ${resource}: it reads ${resources.join(', ')}`;
    const refused = { status: 'refused', message } as const;
    if (asked.type === 'certify') {
      await topic.send(certifyAckOf(asked, { ...refused, number: null }));
      return;
    }
    await topic.send(ackOf(asked, refused, 0));
    hooks.onResync?.({ resource, id, ...refused, events: 0 });
  };

  /** Retries without limit: an error in reading signals must not stop the service. */
  const persistent = <T>() =>
    retry<T>({
      resetOnSuccess: true,
      delay: (error: unknown, count) => {
        const isPosition = error instanceof CellarstreamError && error.code === 'POSITION';
        if (isPosition) readTo.clear(); // the topic was deleted and recreated
        const canPass = isRetryable(error) || isPosition;
        const delayMs = pauseMs(canPass ? PAUSES.restart : PAUSES.permanentError, count);
        hooks.onSignalsFailed?.({ error, delayMs });
        return timer(delayMs, scheduler);
      },
    });
  const live$ = defer(catchUp).pipe(
    switchMap(() => {
      isFollowing = true;
      return topic.read({ from: new Map(readTo), follow: true });
    }),
    tap((batch) => announce(fold(batch))),
    persistent(),
    ignoreElements(),
  );
  const refusing$ = defer(catchUp).pipe(
    switchMap(() => requests((resource) => !resources.includes(resource))),
    concatMap((asked) => refuse(asked)),
    persistent(),
    ignoreElements(),
  );

  const requestsOf = (resource: string): Observable<AnyJob> =>
    defer(async () => {
      if (inDoubt.has(resource)) await catchUp();
      inDoubt.delete(resource);
    }).pipe(
      persistent(),
      switchMap(() => requests((each) => each === resource)),
    );

  return {
    task: (resource) => ({
      resyncs$: requestsOf(resource).pipe(filter((asked) => asked.type === 'resync')),
      certifications$: requestsOf(resource).pipe(filter((asked) => asked.type === 'certify')),
      resyncAck: (resync, outcome, events) => {
        inDoubt.add(resource);
        return ackOf(resync, outcome, events);
      },
      certifyAck: (asked, outcome) => {
        inDoubt.add(resource);
        return certifyAckOf(asked, outcome);
      },
      ackCommitted: ({ id }) => {
        inDoubt.delete(resource);
        removePending(id, resource);
      },
    }),
    following$: merge(live$, refusing$),
  };
}

type JobRequest = ResyncRequest | CertifyRequest;

/** A resync or certificate request, for one of the lists that it names. */
type AnyJob =
  ({ readonly type: 'resync' } & ResyncJob) | ({ readonly type: 'certify' } & CertifyJob);

function jobsOf(request: JobRequest): AnyJob[] {
  const { id, type } = request;
  const resources = [...new Set(request.resources)];
  if (type === 'certify') return resources.map((resource) => ({ type, id, resource }));
  const { order_number, since } = request;
  return resources.map((resource) => ({
    type,
    id,
    resource,
    orderNumber: order_number === null ? null : String(BigInt(order_number)),
    since: since === null ? null : Date.parse(since),
  }));
}
