// Holds back records that return to an earlier state until a second read confirms that state.

import { isStale, MAX_LAG_MS } from '../http/response-age.ts';
import type { AnswerAge } from '../http/response-age.ts';
import type { ImageCodec } from '../records/page-record.ts';

/** An image (stored encoding) of a record's earlier published content, which newer content has replaced. */
export interface ReplacedImage {
  readonly bytes: Buffer;
  /** The codec that encoded the image; the schema may have gained fields since. */
  readonly codec: ImageCodec;
}

/** A record in a response that differs from the image published under its key, or for whose key no image is published. */
export interface Sighting {
  readonly key: string;
  /** The record's `updated_at` in epoch ms; null if it has none. */
  readonly updatedAt: number | null;
  /** Age of the response that contains the record. */
  readonly age: AnswerAge;
  /** `updated_at` of the published image in epoch ms, null if that has none; undefined if no image is published. */
  readonly published: number | null | undefined;
  /** Returns whether the record, as it was read, equals the content of a given replaced image. */
  readonly equals: (image: ReplacedImage) => boolean;
  /** Returns whether the record differs from the published image only because other personal fields are hidden since a restart. */
  readonly isHiddenAnew: () => boolean;
}

/** A record that is published only after a second read shows the same state. */
export interface Unconfirmed {
  readonly key: string;
  /** Local time, in epoch ms, from which on a second read can confirm the record's state. */
  readonly from: number;
}

/** Options of {@link Confirmations}. */
export interface ConfirmationsOptions {
  /** Returns the local time, in epoch ms. */
  readonly now: () => number;
  /**
   * Kinds of events that an earlier process may have published shortly before this one started: updates, and deletions once the initial
   * snapshot was complete. `newestStamp` is the newest `created_at` or `updated_at` of any published record, in epoch ms; undefined if no
   * record has one. Default: none.
   */
  readonly inherited?: {
    readonly updates: boolean;
    readonly deletions: boolean;
    readonly newestStamp: number | undefined;
  };
  /** Maximum number of records that wait for a second read. Default 50,000. */
  readonly maxWaiting?: number;
}

type Inherited = NonNullable<ConfirmationsOptions['inherited']>;

/** State of a record that is not published until a second read confirms it. */
interface Waiting {
  /** Local time at which the state was first read, in epoch ms. */
  readonly since: number;
  readonly updatedAt: number | null;
}

/** An earlier published image and the local time at which another replaced it, in epoch ms. */
interface Replaced {
  readonly image: ReplacedImage;
  readonly at: number;
}

const NOTHING: Inherited = { updates: false, deletions: false, newestStamp: undefined };
/**
 * Default maximum number of records that wait for a second read, about 100 bytes each. Further records are not published until there is
 * space.
 */
const MAX_WAITING = 50_000;
/**
 * Maximum number of remembered keys whose deletion was published, about 100 bytes each. Too small: a lagging replica may bring back a
 * record that was deleted earlier.
 */
const MAX_DELETED = 50_000;
/**
 * Maximum number of remembered keys of newly published records, about 100 bytes each. Too small: a sweep (full scan for deletions) may
 * consider a new record missing.
 */
const MAX_CREATED = 10_000;
/**
 * Maximum number of keys whose replaced images (earlier published content) are remembered for `MAX_LAG_MS`, about 3 KB each. Too small: a
 * lagging replica may revert the records of further keys.
 */
const MAX_REPLACED = 1_000;
/** Maximum number of replaced images (earlier published content) remembered per key. */
const MAX_IMAGES = 4;

/**
 * Keeps a lagging read replica or a cache from reverting records. A record that returns to an earlier state is published only if a request
 * sent at least `MAX_LAG_MS` after that state was first read shows the same state, and no response in between showed the published image.
 *
 * A record returns to an earlier state if its `updated_at` is earlier than that of the published image, or, after a deletion, not later
 * than that of the deleted record. If `updated_at` is equal or missing, it does so if it equals an image that was replaced less than
 * `MAX_LAG_MS` before the response was produced, or if the response is stale (`isStale`).
 *
 * Which records an earlier process replaced or deleted is unknown. So until `MAX_LAG_MS` after the start, every difference with an equal or
 * missing `updated_at` counts as a return, unless only hidden fields differ. For the same time, if the initial snapshot is complete, so
 * does a record without an image, as it may have been deleted, unless its `updated_at` is later than the newest stamp of all published
 * records.
 *
 * The state is held in memory while the process owns the task, and bounded. A record for which there is no space is held back as well, so
 * the published image stays.
 */
export class Confirmations {
  readonly #now: () => number;
  readonly #maxWaiting: number;
  readonly #startedAt: number;
  readonly #inherited: Inherited;
  readonly #waiting = new Map<string, Waiting>();
  /**
   * `updated_at` of deleted records by key, in epoch ms, the oldest deletion first. An entry stays when its record is published again,
   * because that event may not be committed.
   */
  readonly #deleted = new Map<string, number | null>();
  /** Local time at which a record was published as new, in epoch ms, by key; the oldest first. */
  readonly #created = new Map<string, number>();
  /** Published images, by key, that were replaced by images without a later `updated_at`; the newest image of a key first. */
  readonly #replaced = new Map<string, readonly Replaced[]>();

  constructor(options: ConfirmationsOptions) {
    const { now, inherited = NOTHING } = options;
    const { maxWaiting = MAX_WAITING } = options;
    this.#now = now;
    this.#startedAt = now();
    this.#inherited = inherited;
    this.#maxWaiting = maxWaiting;
  }

  /** Whether any record waits for a second read. */
  get isAnyWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether the record of a key waits for a second read. */
  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** Returns the local time, in epoch ms, from which on the record has to be read again; undefined if it may be published. */
  confirmableFrom(sighting: Sighting): number | undefined {
    const { key, updatedAt, age } = sighting;
    const first = this.#waiting.get(key);
    if (!first && !this.#goesBack(sighting)) return undefined;
    const since = first?.updatedAt === updatedAt ? first.since : this.#now();
    const from = since + MAX_LAG_MS;
    if (age.asOf >= from || !this.#goesBack(sighting)) {
      this.#waiting.delete(key);
      return undefined;
    }
    if (first || this.#waiting.size < this.#maxWaiting)
      this.#waiting.set(key, { since, updatedAt });
    return from;
  }

  /**
   * Notes that a response showed the published image of `key`. A record that waits for a second read stops waiting, and starts over if it
   * differs again.
   */
  agreed(key: string, { asOf }: AnswerAge): void {
    const first = this.#waiting.get(key);
    if (first && asOf >= first.since) this.#waiting.delete(key);
  }

  /**
   * Remembers the image that a newly published record of `key` has replaced: `replaced`, undefined if there was none, or if its
   * `updated_at` was earlier.
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
    this.#replaced.set(key, [{ image: replaced, at: now }, ...earlier].slice(0, MAX_IMAGES));
  }

  /** Remembers that the record of a key is published as new, with the current local time. */
  created(key: string): void {
    this.#created.delete(key);
    this.#created.set(key, this.#now());
    dropOldest(this.#created, MAX_CREATED);
  }

  /** Returns the keys of records published as new since a local time in epoch ms, and forgets those published before. */
  createdSince(time: number): readonly string[] {
    for (const [oldest, at] of this.#created) {
      if (at >= time) break;
      this.#created.delete(oldest);
    }
    return [...this.#created.keys()];
  }

  /** Remembers that the deletion of a key is published; `updatedAt` is that of the deleted record, in epoch ms. */
  deleted(key: string, updatedAt: number | null): void {
    this.#created.delete(key);
    this.#waiting.delete(key);
    this.#replaced.delete(key);
    this.#deleted.delete(key);
    this.#deleted.set(key, updatedAt);
    dropOldest(this.#deleted, MAX_DELETED);
  }

  /** Whether a record returns to an earlier state, by the rules in the description of this class. */
  #goesBack({ key, updatedAt, age, published, equals, isHiddenAnew }: Sighting): boolean {
    const isNew = published === undefined;
    const last = isNew ? this.#deleted.get(key) : published;
    if (last === undefined) {
      const { deletions, newestStamp = Infinity } = this.#inherited;
      const isLater = updatedAt !== null && updatedAt > newestStamp;
      return deletions && !isLater && age.asOf < this.#startedAt + MAX_LAG_MS;
    }
    if (updatedAt !== null && last !== null && updatedAt !== last) return updatedAt < last;
    if (isNew || isStale(age)) return true;
    const isInherited = this.#inherited.updates && age.asOf < this.#startedAt + MAX_LAG_MS;
    if (isInherited && !isHiddenAnew()) return true;
    return (this.#replaced.get(key) ?? []).some(
      ({ image, at }) => age.asOf < at + MAX_LAG_MS && equals(image),
    );
  }
}

/** Removes the entry that was inserted first if the map has more than `most` entries. */
function dropOldest(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  const [oldest] = map.keys();
  map.delete(oldest!);
}
