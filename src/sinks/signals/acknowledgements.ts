import { mergeMap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Offsets } from '../../kafka/log.ts';
import type { SignalTopic } from './kafka-signals.ts';
import { parseSignal } from './signals.ts';
import type {
  CertifyAck,
  CertifyRequest,
  PermitsAck,
  PermitsRequest,
  ResyncAck,
  ResyncRequest,
  Signal,
} from './signals.ts';

type SignalRequest = ResyncRequest | CertifyRequest | PermitsRequest;
/**
 * Type of the acknowledgement for a type of request. A resync or certify request is acknowledged once for each of its lists, a permits
 * request once for all its quotas.
 */
export type AckOf<R extends SignalRequest> = Acks[R['type']];
interface Acks {
  readonly resync: ResyncAck;
  readonly certify: CertifyAck;
  readonly permits: PermitsAck;
}

/**
 * Reads the signals topic from the offsets `from` on, and emits the acknowledgements of one request. Does not complete, even after the last
 * acknowledgement. Errors with a CellarstreamError.
 */
export function acknowledgementsOf<R extends SignalRequest>(
  topic: SignalTopic,
  { type, id, account }: R,
  from: Offsets,
): Observable<AckOf<R>> {
  const isAck = (signal: Signal): signal is AckOf<R> =>
    signal.type === `${type}-ack` && signal.account === account;
  return topic.read({ from, follow: true }).pipe(
    mergeMap(({ messages }) => messages.filter(({ key }) => key?.toString() === id)),
    mergeMap((message) => [parseSignal(message)].filter(isAck)),
  );
}
