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
import type { Batch } from './guest-permits.ts';
import type { SignalTopic } from '../../sinks/signals/kafka-signals.ts';
import { parseSignal, signalMessage } from '../../sinks/signals/signals.ts';
import type { PermitsAck, Signal } from '../../sinks/signals/signals.ts';

export interface PermitRequestsOptions {
  readonly topic: SignalTopic;
  readonly account: string;
  /** Names this process. */
  readonly instance: string;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, ms. Default `Date.now`. */
  readonly wallNow?: () => number;
}

/** A service that runs answers within two seconds, and what Kafka takes. */
const ANSWER_WITHIN_MS = 4_000;

/**
 * Asks whoever runs the account for permits. Resolves with those that were given, with undefined where nobody has answered.
 *
 * They last from when the request was sent, and so end before the time for which the service counts them.
 */
export function permitRequests(options: PermitRequestsOptions) {
  const { topic, account, instance, scheduler, wallNow = () => Date.now() } = options;

  return async (wanted: Readonly<Record<string, number>>): Promise<Batch | undefined> => {
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
        map(({ granted, for_ms }): Batch => ({
          counts: granted,
          end: at + for_ms,
          wallEnd: wallAt + for_ms,
        })),
      );
      const sent$: Observable<never> = defer(() =>
        topic.send(signalMessage(topic.name, request)),
      ).pipe(ignoreElements());
      return merge(acks$, sent$);
    });
    const answer$ = sending$.pipe(takeUntil(timer(ANSWER_WITHIN_MS, scheduler)));
    return firstValueFrom(answer$, { defaultValue: undefined });
  };

  function ackIn(message: Parameters<typeof parseSignal>[0]): PermitsAck[] {
    const signal: Signal = parseSignal(message);
    return signal.type === 'permits-ack' && signal.account === account ? [signal] : [];
  }
}
