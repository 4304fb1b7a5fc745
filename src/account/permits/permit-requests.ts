import { randomUUID } from 'node:crypto';
import { defer, firstValueFrom, ignoreElements, map, merge, takeUntil, timer } from 'rxjs';
import type { LeaseClocks } from '../ledger/ledger.ts';
import type { PermitBatch } from './guest-permits.ts';
import { acknowledgementsOf } from '../../sinks/signals/kafka-signals.ts';
import type { SignalTopic } from '../../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../../sinks/signals/signals.ts';
import type { PermitsRequest } from '../../sinks/signals/signals.ts';

export interface PermitRequestsOptions extends LeaseClocks {
  readonly topic: SignalTopic;
  readonly account: string;
  readonly instance: string;
}

/**
 * How long a guest waits for the service's response to a request for permits, in ms. A service responds within two seconds, and Kafka adds
 * its latency.
 */
const GRANT_RESPONSE_TIMEOUT_MS = 4_000;

/**
 * Returns a function that requests permits (each allows one request to the API) from the running service of the account. It resolves with
 * the granted permits, or with undefined if no service responds.
 *
 * The response says for how many milliseconds the permits are valid. This process counts that time from the moment of its request, the
 * service from the moment of its response, so the permits expire here first.
 */
export function permitRequests(options: PermitRequestsOptions) {
  const { topic, account, instance, scheduler, wallNow = () => Date.now() } = options;

  return async (wanted: Readonly<Record<string, number>>): Promise<PermitBatch | undefined> => {
    const from = await topic.ends();
    const batch$ = defer(() => {
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
