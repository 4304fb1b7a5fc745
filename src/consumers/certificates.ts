// Reads a list's certificates, and reports when a consumer has passed a certificate's positions.

import type { Kafka } from 'kafkajs';
import { concat, defer, lastValueFrom, of, switchMap, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import { parseCertificate } from '../schemas/events/certificate.ts';
import type { Certificate } from '../schemas/events/certificate.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { topicBounds } from '../kafka/client/topic-facts.ts';
import type { PartitionBatch } from '../kafka/fetch/kafka-reader.ts';
import { readBatches } from '../kafka/fetch/read-batches.ts';
import type { Offsets } from '../kafka/log.ts';

/** A certificate of a full scan of a list, and when it was published. */
export interface PublishedCertificate {
  readonly certificate: Certificate;
  /** Kafka timestamp of the certificate's message, ms since 1970. */
  readonly publishedAt: number;
}

/** A certificates topic, and the list and account whose certificates are read from it. */
interface CertificatesSource {
  /** Name of the certificates topic: `<TOPIC_PREFIX>.certificates`; in a fleet, with the fleet's prefix. */
  readonly topic: string;
  readonly resource: string;
  /** Account whose certificates are read; undefined: those of any account. */
  readonly account?: string | undefined;
}

/** Where the certificates of a list are published. A consumer of the list can compare its copy of the list with them. */
export interface CertificatesOptions {
  /**
   * Topic with the certificates of the list. Default `<prefix>.certificates`, with the prefix of the list's topic. In a fleet, set it to
   * `<fleet's prefix>.certificates`.
   */
  readonly topic?: string;
  /** Account that the list belongs to. Required in a fleet; by default, certificates of any account match. */
  readonly account?: string;
}

/**
 * Returns the source of a list's certificates.
 *
 * @param topic The list's topic: `<prefix>.<resource>`.
 */
export function certificatesSource(
  topic: string,
  { topic: certificates, account }: CertificatesOptions = {},
): CertificatesSource {
  const dot = topic.lastIndexOf('.');
  return {
    topic: certificates ?? topicNames(topic.slice(0, Math.max(dot, 0))).certificates,
    resource: topic.slice(dot + 1),
    account,
  };
}

const MISSING_TOPIC_ADVICE =
  '`cellarstream run` creates it, if its version publishes certificates. Check the prefix: accounts of a fleet share a topic with the prefix of the fleet';
/** Number of messages in the first search for certificates. Each further search covers `WINDOW_GROWTH` times as many as the previous. */
const FIRST_WINDOW = 1_000;
const WINDOW_GROWTH = 8;

export interface OpenedCertificates {
  /** The list's newest certificate; undefined if the list has none yet. */
  readonly newest: PublishedCertificate | undefined;
  readonly end: bigint;
}

/**
 * Returns a list's newest certificate, and the offset from which {@link certificatesSince} continues.
 *
 * @throws CellarstreamError `POSITION` if the certificates topic does not exist.
 */
export async function openCertificates(
  kafka: Kafka,
  source: CertificatesSource,
): Promise<OpenedCertificates> {
  const { newest, end } = await newestCertificates(kafka, source.topic, [source]);
  return { newest: newest[0], end };
}

/**
 * Emits the newest certificate that {@link openCertificates} returned, if there is one, and then the list's later certificates; completes
 * after `stop$` emits.
 */
export function certificatesSince(
  kafka: Kafka,
  source: CertificatesSource,
  { newest, end }: OpenedCertificates,
  stop$: Observable<unknown>,
): Observable<PublishedCertificate> {
  const { topic } = source;
  const ends = new Map([[0, end]]);
  const range = { from: ends, ends };
  const later$ = readBatches({ kafka, topic, range, follow: true, stop$ }, (batch) =>
    certificatesIn(batch).filter(certificateOf(source)),
  );
  return newest ? concat(of(newest), later$) : later$;
}

export function certificatesOf(
  kafka: Kafka,
  source: CertificatesSource,
  stop$: Observable<unknown>,
): Observable<PublishedCertificate> {
  return defer(() => openCertificates(kafka, source)).pipe(
    takeUntil(stop$),
    switchMap((opened) => certificatesSince(kafka, source, opened, stop$)),
  );
}

/**
 * Returns the newest certificate of each list, in the order of `lists` (undefined for a list that has none), and the end offset of the
 * topic. Searches the topic backwards from its end.
 *
 * @throws CellarstreamError `POSITION` if the certificates topic does not exist.
 */
export async function newestCertificates(
  kafka: Kafka,
  topic: string,
  lists: readonly Omit<CertificatesSource, 'topic'>[],
): Promise<{ newest: readonly (PublishedCertificate | undefined)[]; end: bigint }> {
  const bounds = await topicBounds({ kafka }, topic, MISSING_TOPIC_ADVICE);
  const { low, high } = bounds.get(0) ?? { low: 0n, high: 0n };
  const kinds = lists.map(certificateOf);
  const newest = lists.map((): PublishedCertificate | undefined => undefined);
  for (let end = high, size = FIRST_WINDOW; end > low && newest.includes(undefined);) {
    const from = end - BigInt(size) > low ? end - BigInt(size) : low;
    const found: typeof newest = [];
    const range = { from: new Map([[0, from]]), ends: new Map([[0, end]]) };
    const read$ = readBatches({ kafka, topic, range }, (batch) => {
      for (const published of certificatesIn(batch)) {
        kinds.forEach((isOfKind, nth) => {
          if (isOfKind(published)) found[nth] = published;
        });
      }
      return [];
    });
    await lastValueFrom(read$, { defaultValue: undefined });
    found.forEach((published, nth) => (newest[nth] ??= published));
    end = from;
    size *= WINDOW_GROWTH;
  }
  return { newest, end: high };
}

function certificatesIn({ messages }: PartitionBatch): PublishedCertificate[] {
  return messages.flatMap(({ value, timestamp }) => {
    const certificate = value ? parseCertificate(value.toString()) : undefined;
    return certificate ? [{ certificate, publishedAt: Number(timestamp) }] : [];
  });
}

function certificateOf({ account, resource }: Omit<CertificatesSource, 'topic'>) {
  return ({ certificate }: PublishedCertificate): boolean =>
    certificate.resource === resource && certificate.account === (account ?? certificate.account);
}

/**
 * Maximum number of certificates that wait until the consumer has read the events before them. If there are more, the oldest is dropped.
 */
const MAX_PENDING = 1_000;

/** Calls `onPassed` with each certificate once the consumer has read all events before the certificate's offset in each partition. */
export class CertificateWatermarks {
  readonly #next: Map<number, bigint>;
  readonly #onPassed: (published: PublishedCertificate) => void;
  #waiting: PublishedCertificate[] = [];

  /**
   * @param from Offset of the first message that the consumer reads, by partition.
   * @param onPassed Called with a certificate once the consumer has read all events that the certificate describes.
   */
  constructor(from: Offsets, onPassed: (published: PublishedCertificate) => void) {
    this.#next = new Map(from);
    this.#onPassed = onPassed;
  }

  add(published: PublishedCertificate): void {
    this.#waiting.push(published);
    if (this.#waiting.length > MAX_PENDING) this.#waiting.shift();
    this.#notify();
  }

  /**
   * Registers that the consumer has read every message of the partition before offset `next`. Calls `onPassed` with each certificate whose
   * offsets the consumer has now reached in all partitions.
   */
  advanceTo(partition: number, next: bigint): void {
    this.#next.set(partition, next);
    this.#notify();
  }

  #notify(): void {
    const passed = this.#waiting.filter((each) => this.#isPassed(each));
    this.#waiting = this.#waiting.filter((each) => !passed.includes(each));
    passed.forEach((each) => this.#onPassed(each));
  }

  #isPassed({ certificate }: PublishedCertificate): boolean {
    return Object.entries(certificate.partitions).every(
      ([partition, { position }]) => (this.#next.get(Number(partition)) ?? 0n) >= position,
    );
  }
}
