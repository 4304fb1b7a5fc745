import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import { defer, filter, lastValueFrom, repeat, takeUntil, takeWhile, tap, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { newestCertificates } from '../consumers/certificates.ts';
import type { PublishedCertificate } from '../consumers/certificates.ts';
import { acknowledgementsOf } from '../sinks/signals/acknowledgements.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import { signalMessage } from '../sinks/signals/signals.ts';
import type { CertifyAck, CertifyRequest } from '../sinks/signals/signals.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';

export interface FreshOptions {
  readonly kafka: Kafka;
  /** Name of the signals topic. */
  readonly topic: string;
  readonly account: string;
  readonly resources: readonly string[];
  /** The first value ends the waiting for certificates; a value emitted before the subscription counts if it is replayed. */
  readonly deadline$: Observable<unknown>;
  /** Called with each list's acknowledgement of the request for a certificate. */
  readonly onAck: (ack: CertifyAck) => void;
  readonly onRetry: (retry: Retry) => void;
}

/** Pause between two attempts to read the acknowledged certificates, in ms. */
const CHECK_EVERY_MS = 200;

/**
 * Requests new full scans from the running service and waits until their certificates are published. Resolves to the acknowledgement of
 * each list; lists without one are left out.
 *
 * @throws CellarstreamError `POSITION` if there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function freshCertificates(
  options: FreshOptions,
): Promise<ReadonlyMap<string, CertifyAck>> {
  const { kafka, account, resources, deadline$, onAck, onRetry } = options;
  const topic = kafkaSignals({ kafka }, options.topic);
  const request: CertifyRequest = {
    type: 'certify',
    id: randomUUID(),
    account,
    resources: [...resources],
    requested_at: new Date().toISOString(),
  };
  const acks = new Map<string, CertifyAck>();
  const from = await topic.ends();
  await topic.send(signalMessage(topic.name, request));
  const acks$ = acknowledgementsOf(topic, request, from).pipe(
    backoff({ onRetry }),
    filter(({ resource }) => !acks.has(resource)), // acknowledgements are repeated after an error
    tap((ack) => {
      acks.set(ack.resource, ack);
      onAck(ack);
    }),
    takeWhile(() => resources.some((resource) => !acks.has(resource))),
    takeUntil(deadline$),
  );
  await lastValueFrom(acks$, { defaultValue: undefined });
  await topic.close();
  return acks;
}

/**
 * Returns the newest certificates of an account's lists, as soon as the acknowledged ones are readable: an open transaction of another list
 * may delay that.
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
