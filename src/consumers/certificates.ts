// Certificates as consumers read them: the newest of a list, those that come, and when a reader has passed their positions.

import type { Kafka } from 'kafkajs';
import { concat, defer, EMPTY, lastValueFrom, of, switchMap, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import { parseCertificate } from '../schemas/events/certificate.ts';
import type { Certificate } from '../schemas/events/certificate.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { topicBounds } from '../sinks/client/topic-facts.ts';
import type { PartitionBatch } from '../sinks/fetch/kafka-reader.ts';
import { readBatches } from '../sinks/fetch/read-batches.ts';
import type { Bounds, Offsets } from '../sinks/sink.ts';

/** A certificate as it lies in its topic. */
export interface PublishedCertificate {
  readonly certificate: Certificate;
  /** When, ms since 1970. */
  readonly publishedAt: number;
}

/** Which certificates those of a list are. */
interface CertificatesSource {
  /** `<TOPIC_PREFIX>.certificates`; in a fleet the fleet's. */
  readonly topic: string;
  readonly resource: string;
  /** Undefined where the topic has those of one account alone. */
  readonly account?: string | undefined;
}

/** Where the certificates of a list are, for those who read its topic. */
export interface CertificatesOptions {
  /** Default `<prefix>.certificates`, with the prefix of the list's topic. That of a fleet is under the fleet's. */
  readonly topic?: string;
  /** Default the one account that is there. To be given in a fleet. */
  readonly account?: string;
}

/** @param topic Of the list: `<prefix>.<resource>`. */
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

const RUN_FIRST =
  '`cellarstream run` makes it, from the version on that publishes certificates; in a fleet it is under the prefix of all';
/** Messages that are looked through for the newest certificate, from the end on; then ever more. */
const FIRST_WINDOW = 1_000;
const WIDER = 8;

/** The newest certificate of a list, and where its topic ends. */
export interface OpenedCertificates {
  /** Undefined where there is none. */
  readonly newest: PublishedCertificate | undefined;
  readonly end: bigint;
}

/** @throws CellarstreamError `POSITION` when there is no such topic. */
export async function openCertificates(
  kafka: Kafka,
  source: CertificatesSource,
): Promise<OpenedCertificates> {
  const bounds = await boundsOf(kafka, source.topic);
  const [newest] = await newestOf(kafka, source.topic, bounds, [certificateOf(source)]);
  return { newest, end: bounds.high };
}

/** The certificates of a list that are published from an end on; completes behind `stop$`. */
export function laterCertificates(
  kafka: Kafka,
  source: CertificatesSource,
  end: bigint,
  stop$: Observable<unknown>,
): Observable<PublishedCertificate> {
  const { topic } = source;
  const ends = new Map([[0, end]]);
  return readBatches({ kafka, topic, range: { from: ends, ends }, follow: true, stop$ }, (batch) =>
    certificatesIn(batch).filter(certificateOf(source)),
  );
}

/** Its newest certificate, and the later ones. */
export function certificatesOf(
  kafka: Kafka,
  source: CertificatesSource,
  stop$: Observable<unknown>,
): Observable<PublishedCertificate> {
  return defer(() => openCertificates(kafka, source)).pipe(
    takeUntil(stop$),
    switchMap(({ newest, end }) =>
      concat(newest ? of(newest) : EMPTY, laterCertificates(kafka, source, end, stop$)),
    ),
  );
}

/**
 * The newest certificate of each of these lists, in their order; undefined where there is none.
 *
 * @throws CellarstreamError `POSITION` when there is no such topic.
 */
export async function newestCertificates(
  kafka: Kafka,
  topic: string,
  lists: readonly Omit<CertificatesSource, 'topic'>[],
): Promise<readonly (PublishedCertificate | undefined)[]> {
  return newestOf(kafka, topic, await boundsOf(kafka, topic), lists.map(certificateOf));
}

/** Of each kind the newest; from the end on, as those of a list come every few minutes. */
async function newestOf(
  kafka: Kafka,
  topic: string,
  { low, high }: Bounds,
  kinds: readonly ((published: PublishedCertificate) => boolean)[],
): Promise<(PublishedCertificate | undefined)[]> {
  const newest = kinds.map((): PublishedCertificate | undefined => undefined);
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
    size *= WIDER;
  }
  return newest;
}

function certificatesIn({ messages }: PartitionBatch): PublishedCertificate[] {
  return messages.flatMap(({ value, timestamp }) => {
    const certificate = value ? parseCertificate(value.toString()) : undefined;
    return certificate ? [{ certificate, publishedAt: Number(timestamp) }] : [];
  });
}

/** Whether a certificate is one of a list. */
function certificateOf({ account, resource }: Omit<CertificatesSource, 'topic'>) {
  return ({ certificate }: PublishedCertificate): boolean =>
    certificate.resource === resource && certificate.account === (account ?? certificate.account);
}

async function boundsOf(kafka: Kafka, topic: string): Promise<Bounds> {
  const bounds = await topicBounds({ kafka }, topic, RUN_FIRST);
  return bounds.get(0) ?? { low: 0n, high: 0n };
}

/** Of certificates that are waited for; of more the oldest is let go. */
const MOST_WAITING = 1_000;

/** Tells of each certificate when all that is before its positions has been read. */
export class PassedCertificates {
  readonly #next: Map<number, bigint>;
  readonly #onPassed: (published: PublishedCertificate) => void;
  #waiting: PublishedCertificate[] = [];

  /** @param from Where the reading begins. */
  constructor(from: Offsets, onPassed: (published: PublishedCertificate) => void) {
    this.#next = new Map(from);
    this.#onPassed = onPassed;
  }

  add(published: PublishedCertificate): void {
    this.#waiting.push(published);
    if (this.#waiting.length > MOST_WAITING) this.#waiting.shift();
    this.#tell();
  }

  /** All of a partition that is before `next` has been read. */
  readTo(partition: number, next: bigint): void {
    this.#next.set(partition, next);
    if (this.#waiting.length > 0) this.#tell();
  }

  #tell(): void {
    const passed = this.#waiting.filter((each) => this.#isPassed(each));
    if (passed.length === 0) return;
    this.#waiting = this.#waiting.filter((each) => !passed.includes(each));
    passed.forEach((each) => this.#onPassed(each));
  }

  #isPassed({ certificate }: PublishedCertificate): boolean {
    return Object.entries(certificate.partitions).every(
      ([partition, { position }]) => (this.#next.get(Number(partition)) ?? 0n) >= position,
    );
  }
}
