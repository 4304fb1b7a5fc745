import { filter, lastValueFrom, mergeMap, takeUntil, takeWhile, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { parseSignal, signalMessage } from '../sinks/signals/signals.ts';
import type {
  CertifyAck,
  CertifyRequest,
  ResyncAck,
  ResyncRequest,
  Signal,
} from '../sinks/signals/signals.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';

/** Acknowledgement of a list, by the type of the request. */
interface Acks {
  readonly resync: ResyncAck;
  readonly certify: CertifyAck;
}
type AckOf<R extends CertifyRequest | ResyncRequest> = Acks[R['type']];

interface AcksOptions<A> {
  /** The first value ends the waiting; a value emitted before the subscription counts if it is replayed. */
  readonly over$: Observable<unknown>;
  readonly onAck: (ack: A) => void;
  readonly onRetry: (retry: Retry) => void;
}

/**
 * Sends a request to the running service, and returns a function that waits for the acknowledgement of each of its lists and resolves to
 * those that came, by list.
 */
export async function sendRequest<R extends CertifyRequest | ResyncRequest>(
  topic: SignalTopic,
  request: R,
): Promise<(options: AcksOptions<AckOf<R>>) => Promise<ReadonlyMap<string, AckOf<R>>>> {
  const { id, account, resources } = request;
  const from = await topic.ends();
  await topic.send(signalMessage(topic.name, request));
  return async ({ over$, onAck, onRetry }) => {
    const acks = new Map<string, AckOf<R>>();
    const isAck = (signal: Signal): signal is AckOf<R> =>
      signal.type === `${request.type}-ack` && signal.account === account;
    const acks$ = topic.read({ from, follow: true }).pipe(
      mergeMap(({ messages }) => messages.filter(({ key }) => key?.toString() === id)),
      mergeMap((message) => [parseSignal(message)].filter(isAck)),
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
