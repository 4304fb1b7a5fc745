// Holds back records that return to an earlier state until a second read confirms that state.

import { isStale, MAX_LAG_MS } from '../http/response-age.ts';
import type { AnswerAge } from '../http/response-age.ts';
import type { ImageCodec } from '../records/page-record.ts';

/** An image of a record (the record as it was published) that a newer image of the same record has replaced. */
export interface ReplacedImage {
  readonly bytes: Buffer;
  /** The codec that encoded the image. The schema may have gained fields since. */
  readonly codec: ImageCodec;
}

/**
 * A record that was read and differs from its published image, or has no published image yet. It is published, unless it has to be
 * confirmed first.
 */
export interface Sighting {
  readonly key: string;
  /** The record's modification time in epoch ms; null if it has none. */
  readonly updatedAt: number | null;
  /** Age of the response that contains the record. */
  readonly age: AnswerAge;
  /** Modification time of the published image, in epoch ms: null if the image has none, undefined if there is no published image. */
  readonly published: number | null | undefined;
  /** Returns whether the record is the same as `image`, apart from volatile fields (which change from response to response). */
  readonly equals: (image: ReplacedImage) => boolean;
  /** Returns whether the record differs from its published image only because the settings hide more personal fields since a restart. */
  readonly isHiddenAnew: () => boolean;
}

/** A record that may have been read in an earlier state than the published one, so that a second read has to confirm it. */
export interface Unconfirmed {
  readonly key: string;
  /**
   * Time from which a second read can confirm the record, in epoch ms on the local clock. The content of that read's response must have
   * been produced at this time or later.
   */
  readonly from: number;
  /**
   * Whether this response begins a wait because it may show an earlier state than the published one. False if the record already waits, or
   * has to be confirmed only because the process has just started.
   */
  readonly isReversion: boolean;
}

/** Options of {@link Confirmations}. */
export interface ConfirmationsOptions {
  /** Returns the current time by this machine's clock, in epoch ms. */
  readonly now: () => number;
  /**
   * Publications by an earlier process before this one started. Default: no updates and no deletions.
   *
   * - `updates`, `deletions`: whether an earlier process may have published updates or deletions shortly before the start.
   * - `newestStamp`: newest creation or modification time of all records published before the start, in epoch ms; undefined if none is
   *   known.
   */
  readonly inherited?: {
    readonly updates: boolean;
    readonly deletions: boolean;
    readonly newestStamp: number | undefined;
  };
}

type Inherited = NonNullable<ConfirmationsOptions['inherited']>;

interface Waiting {
  /** Local time when the record was first read with the stamp `updatedAt`, in epoch ms. */
  readonly since: number;
  readonly updatedAt: number | null;
}

/** A replaced image, and the local time when it was replaced, in epoch ms. */
interface Replaced extends ReplacedImage {
  readonly at: number;
}

const NOTHING: Inherited = { updates: false, deletions: false, newestStamp: undefined };
/**
 * Maximum number of records that wait for a second read at the same time, about 100 bytes each. If it is too small, further records that
 * need a second read are published later.
 */
export const MAX_WAITING = 50_000;
/**
 * Maximum number of remembered keys of deleted records, about 100 bytes each. If it is too small, a lagging replica may bring back deleted
 * records.
 */
const MAX_DELETED = 50_000;
/**
 * Maximum number of keys of newly published records that are remembered, about 100 bytes each. If it is too small, a sweep may consider a
 * new record missing.
 */
const MAX_CREATED = 10_000;
/**
 * Maximum number of keys whose replaced images are remembered, about 3 KB each. If it is too small, a lagging replica may revert records of
 * other keys.
 */
const MAX_REPLACED = 1_000;
/**
 * Maximum number of replaced images (earlier published states of a record) that are remembered for each key. If it is too small, a lagging
 * replica may revert a record that changes often.
 */
const MAX_IMAGES = 4;

/**
 * Keeps a lagging read replica or a cache from reverting records. A record that returns to an earlier state is not published at once, but
 * waits for a second read:
 *
 * - The record is published once a response that was produced at least `MAX_LAG_MS` after the first read shows it with the same
 *   modification time. If the modification time has changed meanwhile, the time is counted anew.
 * - The wait ends without a publication if a response shows the published image (the record as last published).
 *
 * A record returns to an earlier state in these cases:
 *
 * - Its modification time is earlier than that of its image.
 * - Its modification time is equal or missing, and the response is stale (`isStale`) or shows an image that was replaced less than
 *   `MAX_LAG_MS` before the response was produced.
 * - Its deletion was published, and its modification time is missing or not later than before the deletion.
 *
 * Until `MAX_LAG_MS` after the start, records that an earlier process may have replaced or deleted have to be confirmed too. The state is
 * held in memory while the process owns the task.
 */
export class Confirmations {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #inherited: Inherited;
  readonly #waiting = new Map<string, Waiting>();
  /**
   * Modification time of each deleted record, in epoch ms, by key; null if the record had none. The oldest deletion comes first. An entry
   * stays when the record is published again, because the transaction with that event may fail.
   */
  readonly #deleted = new Map<string, number | null>();
  /** Local time when each new record was published, in epoch ms, by key; the oldest first. */
  readonly #created = new Map<string, number>();
  /**
   * Images (records as they were published) that were replaced lately, by key; for each key the newest first. A response that shows one of
   * them may come from a lagging replica.
   */
  readonly #replaced = new Map<string, readonly Replaced[]>();

  constructor({ now, inherited = NOTHING }: ConfirmationsOptions) {
    this.#now = now;
    this.#startedAt = now();
    this.#inherited = inherited;
  }

  /** Whether any record waits for a second read. */
  get isAnyWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether the record with this key waits for a second read. */
  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /**
   * Returns undefined if the record in `sighting` may be published. Otherwise the record waits for a second read, and the result contains
   * the earliest time at which a read can confirm it.
   */
  unconfirmed(sighting: Sighting): Unconfirmed | undefined {
    const { key, updatedAt, age } = sighting;
    const first = this.#waiting.get(key);
    const doubt = this.#doubt(sighting);
    const since = first?.updatedAt === updatedAt ? first.since : this.#now();
    const from = since + MAX_LAG_MS;
    if (!doubt || (first && age.asOf >= from)) {
      this.#waiting.delete(key);
      return undefined;
    }
    // If too many records wait, the record stays unpublished, and its wait begins at a later read.
    const begins = !first && this.#waiting.size < MAX_WAITING;
    if (first || begins) this.#waiting.set(key, { since, updatedAt });
    return { key, from, isReversion: begins && doubt === 'reversion' };
  }

  /**
   * Ends the wait of a record for a second read, because a response has shown the record as it is published. Ignored if the response may
   * have been produced before the wait began.
   */
  agreed(key: string, { asOf }: AnswerAge): void {
    const first = this.#waiting.get(key);
    if (first && asOf >= first.since) this.#waiting.delete(key);
  }

  /**
   * Remembers an image that a published change has replaced, so that the image is recognized if a lagging replica still shows it. To be
   * called for each published change of a record.
   *
   * @param replaced The image that was published before. Undefined if there was none, or if the new image has a later modification time:
   * then an old response is recognized by its time.
   */
  published(key: string, replaced: ReplacedImage | undefined): void {
    if (!replaced && this.#replaced.size === 0) return;
    const now = this.#now();
    for (const [other, [newest]] of this.#replaced) {
      if (now - newest!.at < MAX_LAG_MS && this.#replaced.size <= MAX_REPLACED) break;
      this.#replaced.delete(other);
    }
    if (!replaced) return;
    const earlier = (this.#replaced.get(key) ?? []).filter(({ at }) => now - at < MAX_LAG_MS);
    this.#replaced.delete(key); // so that the key is inserted last
    this.#replaced.set(key, [{ ...replaced, at: now }, ...earlier].slice(0, MAX_IMAGES));
  }

  /** Remembers the key of a record that is published as new, and the local time at which it is published. */
  created(key: string): void {
    this.#created.delete(key);
    this.#created.set(key, this.#now());
    dropOldest(this.#created, MAX_CREATED);
  }

  /**
   * Returns the keys of records that were published as new at or after `time` (epoch ms on the local clock) and not deleted since. Forgets
   * the keys published before `time`.
   */
  createdSince(time: number): readonly string[] {
    for (const [oldest, at] of this.#created) {
      if (at >= time) break;
      this.#created.delete(oldest);
    }
    return [...this.#created.keys()];
  }

  /** Remembers that a deletion was published. `updatedAt`: last modification time of the record in epoch ms; null if it had none. */
  deleted(key: string, updatedAt: number | null): void {
    this.#created.delete(key);
    this.#waiting.delete(key);
    this.#replaced.delete(key);
    this.#deleted.delete(key);
    this.#deleted.set(key, updatedAt);
    dropOldest(this.#deleted, MAX_DELETED);
  }

  /**
   * Returns why a record has to be confirmed by a second read before it is published; undefined if it need not be confirmed.
   *
   * - `reversion`: the record was, or may have been, read in an earlier state than the published one.
   * - `start`: the process has just started, and an earlier process may have published a newer state.
   */
  #doubt(sighting: Sighting): 'reversion' | 'start' | undefined {
    const { key, updatedAt, age, published, equals, isHiddenAnew } = sighting;
    const isNew = published === undefined;
    const last = isNew ? this.#deleted.get(key) : published;
    const isStarting = age.asOf < this.#startedAt + MAX_LAG_MS;
    const { updates, deletions, newestStamp = Infinity } = this.#inherited;
    if (last === undefined) {
      // An earlier process may have deleted the record, unless its stamp is later than all published ones.
      const isLater = updatedAt !== null && updatedAt > newestStamp;
      return deletions && !isLater && isStarting ? 'start' : undefined;
    }
    if (updatedAt !== null && last !== null && updatedAt !== last) {
      return updatedAt < last ? 'reversion' : undefined;
    }
    if (isNew || isStale(age)) return 'reversion';
    const isReplaced = (this.#replaced.get(key) ?? []).some(
      (image) => age.asOf < image.at + MAX_LAG_MS && equals(image),
    );
    if (isReplaced) return 'reversion';
    // An earlier process may have published a newer state, unless only more fields are hidden now.
    return updates && isStarting && !isHiddenAnew() ? 'start' : undefined;
  }
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  const [oldest] = map.keys();
  map.delete(oldest!);
}
