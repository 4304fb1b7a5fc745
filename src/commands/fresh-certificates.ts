import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import { defer, lastValueFrom, repeat, takeUntil, takeWhile, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { newestCertificates } from '../consumers/certificates.ts';
import type { PublishedCertificate } from '../consumers/certificates.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import type { CertifyAck } from '../sinks/signals/signals.ts';
import type { Retry } from '../streams/flow/backoff.ts';
import { sendRequest } from './signal-acks.ts';

export interface FreshOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly account: string;
  readonly resources: readonly string[];
  /**
   * Ends the wait for certificates with its first value. A value emitted before the subscription counts only if the observable replays it.
   */
  readonly deadline$: Observable<unknown>;
  readonly onAck: (ack: CertifyAck) => void;
  readonly onRetry: (retry: Retry) => void;
}

/** Pause between two attempts to read the acknowledged certificates, in ms. */
const CHECK_EVERY_MS = 200;

/**
 * Requests new full scans from the running service and waits until their certificates are published. Resolves to the acknowledgement of
 * each list; lists without an acknowledgement are left out.
 *
 * @throws CellarstreamError `POSITION` if there is no signals topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function freshCertificates({
  kafka,
  topic: name,
  account,
  resources,
  deadline$,
  onAck,
  onRetry,
}: FreshOptions): Promise<ReadonlyMap<string, CertifyAck>> {
  const topic = kafkaSignals({ kafka }, name);
  const acknowledgements = await sendRequest(topic, {
    type: 'certify',
    id: randomUUID(),
    account,
    resources: [...resources],
    requested_at: new Date().toISOString(),
  });
  const acks = await acknowledgements({ over$: deadline$, onAck, onRetry });
  await topic.close();
  return acks;
}

/**
 * Requests the newest certificate (count and digest of a list's live keys) of each list of an account until they include the acknowledged
 * ones, or until `deadline$` emits. Resolves to the certificates last received. An acknowledged certificate may not be readable at once:
 * committed messages become readable only after earlier open transactions on the same partition have ended.
 */
export function newestOnceReadable(
  options: Pick<FreshOptions, 'kafka' | 'account' | 'resources' | 'deadline$'>,
  topic: string,
  acks: ReadonlyMap<string, CertifyAck>,
): Promise<readonly (PublishedCertificate | undefined)[]> {
  const { kafka, account, resources, deadline$ } = options;
  const lists = resources.map((resource) => ({ account, resource }));
  const isReadable = (newest: readonly (PublishedCertificate | undefined)[]) =>
    resources.every(
      (resource, nth) =>
        (newest[nth]?.certificate.number ?? -1) >= (acks.get(resource)?.number ?? -1),
    );
  return lastValueFrom(
    defer(() => newestCertificates(kafka, topic, lists)).pipe(
      repeat({ delay: () => timer(CHECK_EVERY_MS).pipe(takeUntil(deadline$)) }),
      takeWhile((newest) => !isReadable(newest), true),
    ),
  );
}
