import { filter, lastValueFrom, takeUntil, takeWhile, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import { acknowledgementsOf } from '../sinks/signals/kafka-signals.ts';
import type { AckOf, SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../sinks/signals/signals.ts';
import type { CertifyRequest, ResyncRequest } from '../sinks/signals/signals.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';

export interface AcksOptions<A> {
  /** Ends the wait for the service's acknowledgements when it emits. If it may emit before the wait begins, it has to replay the value. */
  readonly over$: Observable<unknown>;
  readonly onAck: (ack: A) => void;
  readonly onRetry: (retry: Retry) => void;
}

/**
 * Sends a request to the running service. Resolves to a function that collects the acknowledgements of the request, by list, until all have
 * arrived or `over$` has emitted.
 */
export async function sendRequest<R extends CertifyRequest | ResyncRequest>(
  topic: SignalTopic,
  request: R,
): Promise<(options: AcksOptions<AckOf<R>>) => Promise<ReadonlyMap<string, AckOf<R>>>> {
  const { resources } = request;
  const from = await topic.ends();
  await topic.send(signalMessage(topic.name, request));
  return async ({ over$, onAck, onRetry }) => {
    const acks = new Map<string, AckOf<R>>();
    const acks$ = acknowledgementsOf(topic, request, from).pipe(
      backoff({ onRetry }),
      // Acknowledgements are repeated after an error.
      filter(({ resource }) => resources.includes(resource) && !acks.has(resource)),
      tap((ack) => {
        acks.set(ack.resource, ack);
        onAck(ack);
      }),
      takeWhile(() => acks.size < resources.length),
      takeUntil(over$),
    );
    await lastValueFrom(acks$, { defaultValue: undefined });
    return acks;
  };
}
