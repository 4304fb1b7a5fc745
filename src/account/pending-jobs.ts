import type { Offsets } from '../kafka/log.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { SignalBatch } from '../sinks/signals/kafka-signals.ts';
import { parseSignal, SIGNAL_DAYS } from '../sinks/signals/signals.ts';
import type {
  CertifyRequest,
  PermitsRequest,
  ResyncRequest,
  Signal,
} from '../sinks/signals/signals.ts';

/** The part of a resync request (to publish records again) that concerns one list. */
export interface ResyncJob {
  readonly id: string;
  readonly resource: string;
  /** Key of the single record to publish again; null: the whole list. */
  readonly key: string | null;
  /** Time in epoch ms: only records modified then or later are published again; null: all records are. */
  readonly since: number | null;
}

/** The part of a request for new certificates (published count and digest of live keys) that concerns one list. */
export interface CertifyJob {
  readonly id: string;
  readonly resource: string;
}

/** The part of a resync or certificate request that concerns one list. */
export type SignalJob =
  ({ readonly type: 'resync' } & ResyncJob) | ({ readonly type: 'certify' } & CertifyJob);

type JobRequest = ResyncRequest | CertifyRequest;

/** Maximum number of pending requests from the signals topic. Further ones are ignored, so that memory stays bounded. */
const MAX_PENDING_REQUESTS = 1_000;
const DAY_MS = 86_400_000;

/**
 * Requests in the signals topic, for one account, that are not acknowledged yet: resyncs and certificates. A request is pending from its
 * message on until it is acknowledged for each list that it names. Messages of the topic that were not read yet are not considered.
 */
export class PendingJobs {
  readonly #account: string;
  readonly #now: () => number;
  readonly #onIgnored: NonNullable<Hooks['onSignalIgnored']>;
  /** Pending requests by id. `left` contains the lists for which the request is not acknowledged yet. */
  readonly #requests = new Map<string, { request: JobRequest; left: Set<string> }>();
  /** Next offset to read in each partition of the signals topic, by partition. */
  readonly #readTo = new Map<number, bigint>();

  /**
   * @param account Account whose signals are applied. Signals of other accounts are ignored.
   * @param onIgnored Called with each message that is not a valid signal, and with each request that exceeds {@link MAX_PENDING_REQUESTS}.
   */
  constructor(
    account: string,
    now: () => number,
    onIgnored: NonNullable<Hooks['onSignalIgnored']> = () => undefined,
  ) {
    this.#account = account;
    this.#now = now;
    this.#onIgnored = onIgnored;
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
   * Applies a batch of messages of the signals topic. Messages that were applied before are skipped.
   *
   * @returns the new requests in the batch, including those that later messages of the batch acknowledge.
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
        this.#onIgnored({ partition, offset: message.offset, reason });
      }
    }
    return requests;
  }

  #applySignal(signal: Signal): (JobRequest | PermitsRequest)[] {
    if (signal.account !== this.#account) return [];
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
   * Whether a request is ignored because it is older than the topic's retention time. Kafka deletes whole segments, so such a request may
   * still be readable although its acknowledgement has been deleted. It must not be carried out again.
   */
  #isOld({ requested_at }: JobRequest): boolean {
    return Date.parse(requested_at) < this.#now() - SIGNAL_DAYS * DAY_MS;
  }

  acknowledged({ id, resource }: { readonly id: string; readonly resource: string }): void {
    const left = this.#requests.get(id)?.left;
    left?.delete(resource);
    if (left?.size === 0) this.#requests.delete(id);
  }

  isPending({ id, resource }: SignalJob): boolean {
    return this.#requests.get(id)?.left.has(resource) ?? false;
  }

  /** Returns the jobs of all pending requests, oldest request first. Jobs for lists that are already acknowledged are included. */
  all(): SignalJob[] {
    return [...this.#requests.values()].flatMap(({ request }) => jobsOf(request));
  }
}

/** Splits a request into one job for each list that it names. */
export function jobsOf(request: JobRequest): SignalJob[] {
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
