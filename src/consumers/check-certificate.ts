// Compares the count and digest of a topic's live keys, as a consumer has read them, with a certificate.

import type { Kafka } from 'kafkajs';
import { CellarstreamError } from '../core/errors.ts';
import type { TallyText } from '../schemas/events/key-tally.ts';
import { topicBounds, topicSettings } from '../kafka/client/topic-facts.ts';
import type { Bounds } from '../kafka/log.ts';
import type { PublishedCertificate } from './certificates.ts';
import { LiveKeyTracker } from './live-key-tracker.ts';
import type { EventSummary } from './live-key-tracker.ts';
import { KeyTally } from '../schemas/events/key-tally.ts';

/**
 * Result of comparing the records that a consumer has read with a certificate of the list. `disagrees`: records differ or events are
 * missing. `not checked`: no comparison is possible.
 */
export type Checked = 'agrees' | 'disagrees' | 'not checked';

/** Result of comparing one partition with a certificate. */
export interface CheckedPartition {
  readonly partition: number;
  readonly checked: Checked;
  /** Offset up to which the certificate describes the partition: it covers the events before this offset. */
  readonly position: number;
  readonly certified: TallyText;
  /**
   * Count and digest of the live (not deleted) keys at `position`, from the events that the consumer has read. Undefined if not available.
   */
  readonly found: TallyText | undefined;
  /** Human-readable reason why the partition does not agree or was not checked; undefined if it agrees. */
  readonly why: string | undefined;
}

/** A certificate, and the result of comparing a consumer's live keys with it. */
export interface CheckedCertificate extends PublishedCertificate {
  readonly checked: Checked;
  /**
   * Human-readable reason why the certificate can't be compared with the topic at all; `partitions` is then empty. Undefined if
   * `partitions` has results.
   */
  readonly why: string | undefined;
  readonly partitions: readonly CheckedPartition[];
}

/** Properties of a topic that decide whether a certificate can be compared with its events. */
export interface CertifiedTopic {
  readonly bounds: ReadonlyMap<number, Bounds>;
  /** Minimum age of a message, in ms, before compaction may remove it. `Infinity` if the topic is not compacted, 0 if unknown. */
  readonly compactionLagMs: number;
}

/**
 * Reads the properties of a list's topic that decide whether its events can be compared with a certificate.
 *
 * @throws CellarstreamError `POSITION` if the topic does not exist; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function certifiedTopic(kafka: Kafka, topic: string): Promise<CertifiedTopic> {
  const bounds = await topicBounds(
    { kafka },
    topic,
    'check that TOPIC_PREFIX is that of the service',
  );
  return { bounds, compactionLagMs: await lagOf(kafka, topic) };
}

/** Returns the topic's `min.compaction.lag.ms`: `Infinity` if the topic is not compacted, 0 if this client may not read its settings. */
async function lagOf(kafka: Kafka, topic: string): Promise<number> {
  const LAG = 'min.compaction.lag.ms';
  try {
    const settings = await topicSettings({ kafka }, topic, ['cleanup.policy', LAG]);
    if (!settings.get('cleanup.policy')?.includes('compact')) return Infinity;
    return Number(settings.get(LAG) ?? 0);
  } catch (error) {
    // With 0, `whyUncheckable` accepts no certificate.
    if (error instanceof CellarstreamError && error.code === 'KAFKA_REFUSED') return 0;
    throw error;
  }
}

/** Returns why a certificate cannot be compared with the topic's events; undefined if the comparison is possible. */
export function whyUncheckable(
  { certificate, publishedAt }: PublishedCertificate,
  { bounds, compactionLagMs }: CertifiedTopic,
  now: number,
): string | undefined {
  const certified = Object.keys(certificate.partitions).length;
  if (certified !== bounds.size) {
    return `the topic has ${bounds.size} partitions, but the certificate counts ${certified}`;
  }
  if (now - publishedAt < compactionLagMs) return undefined;
  return "the certificate is older than the topic's min.compaction.lag.ms: events that it counts may have been compacted away";
}

/** Reason why a partition's count and digest are not available, and the verdict: `disagrees` if events are missing, else `not checked`. */
export interface TallyUnavailable {
  readonly checked: Exclude<Checked, 'agrees'>;
  readonly why: string;
}

/**
 * Compares the live keys of each partition with a certificate, by count and digest.
 *
 * @param found Returns count and digest of a partition's live keys after all events before the offset `position`, or why they are not
 * available.
 */
export function checkCertificate(
  published: PublishedCertificate,
  topic: CertifiedTopic,
  now: number,
  found: (partition: number, position: number) => TallyText | TallyUnavailable,
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
  return { ...published, checked: overallVerdict(partitions), why: undefined, partitions };
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
  return `partition ${partition} has ${found.records} records as certified, but with other events (the digest differs)`;
}

function overallVerdict(partitions: readonly CheckedPartition[]): Checked {
  const any = (wanted: Checked) => partitions.some(({ checked }) => checked === wanted);
  return any('disagrees') ? 'disagrees' : any('not checked') ? 'not checked' : 'agrees';
}

/** Compares the events of a list's topic, read from the beginning, with certificates. */
export class TableCheck {
  readonly #keys = new LiveKeyTracker();
  readonly #topic: CertifiedTopic;
  /**
   * Count and digest of the live keys after each recent event, by partition, in offset order. Needed because a certificate describes
   * an offset in the past.
   */
  readonly #recent: Map<number, TallyAt[]>;

  /**
   * @param topic Properties of the topic. Must be requested before the topic is read: `apply` must receive every event from the first
   * offsets in `topic.bounds` on.
   */
  constructor(topic: CertifiedTopic) {
    this.#topic = topic;
    this.#recent = new Map(
      [...topic.bounds].map(([partition, { low }]) => [
        partition,
        // No keys are live before the first event.
        [{ next: Number(low), tally: new KeyTally() }],
      ]),
    );
  }

  /** Updates the live keys, count and digest of a partition for its next event. Must be called in offset order. */
  apply(partition: number, offset: number, key: string, event: EventSummary | null): void {
    this.#keys.apply(partition, key, event);
    const recent = this.#recent.get(partition) ?? [];
    this.#recent.set(partition, recent);
    if (recent.length >= 2 * MIN_RETAINED) recent.splice(0, MIN_RETAINED);
    recent.push({ next: offset + 1, tally: this.#keys.tally(partition).copy() });
  }

  /**
   * Compares the keys that were live (not deleted) at the certificate's offsets with the certificate, by count and digest.
   *
   * @param published A certificate; all events before its offsets must have been passed to `apply`.
   * @param now Current time in epoch ms.
   */
  judge(published: PublishedCertificate, now: number): CheckedCertificate {
    return checkCertificate(published, this.#topic, now, (partition, position) => {
      const at = this.#recent.get(partition)?.findLast(({ next }) => next <= position);
      return at?.tally.toJSON() ?? POSITION_TOO_OLD;
    });
  }
}

const POSITION_TOO_OLD: TallyUnavailable = {
  checked: 'not checked',
  why: "count and digest at the certificate's position are no longer in memory",
};

/**
 * Minimum number of recent events of each partition for which {@link TableCheck} stores count and digest. If too small, certificates that
 * arrive late are `not checked`; if too large, memory is wasted.
 */
const MIN_RETAINED = 10_000;

interface TallyAt {
  /** Offset right after the last event counted in `tally`. */
  readonly next: number;
  readonly tally: KeyTally;
}
