import type { Offsets } from '../sinks/transactional-log.ts';
import type { PublishedCertificate } from './certificates.ts';

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
