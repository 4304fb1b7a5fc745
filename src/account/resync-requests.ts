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
import type { Hooks } from '../observe/hooks.ts';
import { askedTogether } from '../core/asked-together.ts';
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

/** A request to publish again, as far as it concerns one resource. */
export interface Resync {
  readonly id: string;
  readonly resource: string;
  /** One order alone, as its key; null: the list. */
  readonly orderNumber: string | null;
  /** Of the list, only what was modified at this time or later, ms; null: all of it. */
  readonly since: number | null;
}

/** What became of it. */
export type Outcome = Pick<ResyncAck, 'status' | 'message'>;

/** A request for a certificate, as far as it concerns one resource. */
export interface CertifyAsked {
  readonly id: string;
  readonly resource: string;
}

/** What became of it. */
export type CertifyOutcome = Pick<CertifyAck, 'status' | 'number' | 'message'>;

/** The requests that concern one resource, as its task meets them. */
export interface TaskResyncs {
  /** Those that are not acknowledged, the oldest first, and those to come; never ends, nor errors. */
  readonly requests$: Observable<Resync>;
  /** The same of those for certificates. */
  readonly certify$: Observable<CertifyAsked>;
  /**
   * The message that acknowledges, to be committed with the last events. Until
   * {@link TaskResyncs.acknowledged} is called nobody knows whether it was.
   */
  readonly acknowledge: (resync: Resync, outcome: Outcome, events: number) => Message;
  /** The same of one for a certificate, to be committed with that. */
  readonly acknowledgeCertify: (asked: CertifyAsked, outcome: CertifyOutcome) => Message;
  /** It was committed. */
  readonly acknowledged: (request: { readonly id: string }) => void;
}

/** The requests that a process finds in the topic of signals. */
export interface ResyncRequests {
  readonly task: (resource: string) => TaskResyncs;
  /**
   * Follows the topic while it is subscribed to, and refuses what no task of this process reads.
   * Emits nothing, and goes on after every error.
   */
  readonly following$: Observable<never>;
}

export interface ResyncRequestsOptions {
  readonly topic: SignalTopic;
  /** Whose requests; others' are passed over. */
  readonly account: string;
  /** What this process reads. */
  readonly resources: readonly string[];
  readonly scheduler: SchedulerLike;
  readonly hooks: Pick<Hooks, 'onResync' | 'onSignalIgnored' | 'onSignalsFailed'>;
  /** Told of requests for permits of the account as they come; not of those of before. */
  readonly onPermits?: (request: PermitsRequest) => void;
}

/** Requests that may wait at once: more are passed over, so that memory stays bounded. */
const MAX_WAITING = 1_000;
const DAY_MS = 86_400_000;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;
/** After what no later try is known to heal. */
const LONG_PAUSE_MS = 60_000;

/**
 * Keeps the requests of an account that no acknowledgement follows in the topic of signals: what was
 * asked while the service was down is done when it is back, and what is done is not done again.
 *
 * A task whose log has just been opened, or whose last acknowledgement may or may not have been
 * committed, is given nothing before everything up to the end of the topic is known: what is
 * committed then is final.
 */
export function resyncRequests(options: ResyncRequestsOptions): ResyncRequests {
  const { topic, account, resources, scheduler, hooks, onPermits } = options;
  /** Whether what comes now was not there before. */
  let isFollowing = false;
  /** By id: the request, and the resources that it is not acknowledged for. */
  const waiting = new Map<string, { request: Request; left: Set<string> }>();
  const come$ = new Subject<Asked>();
  /** By partition, the offset from which on nothing is known. */
  const known = new Map<number, bigint>();
  /** Resources of which an acknowledgement may be committed that is not known. */
  const inDoubt = new Set(resources);

  /** Gives the requests that were not known. */
  const fold = ({ partition, messages, next }: SignalBatch): Request[] => {
    const at = known.get(partition) ?? 0n;
    if (next <= at) return []; // two readers may bring the same
    known.set(partition, next);
    const fresh: Request[] = [];
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
  const take = (signal: Signal): Request[] => {
    if (signal.account !== account) return [];
    const { type } = signal;
    if (type === 'resync-ack' || type === 'certify-ack') settle(signal.id, signal.resource);
    if (type === 'permits' && isFollowing) onPermits?.(signal);
    if (type !== 'resync' && type !== 'certify') return [];
    if (waiting.has(signal.id) || isOld(signal)) return [];
    if (waiting.size >= MAX_WAITING) {
      throw new Error(`${MAX_WAITING} requests are waiting already`);
    }
    waiting.set(signal.id, { request: signal, left: new Set(signal.resources) });
    return [signal];
  };
  /** Retention takes whole segments: a request may outlive its days, and its acknowledgements not. */
  const isOld = ({ requested_at }: Request) =>
    Date.parse(requested_at) < scheduler.now() - SIGNAL_DAYS * DAY_MS;
  /** To be called when all that came with them is folded: an acknowledgement may be behind. */
  const announce = (fresh: readonly Request[]): void => {
    for (const asked of fresh.flatMap(partsOf)) come$.next(asked); // those that wait are let through
  };
  const settle = (id: string, resource: string): void => {
    const left = waiting.get(id)?.left;
    left?.delete(resource);
    if (left?.size === 0) waiting.delete(id);
  };
  const isWaiting = ({ id, resource }: CertifyAsked) =>
    waiting.get(id)?.left.has(resource) ?? false;
  const waitingNow = () => [...waiting.values()].flatMap(({ request }) => partsOf(request));

  const catchUp = askedTogether(async (): Promise<void> => {
    const batches$ = topic.read({ from: new Map(known), follow: false });
    announce(await lastValueFrom(batches$.pipe(concatMap(fold), toArray())));
  });
  const requests = (isMine: (resource: string) => boolean) =>
    defer(() => merge(from(waitingNow()), come$)).pipe(
      filter((asked) => isMine(asked.resource) && isWaiting(asked)),
    );

  const ackOf = (resync: Resync, { status, message }: Outcome, events: number): Message => {
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
  const certifyAckOf = ({ id, resource }: CertifyAsked, outcome: CertifyOutcome): Message => {
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
  const refuse = async (asked: Asked): Promise<void> => {
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

  /** Tries again for ever: signals are never worth stopping the service for. */
  const persistent = <T>() =>
    retry<T>({
      resetOnSuccess: true,
      delay: (error: unknown, count) => {
        const isPosition = error instanceof CellarstreamError && error.code === 'POSITION';
        if (isPosition) known.clear(); // the topic was made anew
        const pause = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(count - 1, 10));
        const delayMs = isRetryable(error) || isPosition ? pause : LONG_PAUSE_MS;
        hooks.onSignalsFailed?.({ error, delayMs });
        return timer(delayMs, scheduler);
      },
    });
  const live$ = defer(catchUp).pipe(
    switchMap(() => {
      isFollowing = true;
      return topic.read({ from: new Map(known), follow: true });
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

  const requestsOf = (resource: string): Observable<Asked> =>
    defer(async () => {
      if (inDoubt.has(resource)) await catchUp();
      inDoubt.delete(resource);
    }).pipe(
      persistent(),
      switchMap(() => requests((each) => each === resource)),
    );

  return {
    task: (resource) => ({
      requests$: requestsOf(resource).pipe(filter((asked) => asked.type === 'resync')),
      certify$: requestsOf(resource).pipe(filter((asked) => asked.type === 'certify')),
      acknowledge: (resync, outcome, events) => {
        inDoubt.add(resource);
        return ackOf(resync, outcome, events);
      },
      acknowledgeCertify: (asked, outcome) => {
        inDoubt.add(resource);
        return certifyAckOf(asked, outcome);
      },
      acknowledged: ({ id }) => {
        inDoubt.delete(resource);
        settle(id, resource);
      },
    }),
    following$: merge(live$, refusing$),
  };
}

type Request = ResyncRequest | CertifyRequest;

/** A request, for one of its resources. */
type Asked = ({ readonly type: 'resync' } & Resync) | ({ readonly type: 'certify' } & CertifyAsked);

function partsOf(request: Request): Asked[] {
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
