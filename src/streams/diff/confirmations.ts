// Holds back records that return to an earlier state until a second read confirms that state.

import { isStale, MAX_LAG_MS } from '../http/response-age.ts';
import type { AnswerAge } from '../http/response-age.ts';
import type { ImageCodec } from '../records/page-record.ts';

/** The image of a record's earlier published content. */
export interface ReplacedImage {
  readonly bytes: Buffer;
  /** The codec that encoded it; the schema may have gained fields since. */
  readonly codec: ImageCodec;
}

/** A record that differs from its published image, or has none. */
export interface Sighting {
  readonly key: string;
  /** The record's `updated_at` in epoch ms; null if it has none. */
  readonly updatedAt: number | null;
  /** Age of the response. */
  readonly age: AnswerAge;
  /** `updated_at` of the published image in epoch ms, null if that has none; undefined if no image is published. */
  readonly published: number | null | undefined;
  /** Whether the record equals a replaced image. */
  readonly equals: (image: ReplacedImage) => boolean;
  /** Whether the record differs only because other personal fields are hidden since a restart. */
  readonly isHiddenAnew: () => boolean;
}

/** A record to be confirmed by a second read. */
export interface Unconfirmed {
  readonly key: string;
  /** Local time, in epoch ms, from which on a read can confirm it. */
  readonly from: number;
}

/** Options of {@link Confirmations}. */
export interface ConfirmationsOptions {
  /** Returns the local time, in epoch ms. */
  readonly now: () => number;
  /**
   * Kinds of events that an earlier process may have published shortly before. `newestStamp`: newest `created_at` or `updated_at` of any
   * published record, in epoch ms. Default: none.
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

interface Waiting {
  /** Local time of the first read, in epoch ms. */
  readonly since: number;
  readonly updatedAt: number | null;
}

/** A replaced image, and when it was replaced in epoch ms. */
interface Replaced {
  readonly image: ReplacedImage;
  readonly at: number;
}

const NOTHING: Inherited = { updates: false, deletions: false, newestStamp: undefined };
/** About 100 bytes each. Further records are not published until there is space. */
const MAX_WAITING = 50_000;
/** Maximum number of deleted keys, about 100 bytes each. Too small: a lagging replica may bring back deleted records. */
const MAX_DELETED = 50_000;
/** Maximum number of new keys, about 100 bytes each. Too small: a sweep may consider a new record missing. */
const MAX_CREATED = 10_000;
/** Maximum number of keys with replaced images, about 3 KB each. Too small: a lagging replica may revert the records of further keys. */
const MAX_REPLACED = 1_000;
/** Maximum number of replaced images per key. */
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
   * `updated_at` of deleted records by key, the oldest deletion first. An entry stays when its record is published again, because that
   * event may not be committed.
   */
  readonly #deleted = new Map<string, number | null>();
  /** Local time when a record was published as new, by key; the oldest first. */
  readonly #created = new Map<string, number>();
  /** Images, by key, that others without a later `updated_at` replaced; the newest first. */
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

  /** Returns when the record has to be read again, in epoch ms; undefined if it may be published. */
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

  /** Records that a response showed the published image: a record that waits for a second read starts over if it differs again. */
  agreed(key: string, { asOf }: AnswerAge): void {
    const first = this.#waiting.get(key);
    if (first && asOf >= first.since) this.#waiting.delete(key);
  }

  /** Records the image that a published record has replaced; undefined if there was none, or if its `updated_at` was earlier. */
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

  /** Records that a key is published as new, with the local time. */
  created(key: string): void {
    this.#created.delete(key);
    this.#created.set(key, this.#now());
    dropOldest(this.#created, MAX_CREATED);
  }

  /** Returns the keys published as new since a local time in epoch ms, and forgets earlier ones. */
  createdSince(time: number): readonly string[] {
    for (const [oldest, at] of this.#created) {
      if (at >= time) break;
      this.#created.delete(oldest);
    }
    return [...this.#created.keys()];
  }

  /** Records a published deletion; `updatedAt` is that of the deleted record. */
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

function dropOldest(map: Map<string, unknown>, most: number): void {
  if (map.size <= most) return;
  const [oldest] = map.keys();
  map.delete(oldest!);
}
