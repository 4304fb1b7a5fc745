import { randomUUID } from 'node:crypto';
import { defer, firstValueFrom, ignoreElements, map, merge, takeUntil, timer } from 'rxjs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { GuestDeclarations } from './guest-declarations.ts';
import type { PermitBatch, QuotaDemands } from './guest-permits.ts';
import { LEASE_MS } from '../ledger/ledger.ts';
import type { LeaseClocks } from '../ledger/ledger.ts';
import { acknowledgementsOf } from '../../sinks/signals/kafka-signals.ts';
import type { SignalTopic } from '../../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../../sinks/signals/signals.ts';
import type { PermitsRequest } from '../../sinks/signals/signals.ts';

interface PermitRequestsOptions extends LeaseClocks {
  readonly topic: SignalTopic;
  readonly account: string;
  readonly instance: string;
}

export interface PermitSourceOptions extends LeaseClocks {
  /**
   * Requests permits from the service that runs the account. `wanted`: number of permits by the quota's name. Resolves with undefined if no
   * service responds.
   */
  readonly requestPermits: ReturnType<typeof permitRequests>;
  readonly declarations: GuestDeclarations;
  readonly account: string;
  /** How long to retry to acquire permits while other processes use up the quota, in ms. After that, acquiring fails with `NO_PERMITS`. */
  readonly patienceMs: number;
  /**
   * How long to try to reach Kafka for the first time, in ms. If that fails, requests are sent undeclared. Once Kafka has been reached,
   * every request is declared before it is sent.
   */
  readonly kafkaPatienceMs: number;
  /** Returns random numbers in [0, 1) for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
  /**
   * Called once, with the error, if requests are sent undeclared because Kafka is unreachable or refuses access. Other processes do not
   * count such requests.
   */
  readonly onUndeclared: (error: unknown) => void;
}

/**
 * How long, in ms, a guest repeats its attempts to acquire permits if the service does not respond, or if Kafka was reached before and
 * fails now. Longer than a lease, so that the lease of a crashed service expires within this time.
 */
const RUNNER_SILENCE_MS = 20_000;
/** Mean pause between two attempts to acquire permits, in ms. Each pause varies randomly by 50 %. */
const RETRY_PAUSE_MS = 1_000;

/**
 * How long a guest waits for the service's response to a request for permits, in ms. A service responds within two seconds, and Kafka adds
 * its latency.
 */
const GRANT_RESPONSE_TIMEOUT_MS = 4_000;

/**
 * Acquires permits for the API requests of a guest (a command that runs beside the service). The permits come from the running service or,
 * if none runs, from a declaration in the ledger.
 *
 * Permits are undeclared, so that no other process counts them, in two cases:
 *
 * - The ledger topic does not exist because no service has ever run.
 * - Kafka has been unreachable or has refused access in every attempt so far.
 *
 * A guest with undeclared permits and a running service together may exceed the quota.
 */
export class PermitSource {
  readonly #options: PermitSourceOptions;
  /** Whether an attempt to acquire permits has ever ended without an error of Kafka. After that, requests are never sent undeclared. */
  #hasReachedKafka = false;
  /** Whether `onUndeclared` was called. From then on, until Kafka is reached, a failed attempt is not retried. */
  #isUndeclared = false;
  /** Whether no service was running at the last attempt to acquire permits. The next attempt then skips the request to a service. */
  #isAlone = false;

  constructor(options: PermitSourceOptions) {
    this.#options = options;
  }

  /**
   * Acquires at least one permit (right to send one API request), with retries. The permits may be undeclared (see {@link PermitSource}).
   *
   * @param demands Returns the current demands. Called for each attempt.
   * @throws CellarstreamError `NO_PERMITS` if none could be acquired in time; errors of Kafka that persist after Kafka was reached once.
   */
  async acquire(demands: () => QuotaDemands): Promise<PermitBatch> {
    const { account, patienceMs, scheduler, random = Math.random } = this.#options;
    const startedAt = scheduler.now();
    for (;;) {
      let attempt = SILENT;
      try {
        attempt = await this.#attempt(demands);
        this.#hasReachedKafka = true;
      } catch (error) {
        if (!this.#isRetried(error, scheduler.now() - startedAt))
          return this.#undeclared(demands());
      }
      const { batch, runner } = attempt;
      if (batch && Object.values(batch.counts).some((count) => count > 0)) return batch;
      const waitedMs = scheduler.now() - startedAt;
      if (waitedMs > (runner === 'silent' ? RUNNER_SILENCE_MS : patienceMs)) {
        const message = `no permits for requests of ${account}: ${NO_PERMITS_REASONS[runner]}`;
        throw new CellarstreamError('NO_PERMITS', message, { context: { account } });
      }
      // Random, so that two processes that tried at the same time do not do so again.
      await firstValueFrom(timer(RETRY_PAUSE_MS * (0.5 + random()), scheduler));
    }
  }

  async #attempt(demands: () => QuotaDemands): Promise<PermitAttempt> {
    const granted = this.#isAlone ? undefined : await this.#request(demands());
    if (granted) return { batch: granted, runner: 'service' };
    const declared = await this.#options.declarations.declare(demands());
    this.#isAlone = declared !== undefined;
    return declared ? { batch: declared, runner: 'none' } : SILENT;
  }

  /** Requests permits from the service. Resolves with undefined if no service responds or the signals topic does not exist. */
  async #request(demands: QuotaDemands): Promise<PermitBatch | undefined> {
    try {
      return await this.#options.requestPermits(requestedPermits(demands));
    } catch (error) {
      if (isTopicMissing(error)) return undefined;
      throw error;
    }
  }

  /**
   * Whether to repeat a failed attempt to acquire permits. False: the guest sends its requests undeclared.
   *
   * @throws `error`, if the guest has reached Kafka before, and the error is permanent or has lasted too long.
   */
  #isRetried(error: unknown, waitedMs: number): boolean {
    const { kafkaPatienceMs, onUndeclared } = this.#options;
    const patienceMs = this.#hasReachedKafka ? RUNNER_SILENCE_MS : kafkaPatienceMs;
    // A refusal by Kafka is not retried.
    const mayPass = isRetryable(error) && waitedMs <= patienceMs;
    if (this.#hasReachedKafka && !mayPass) throw error;
    if (this.#hasReachedKafka || (mayPass && !this.#isUndeclared)) return true;
    if (!this.#isUndeclared && !isTopicMissing(error)) {
      this.#isUndeclared = true;
      onUndeclared(error);
    }
    return false;
  }

  #undeclared(demands: QuotaDemands): PermitBatch {
    // If Kafka is down, a running service sends requests for 11 s at most, until its lease expires.
    const { scheduler, wallNow = Date.now } = this.#options;
    return {
      counts: requestedPermits(demands),
      expiresAt: scheduler.now() + LEASE_MS,
      wallExpiresAt: wallNow() + LEASE_MS,
    };
  }
}

/** Result of one attempt to acquire permits. */
interface PermitAttempt {
  readonly batch: PermitBatch | undefined;
  /**
   * Which process runs the account: a service that responded (`service`), no process (`none`), or a service that does not respond
   * (`silent`).
   */
  readonly runner: 'service' | 'none' | 'silent';
}

const SILENT: PermitAttempt = { batch: undefined, runner: 'silent' };

const NO_PERMITS_REASONS: Readonly<Record<PermitAttempt['runner'], string>> = {
  service: 'the running service has no permits left for other processes: try again in a minute',
  none: 'the requests of the last minute have used up the quota: try again in a minute',
  silent:
    'an instance of the service runs the account, but does not respond: try again once it responds, or stop it. Also check that the clocks of both machines agree',
};

function requestedPermits(demands: QuotaDemands): Record<string, number> {
  const wanted = Object.entries(demands).filter(([, { requested }]) => requested > 0);
  return Object.fromEntries(wanted.map(([name, { requested }]) => [name, requested]));
}

function isTopicMissing(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'POSITION';
}

/**
 * Returns a function that requests permits (each allows one request to the API) from the running service of the account. It resolves with
 * the granted permits, or with undefined if no service responds.
 */
export function permitRequests(options: PermitRequestsOptions) {
  const { topic, account, instance, scheduler, wallNow = () => Date.now() } = options;

  return async (wanted: Readonly<Record<string, number>>): Promise<PermitBatch | undefined> => {
    const from = await topic.ends();
    const batch$ = defer(() => {
      // The service counts `for_ms` from its response, this process from its request: the permits expire here first.
      const [at, wallAt] = [scheduler.now(), wallNow()];
      const request: PermitsRequest = {
        type: 'permits',
        id: randomUUID(),
        account,
        asker: instance,
        quotas: wanted,
        requested_at: new Date(wallAt).toISOString(),
      };
      return merge(
        acknowledgementsOf(topic, request, from).pipe(
          map(({ granted, for_ms }) => ({
            counts: granted,
            expiresAt: at + for_ms,
            wallExpiresAt: wallAt + for_ms,
          })),
        ),
        defer(() => topic.send(signalMessage(topic.name, request))).pipe(ignoreElements()),
      );
    }).pipe(takeUntil(timer(GRANT_RESPONSE_TIMEOUT_MS, scheduler)));
    return firstValueFrom(batch$, { defaultValue: undefined });
  };
}
