import { randomUUID } from 'node:crypto';
import {
  defer,
  firstValueFrom,
  ignoreElements,
  map,
  merge,
  mergeMap,
  takeUntil,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { PermitBatch } from './guest-permits.ts';
import type { SignalTopic } from '../../sinks/signals/kafka-signals.ts';
import { parseSignal, signalMessage } from '../../sinks/signals/signals.ts';
import type { PermitsAck, Signal } from '../../sinks/signals/signals.ts';

export interface PermitRequestsOptions {
  readonly topic: SignalTopic;
  readonly account: string;
  /** Id of this process. */
  readonly instance: string;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, in ms. Default `Date.now`. */
  readonly wallNow?: () => number;
}

/**
 * How long to wait for the service's response to a request for permits, in ms: a service responds within two seconds, and Kafka adds its
 * latency.
 */
const GRANT_RESPONSE_TIMEOUT_MS = 4_000;

/**
 * Returns a function that requests permits from the service that runs the account. Resolves with the permits granted, or with undefined if
 * no service responds.
 *
 * The lifetime of permits begins when the request is sent, so they expire earlier than the service assumes.
 */
export function permitRequests(options: PermitRequestsOptions) {
  const { topic, account, instance, scheduler, wallNow = () => Date.now() } = options;

  return async (wanted: Readonly<Record<string, number>>): Promise<PermitBatch | undefined> => {
    const id = randomUUID();
    const from = await topic.ends();
    const sending$ = defer(() => {
      const [at, wallAt] = [scheduler.now(), wallNow()];
      const request = {
        type: 'permits',
        id,
        account,
        asker: instance,
        quotas: wanted,
        requested_at: new Date(wallAt).toISOString(),
      } as const;
      const acks$ = topic.read({ from, follow: true }).pipe(
        mergeMap(({ messages }) => messages.filter(({ key }) => key?.toString() === id)),
        mergeMap((message) => ackIn(message)),
        map(({ granted, for_ms }): PermitBatch => ({
          counts: granted,
          expiresAt: at + for_ms,
          wallExpiresAt: wallAt + for_ms,
        })),
      );
      const sent$: Observable<never> = defer(() =>
        topic.send(signalMessage(topic.name, request)),
      ).pipe(ignoreElements());
      return merge(acks$, sent$);
    });
    const answer$ = sending$.pipe(takeUntil(timer(GRANT_RESPONSE_TIMEOUT_MS, scheduler)));
    return firstValueFrom(answer$, { defaultValue: undefined });
  };

  function ackIn(message: Parameters<typeof parseSignal>[0]): PermitsAck[] {
    const signal: Signal = parseSignal(message);
    return signal.type === 'permits-ack' && signal.account === account ? [signal] : [];
  }
}
