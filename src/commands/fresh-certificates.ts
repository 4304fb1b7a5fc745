import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import {
  defer,
  filter,
  lastValueFrom,
  mergeMap,
  repeat,
  takeUntil,
  takeWhile,
  tap,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { newestCertificates } from '../consumers/certificates.ts';
import type { PublishedCertificate } from '../consumers/certificates.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import { parseSignal, signalMessage } from '../sinks/signals/signals.ts';
import type { CertifyAck, CertifyRequest } from '../sinks/signals/signals.ts';
import { backoff } from '../streams/flow/backoff.ts';
import type { Retry } from '../streams/flow/backoff.ts';

export interface FreshOptions {
  readonly kafka: Kafka;
  /** The topic of signals. */
  readonly topic: string;
  readonly account: string;
  readonly resources: readonly string[];
  /** Its first value ends the waiting; one that was before the subscription counts. */
  readonly over$: Observable<unknown>;
  /** Told of each as it comes. */
  readonly onAck: (ack: CertifyAck) => void;
  readonly onRetry: (retry: Retry) => void;
}

/** Between two looks at certificates that were acknowledged. */
const LOOK_EVERY_MS = 200;

/**
 * Asks the running service for complete readings that begin now, and waits until it has published their certificates. Gives
 * what it said of each list; a list is not there where it said nothing.
 *
 * @throws CellarstreamError `POSITION` when there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function freshCertificates(
  options: FreshOptions,
): Promise<ReadonlyMap<string, CertifyAck>> {
  const { kafka, account, resources, over$, onAck, onRetry } = options;
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
  const acks$ = topic.read({ from, follow: true }).pipe(
    mergeMap(({ messages }) => messages.filter(({ key }) => key?.toString() === request.id)),
    mergeMap((message) => {
      const signal = parseSignal(message);
      return signal.type === 'certify-ack' && signal.account === account ? [signal] : [];
    }),
    backoff({ onRetry }),
    filter(({ resource }) => !acks.has(resource)), // after a fault they come again
    tap((ack) => {
      acks.set(ack.resource, ack);
      onAck(ack);
    }),
    takeWhile(() => resources.some((resource) => !acks.has(resource))),
    takeUntil(over$),
  );
  await lastValueFrom(acks$, { defaultValue: undefined });
  await topic.close();
  return acks;
}

/**
 * The newest certificates of an account's lists, once those that were acknowledged can be read: another list's open
 * transaction may hold that up.
 */
export function newestOnceReadable(
  options: Pick<FreshOptions, 'kafka' | 'account' | 'resources' | 'over$'>,
  topic: string,
  acks: ReadonlyMap<string, CertifyAck>,
): Promise<readonly (PublishedCertificate | undefined)[]> {
  const { kafka, account, resources, over$ } = options;
  const lists = resources.map((resource) => ({ account, resource }));
  const isReadable = (newest: readonly (PublishedCertificate | undefined)[]) =>
    resources.every(
      (resource, nth) =>
        (newest[nth]?.certificate.number ?? -1) >= (acks.get(resource)?.number ?? -1),
    );
  return lastValueFrom(
    defer(() => newestCertificates(kafka, topic, lists)).pipe(
      repeat({ delay: () => timer(LOOK_EVERY_MS).pipe(takeUntil(over$)) }),
      takeWhile((newest) => !isReadable(newest), true),
    ),
  );
}
