import { KeyTally } from '../schemas/events/key-tally.ts';
import type { TallyText } from '../schemas/events/key-tally.ts';

/** Of each partition, so many are kept at least. */
const KEPT = 10_000;

interface TallyAt {
  /** The offset behind the event that made it so. */
  readonly next: number;
  readonly tally: KeyTally;
}

/** Count and digest of partitions at recent offsets: a certificate may come when its positions are passed. */
export class RecentTallies {
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
