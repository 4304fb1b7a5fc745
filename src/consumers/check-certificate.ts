// Compares count and digest of a topic's live keys, as a reader has them, with a certificate.

import type { Kafka } from 'kafkajs';
import { CellarstreamError } from '../core/errors.ts';
import type { TallyText } from '../schemas/events/key-tally.ts';
import { topicBounds, topicSettings } from '../sinks/client/topic-facts.ts';
import type { Bounds } from '../sinks/sink.ts';
import type { PublishedCertificate } from './certificates.ts';
import { LiveKeys } from './live-keys.ts';
import type { EventBrief } from './live-keys.ts';
import { KeyTally } from '../schemas/events/key-tally.ts';

/** What came of holding something against a certificate. What can't be held against it never disagrees. */
export type Checked = 'agrees' | 'disagrees' | 'not checked';

/** The same of one partition. */
export interface CheckedPartition {
  readonly partition: number;
  readonly checked: Checked;
  /** The offset that the certificate speaks of: keys whose events lie before it. */
  readonly position: number;
  readonly certified: TallyText;
  /** Undefined where it was not checked. */
  readonly found: TallyText | undefined;
  /** Why it does not agree, in words. */
  readonly why: string | undefined;
}

/** A certificate, and what was found. */
export interface CheckedCertificate extends PublishedCertificate {
  readonly checked: Checked;
  /** Why nothing of it was checked, in words. */
  readonly why: string | undefined;
  readonly partitions: readonly CheckedPartition[];
}

/** What has to be known of a list's topic. */
export interface CertifiedTopic {
  readonly bounds: ReadonlyMap<number, Bounds>;
  /** How long compaction leaves its messages alone, ms. */
  readonly compactionLagMs: number;
}

/** @throws CellarstreamError `POSITION` when there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`. */
export async function certifiedTopic(kafka: Kafka, topic: string): Promise<CertifiedTopic> {
  const bounds = await topicBounds({ kafka }, topic, 'is TOPIC_PREFIX that of the service?');
  return { bounds, compactionLagMs: await lagOf(kafka, topic) };
}

/** How long compaction leaves a topic's messages alone, in ms; 0 where this client may not ask for it: nothing is checked then. */
async function lagOf(kafka: Kafka, topic: string): Promise<number> {
  const LAG = 'min.compaction.lag.ms';
  try {
    const settings = await topicSettings({ kafka }, topic, ['cleanup.policy', LAG]);
    if (!settings.get('cleanup.policy')?.includes('compact')) return Infinity;
    return Number(settings.get(LAG) ?? 0);
  } catch (error) {
    if (error instanceof CellarstreamError && error.code === 'KAFKA_REFUSED') return 0;
    throw error;
  }
}

/** Why nothing can be held against a certificate; undefined when something can. */
export function whyUncheckable(
  { certificate, publishedAt }: PublishedCertificate,
  { bounds, compactionLagMs }: CertifiedTopic,
  now: number,
): string | undefined {
  const certified = Object.keys(certificate.partitions).length;
  if (certified !== bounds.size) {
    return `the topic has ${bounds.size} partitions, the certificate speaks of ${certified}`;
  }
  if (now - publishedAt < compactionLagMs) return undefined;
  return "it is older than the topic's min.compaction.lag.ms: what it speaks of may be compacted since";
}

/** What is there instead of count and digest of a partition at a position. */
export interface NotFound {
  readonly checked: Exclude<Checked, 'agrees'>;
  readonly why: string;
}

/**
 * Holds count and digest of each partition against a certificate.
 *
 * @param found Count and digest of the live keys whose events lie before a position.
 */
export function checkCertificate(
  published: PublishedCertificate,
  topic: CertifiedTopic,
  now: number,
  found: (partition: number, position: number) => TallyText | NotFound,
): CheckedCertificate {
  const why = whyUncheckable(published, topic, now);
  if (why !== undefined) return { ...published, checked: 'not checked', why, partitions: [] };
  const partitions = Object.entries(published.certificate.partitions).map(
    ([text, { position, ...certified }]): CheckedPartition => {
      const partition = Number(text);
      const one = { partition, position, certified };
      const tally = found(partition, position);
      if ('checked' in tally) return { ...one, found: undefined, ...tally };
      const difference = differenceOf(partition, certified, tally);
      const checked = difference === undefined ? 'agrees' : 'disagrees';
      return { ...one, checked, found: tally, why: difference };
    },
  );
  return { ...published, checked: together(partitions), why: undefined, partitions };
}

function differenceOf(
  partition: number,
  certified: TallyText,
  found: TallyText,
): string | undefined {
  if (found.records !== certified.records) {
    return `partition ${partition} has ${found.records} of ${certified.records} records`;
  }
  if (found.digest === certified.digest) return undefined;
  return `partition ${partition} has ${found.records} records as certified, by other events`;
}

function together(partitions: readonly CheckedPartition[]): Checked {
  const any = (wanted: Checked) => partitions.some(({ checked }) => checked === wanted);
  return any('disagrees') ? 'disagrees' : any('not checked') ? 'not checked' : 'agrees';
}

/** Holds what is read of a list's topic, from its beginning on, against certificates. */
export class TableCheck {
  readonly #keys = new LiveKeys();
  readonly #topic: CertifiedTopic;
  readonly #recent: RecentTallies;

  /** @param topic As it is before anything is read. */
  constructor(topic: CertifiedTopic) {
    this.#topic = topic;
    this.#recent = new RecentTallies(
      new Map([...topic.bounds].map(([partition, { low }]) => [partition, Number(low)])),
    );
  }

  /** @throws CellarstreamError `POSITION`, `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`. */
  static async of(kafka: Kafka, topic: string): Promise<TableCheck> {
    return new TableCheck(await certifiedTopic(kafka, topic));
  }

  /** The next event of a partition. */
  take(partition: number, offset: number, key: string, event: EventBrief | null): void {
    this.#keys.take(partition, key, event);
    this.#recent.put(partition, offset, this.#keys.tally(partition));
  }

  /** @param published All of its positions have been passed. */
  judge(published: PublishedCertificate, now: number): CheckedCertificate {
    return checkCertificate(
      published,
      this.#topic,
      now,
      (partition, position) => this.#recent.at(partition, position) ?? PASSED_LONG_AGO,
    );
  }
}

const PASSED_LONG_AGO: NotFound = {
  checked: 'not checked',
  why: 'count and digest at its position are not known any more',
};

/** Of each partition, so many are kept at least. */
const KEPT = 10_000;

interface TallyAt {
  /** The offset behind the event that made it so. */
  readonly next: number;
  readonly tally: KeyTally;
}

/** Count and digest of partitions at recent offsets: a certificate may come when its positions are passed. */
class RecentTallies {
  readonly #partitions: Map<number, TallyAt[]>;

  /** @param starts Where partitions begin: no key is known before. */
  constructor(starts: ReadonlyMap<number, number>) {
    this.#partitions = new Map(
      [...starts].map(([partition, next]) => [partition, [{ next, tally: new KeyTally() }]]),
    );
  }

  /** What it is behind an event. */
  put(partition: number, offset: number, tally: KeyTally): void {
    let recent = this.#partitions.get(partition);
    if (!recent) this.#partitions.set(partition, (recent = []));
    if (recent.length >= 2 * KEPT) recent.splice(0, KEPT);
    recent.push({ next: offset + 1, tally: tally.copy() });
  }

  /** Before an offset, which must have been passed; undefined where that is no longer known. */
  at(partition: number, offset: number): TallyText | undefined {
    return this.#partitions
      .get(partition)
      ?.findLast(({ next }) => next <= offset)
      ?.tally.toJSON();
  }
}
