import { isStale, MAX_LAG_MS } from '../http/answer-age.ts';
import type { AnswerAge } from '../http/answer-age.ts';
import type { ImageCodec } from '../records/page-record.ts';

/** An image that another has replaced. */
export interface ReplacedImage {
  readonly bytes: Buffer;
  /** The codec of its schema, which may have grown since. */
  readonly codec: ImageCodec;
}

/** A record that differs from the image published under its key, or that has none. */
export interface Sighting {
  readonly key: string;
  /** The record's `updated_at` in ms since the epoch; null when it has none. */
  readonly updatedAt: number | null;
  /** Age of the answer that showed the record. */
  readonly age: AnswerAge;
  /** The published image's `updated_at`; undefined when no image is published. */
  readonly published: number | null | undefined;
  /** Whether the record equals an image that was replaced. */
  readonly equals: (image: ReplacedImage) => boolean;
  /** Whether it differs from the published image only because other personal fields are hidden since a restart. */
  readonly isHiddenAnew: () => boolean;
}

/** A record whose state has to be read again before it is published. */
export interface Unconfirmed {
  readonly key: string;
  /** Local time, in ms, from which on a read can confirm it. */
  readonly from: number;
}

/** Options of {@link Confirmations}. */
export interface ConfirmationsOptions {
  /** Local time, ms. */
  readonly now: () => number;
  /**
   * Kinds of events that an earlier process may have published shortly before: updates, and deletions once the initial snapshot was done.
   * `newestStamp` is the newest `created_at` or `updated_at` of any published record, in epoch ms; undefined if no record has one, or an
   * older version wrote the cursor. Default: none.
   */
  readonly inherited?: {
    readonly updates: boolean;
    readonly deletions: boolean;
    readonly newestStamp: number | undefined;
  };
  /** Most sightings that wait for a second one. Default 50,000. */
  readonly maxWaiting?: number;
}

type Inherited = NonNullable<ConfirmationsOptions['inherited']>;

interface Waiting {
  /** When the state was first seen. */
  readonly since: number;
  readonly updatedAt: number | null;
}

interface Replaced {
  readonly image: ReplacedImage;
  readonly at: number;
}

const NOTHING: Inherited = { updates: false, deletions: false, newestStamp: undefined };
/** Some 100 bytes each. */
const MAX_WAITING = 50_000;
/** Keys of published deletions that are remembered, the newest; some 100 bytes each. */
const MAX_DELETED = 50_000;
/**
 * Upper bound of remembered keys of records that were published as new, some 100 bytes each. Too small: a sweep may take a new record for
 * missing.
 */
const MAX_CREATED = 10_000;
/** Keys whose replaced images are remembered for `MAX_LAG_MS`, the newest; some 3 KB each. */
const MAX_REPLACED = 1_000;
/** Replaced images of one key. */
const MAX_IMAGES = 4;

/**
 * Keeps a read replica that lags, or a cache, from setting a record back: a record that goes back is published only when a request that was
 * sent `MAX_LAG_MS` or more after it was first seen so shows the same, and no answer in between has shown the published image.
 *
 * A record goes back if its `updated_at` is earlier than that of the published image, or, after a deletion, not later than that of the
 * deleted one. Where `updated_at` is equal or missing, it goes back if it equals an image that was replaced less than `MAX_LAG_MS` before
 * the answer was made, or if the answer is older than that (`isStale`).
 *
 * The records that an earlier process replaced or deleted are not known. So until `MAX_LAG_MS` after the start each such state with an
 * equal or missing `updated_at` counts as going back, unless the difference is of hidden fields alone. For the same time, once the initial
 * snapshot is done, so does a record without an image, as it may have been deleted, unless its `updated_at` is later than those of all
 * published records.
 *
 * All of it is in memory, for as long as a process has the task, and bounded. A sighting that finds no room is held back as well, so the
 * published image stays.
 */
export class Confirmations {
  readonly #now: () => number;
  readonly #maxWaiting: number;
  readonly #startedAt: number;
  readonly #inherited: Inherited;
  readonly #waiting = new Map<string, Waiting>();
  /**
   * `updated_at` of deleted records by key, the oldest deletion first. An entry stays when its record is published again, because that
   * event may not be committed.
   */
  readonly #deleted = new Map<string, number | null>();
  /** Local time at which a record was published as new, in ms, by key; the oldest first. */
  readonly #created = new Map<string, number>();
  /** Images that were replaced by others with no later `updated_at`, the newest first. */
  readonly #replaced = new Map<string, readonly Replaced[]>();

  constructor(options: ConfirmationsOptions) {
    const { now, inherited = NOTHING } = options;
    const { maxWaiting = MAX_WAITING } = options;
    this.#now = now;
    this.#startedAt = now();
    this.#inherited = inherited;
    this.#maxWaiting = maxWaiting;
  }

  /** Whether any record waits to be confirmed. */
  get isAnyWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether a record waits for the read that confirms an earlier state of it. */
  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** When a record has to be read again, local ms; undefined if it may be published as it is. */
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

  /** An answer showed the published image: what differed from it before is not confirmed by later sightings alone. */
  agreed(key: string, { asOf }: AnswerAge): void {
    const first = this.#waiting.get(key);
    if (first && asOf >= first.since) this.#waiting.delete(key);
  }

  /** A record is published; `replaced` is the image before it, unless its `updated_at` was earlier. */
  published(key: string, replaced: ReplacedImage | undefined): void {
    if (!replaced && this.#replaced.size === 0) return;
    const now = this.#now();
    for (const [other, [newest]] of this.#replaced) {
      if (now - newest!.at < MAX_LAG_MS && this.#replaced.size <= MAX_REPLACED) break;
      this.#replaced.delete(other);
    }
    if (!replaced) return;
    const earlier = (this.#replaced.get(key) ?? []).filter(({ at }) => now - at < MAX_LAG_MS);
    this.#replaced.delete(key); // it becomes the last
    this.#replaced.set(key, [{ image: replaced, at: now }, ...earlier].slice(0, MAX_IMAGES));
  }

  /** Records that a record is published as new. */
  created(key: string): void {
    this.#created.delete(key);
    this.#created.set(key, this.#now());
    dropOldest(this.#created, MAX_CREATED);
  }

  /** Keys of records that were published as new since a local time, in ms; those published before are forgotten. */
  createdSince(time: number): readonly string[] {
    for (const [oldest, at] of this.#created) {
      if (at >= time) break;
      this.#created.delete(oldest);
    }
    return [...this.#created.keys()];
  }

  /** A deletion is published. */
  deleted(key: string, updatedAt: number | null): void {
    this.#created.delete(key);
    this.#waiting.delete(key);
    this.#replaced.delete(key);
    this.#deleted.delete(key);
    this.#deleted.set(key, updatedAt);
    dropOldest(this.#deleted, MAX_DELETED);
  }

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

/** Removes the entry that was inserted first if there are more than `most`. */
function dropOldest(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  const [oldest] = map.keys();
  map.delete(oldest!);
}
