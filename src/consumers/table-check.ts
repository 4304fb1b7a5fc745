import type { Kafka } from 'kafkajs';
import type { PublishedCertificate } from './certificates.ts';
import { certifiedTopic, checkCertificate } from './check-certificate.ts';
import type { CertifiedTopic, CheckedCertificate, NotFound } from './check-certificate.ts';
import { LiveKeys } from './live-keys.ts';
import type { EventBrief } from './live-keys.ts';
import { RecentTallies } from './recent-tallies.ts';

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
