import type { Kafka } from 'kafkajs';
import { concat, defer, EMPTY, lastValueFrom, of, switchMap } from 'rxjs';
import type { Observable } from 'rxjs';
import { parseCertificate } from '../schemas/events/certificate.ts';
import type { Certificate } from '../schemas/events/certificate.ts';
import { requireTopic, topicBounds } from '../sinks/client/topic-bounds.ts';
import { withAdmin } from '../sinks/client/with-admin.ts';
import type { PartitionBatch } from '../sinks/fetch/kafka-reader.ts';
import { readBatches } from '../sinks/fetch/read-batches.ts';

/** A certificate as it lies in its topic. */
export interface PublishedCertificate {
  readonly certificate: Certificate;
  /** When, ms since 1970. */
  readonly publishedAt: number;
}

/** Which certificates those of a list are. */
export interface CertificatesSource {
  /** `<TOPIC_PREFIX>.certificates`; in a fleet the fleet's. */
  readonly topic: string;
  readonly resource: string;
  /** Undefined where the topic has those of one account alone. */
  readonly account?: string | undefined;
}

const RUN_FIRST =
  '`cellarstream run` makes it, from the version on that publishes certificates; in a fleet it is under the prefix of all';
/** Messages that are looked through for the newest certificate, from the end on; then ever more. */
const FIRST_WINDOW = 1_000;
const WIDER = 8;

/** The newest certificate of a list, if it has one, and each that is published from now on. */
export function certificatesOf(
  kafka: Kafka,
  source: CertificatesSource,
): Observable<PublishedCertificate> {
  const isOurs = ({ certificate }: PublishedCertificate) => isOf(certificate, source);
  return defer(async () => {
    const { low, high } = await boundsOf(kafka, source.topic);
    const newest = await newestOf(kafka, source.topic, { low, high }, [isOurs]);
    return { newest: newest[0], end: high };
  }).pipe(
    switchMap(({ newest, end }) => {
      const range = { from: new Map([[0, end]]), ends: new Map([[0, end]]) };
      const later$ = readBatches({ kafka, topic: source.topic, range, follow: true }, (batch) =>
        certificatesIn(batch).filter(isOurs),
      );
      return concat(newest ? of(newest) : EMPTY, later$);
    }),
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
  return newestOf(
    kafka,
    topic,
    await boundsOf(kafka, topic),
    lists.map(
      (list) =>
        ({ certificate }) =>
          isOf(certificate, list),
    ),
  );
}

/** Of each kind the newest; from the end on, as those of a list come every few minutes. */
async function newestOf(
  kafka: Kafka,
  topic: string,
  { low, high }: { readonly low: bigint; readonly high: bigint },
  kinds: readonly ((published: PublishedCertificate) => boolean)[],
): Promise<(PublishedCertificate | undefined)[]> {
  const newest = kinds.map((): PublishedCertificate | undefined => undefined);
  for (let end = high, size = FIRST_WINDOW; end > low && newest.includes(undefined); ) {
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

function isOf(
  { account, resource }: Certificate,
  list: Omit<CertificatesSource, 'topic'>,
): boolean {
  return resource === list.resource && account === (list.account ?? account);
}

async function boundsOf(kafka: Kafka, topic: string) {
  const bounds = await withAdmin(kafka, async (admin) => {
    await requireTopic(admin, topic, RUN_FIRST);
    return topicBounds(admin, topic);
  });
  return bounds.get(0) ?? { low: 0n, high: 0n };
}
