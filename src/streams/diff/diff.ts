// Compares records with the published images, and emits the changes.

import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { canonicalJson, parseJson } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { isStale } from '../http/response-age.ts';
import type { AnswerAge } from '../http/response-age.ts';
import type { Span } from '../http/logical-clock.ts';
import type { ImageCodec, KeyedRecord, PageRun } from '../records/page-record.ts';
import type { Stamps } from '../records/stamps.ts';
import type { VolatileFields } from '../records/volatile-fields.ts';
import type { Change } from './change.ts';
import { changedPaths } from './changed-paths.ts';
import type { Identities } from './changed-paths.ts';
import type { Confirmations, ReplacedImage, Unconfirmed } from './confirmations.ts';
import type { NewestReads } from './newest.ts';

/** The last published image of each record. */
export interface Images {
  /** Returns the last published image of a key; undefined if there is none. */
  get(key: string): Buffer | undefined;
}

/** The records of one response, as input of {@link diff}. */
export interface ReadRecords {
  /** Records of the response, without those in `runs`. */
  readonly records: readonly KeyedRecord[];
  /** Runs of unchanged records that were recognized by their bytes. None of their keys is in `records`. Default: no runs. */
  readonly runs?: readonly PageRun[];
  /** Keys whose records, as the read has proved, do not exist any more. Default: no keys. */
  readonly gone?: readonly string[];
  /** Records that the API shows as deleted. None of their keys is in `records` or `runs`. Default: no records. */
  readonly tombstones?: readonly KeyedRecord[];
  /**
   * Begin and end of the read, as numbers of the list's logical clock, by which overlapping reads are recognized. Without it the read
   * counts as newer than all reads before it.
   */
  readonly span?: Span;
  /**
   * Age of the response. Without it, changes are emitted at once: no record is held back until a second read confirms its content (see
   * {@link DiffOptions.confirmations}).
   */
  readonly age?: AnswerAge | undefined;
}

/** Result of comparing the records of a read with the published images. */
export interface Difference<In extends ReadRecords> {
  readonly read: In;
  /** Changes, in the order in which the read has their records; deletions come last. */
  readonly changes: readonly Change[];
  /**
   * Number of records that equal their images apart from volatile fields. Includes all records in runs (adjacent records that were
   * recognized together by their bytes).
   */
  readonly unchanged: number;
  /** The unchanged records, except those in runs (adjacent records that were recognized together by their bytes). */
  readonly same: readonly KeyedRecord[];
  /** New images, by key, of records in which only volatile fields have changed. */
  readonly refreshed: ReadonlyMap<string, Buffer>;
  /** Keys that have to be read again, because overlapping reads showed different content. */
  readonly undecided: readonly string[];
  /** Records that return to an earlier state and have to be confirmed by a second read. */
  readonly unconfirmed: readonly Unconfirmed[];
}

/** Options of {@link diff}. */
export interface DiffOptions {
  /** Encodes records into images. Default: canonical JSON. */
  readonly codec?: ImageCodec;
  /**
   * Store of published images. The caller must add the changes of a page to it before the next page is compared. Default: a map in memory
   * with one image per key, which `diff` updates itself.
   */
  readonly images?: Images;
  /**
   * Returns whether a record without an image was created (operation `c`). If false, the record is read in an initial snapshot (operation
   * `r`). Default: always true.
   */
  readonly isNew?: (record: KeyedRecord) => boolean;
  /**
   * Decides which of two overlapping reads is newer, so that an older response does not overwrite a newer one. Needed if reads overlap.
   */
  readonly newest?: NewestReads;
  /** Holds back records that return to an earlier state. Needed if responses may come from a lagging replica or a cache. */
  readonly confirmations?: Confirmations;
  /**
   * Hides the personal fields in a published record as the current settings require. With this function, `confirmations` does not hold back
   * a record that differs from the published one only because more fields are hidden. Needed if those settings can change at a restart.
   */
  readonly hideStored?: ((record: JsonObject) => JsonObject) | undefined;
  /** Reads the modification times of published records. Needed with `confirmations`. Default: they are unknown. */
  readonly stamps?: Stamps | undefined;
  /** Identity fields of arrays, used to compute {@link Change.changed}. Default: elements of arrays are compared by index. */
  readonly identities?: Identities | undefined;
  /** Volatile fields: a record that differs only in these is unchanged. Default: none. */
  readonly volatile?: VolatileFields | undefined;
}

/**
 * Turns records into changes, one page at a time. Each record is encoded and compared with its image, which is the record in encoded form
 * as last published under the same key. If the bytes are equal, there is no change. If a key occurs repeatedly in a page, each occurrence
 * is compared with the one before it. For a key that the read showed to be absent, the change is a deletion (`d`) if the key has an image.
 *
 * @example
 * ```ts
 * import { diff, keyOfFields, keyRecords } from 'cellarstream/streams';
 * import { from, map, mergeMap } from 'rxjs';
 *
 * const keyOf = keyOfFields(['sku']);
 * const readings = [
 *   [{ sku: 'merlot', stock: 12 }],
 *   [{ sku: 'merlot', stock: 11 }, { sku: 'syrah', stock: 6 }],
 * ];
 * from(readings)
 *   .pipe(
 *     map((records) => ({ records: keyRecords(records, keyOf).keyed })),
 *     diff(),
 *     mergeMap(({ changes }) => changes),
 *   )
 *   .subscribe(({ op, key, changed }) => console.log(op, key, ...changed));
 * // c merlot, then u merlot stock, then c syrah
 * ```
 */
export function diff<In extends ReadRecords>(
  options: DiffOptions = {},
): OperatorFunction<In, Difference<In>> {
  const { isNew = () => true, newest, confirmations, hideStored, volatile } = options;
  const { stamps, identities } = options;
  const memoryImages = new Map<string, Buffer>();
  const images = options.images ?? memoryImages;

  return map((read) => {
    const { codec = jsonCodec } = options; // read for each page: may be a getter, as the codec changes with the schema
    const decode = (bytes: Buffer) => codec.decode(bytes);
    const decoding = { decode, stamps, identities };
    const page = new Map<string, Buffer>(); // images changed by this page, by key
    const changes: Change[] = [];
    const undecided: string[] = [];
    const unconfirmed: Unconfirmed[] = [];
    const unchanged: KeyedRecord[] = [];
    const refreshed = new Map<string, Buffer>();
    const { runs = [], age } = read;
    const inRuns = runs.reduce((sum, { size }) => sum + size, 0);
    // A stale response was produced before its request, so it does not show that the content was still the same during the read.
    const span = isStale(age) ? undefined : read.span;
    if (span && inRuns > 0) newest?.sawAll(() => runs.flatMap(({ run }) => run.members), span);
    const waiting = age && confirmations?.isAnyWaiting ? confirmations : undefined;
    if (waiting) {
      for (const { run } of runs) for (const { key } of run.members) waiting.agreed(key, age!);
    }
    const isRefreshed = (before: Buffer, after: Buffer): boolean =>
      volatile?.isSame(decode(before), decode(after)) === true;
    const isNewer = (key: string, updatedAt: number | null): boolean => {
      if (!read.span || !newest) return true;
      const verdict = newest.judge(key, read.span, updatedAt);
      if (verdict === 'undecided') undecided.push(key);
      return verdict === 'newer';
    };
    const staysSame = (record: KeyedRecord) => {
      unchanged.push(record);
      if (span) newest?.saw(record.key, span, record.updatedAt, true);
      waiting?.agreed(record.key, age!);
    };

    for (const each of read.records) {
      const { key, image } = each;
      if (image?.kind === 'published' && !page.has(key)) {
        staysSame(each);
        continue;
      }
      const after = image?.kind === 'encoded' ? image.bytes : codec.encode(each.json);
      const before = page.get(key) ?? images.get(key);
      const { updatedAt } = each;
      const isEqual = before?.equals(after) ?? false;
      if (isEqual || (before && isRefreshed(before, after))) {
        if (!isEqual) refreshed.set(key, after);
        staysSame(each);
        continue;
      }
      if (!isNewer(key, updatedAt)) continue;
      const op = before ? 'u' : isNew(each) ? 'c' : 'r';
      const pair = { before: before ?? null, after };
      const change = new DecodedChange({ key, op, images: pair, updatedAt }, decoding);
      if (confirmations && age) {
        const published = before ? change.updatedBefore : undefined;
        const isAsRead = (bytes: Buffer) => bytes.equals(after) || isRefreshed(bytes, after);
        const equals = ({ bytes, codec: written }: ReplacedImage) =>
          isAsRead(written === codec ? bytes : codec.encode(written.decode(bytes)));
        const isHiddenAnew = () => {
          const hidden = hideStored && change.before && hideStored(change.before);
          return !!hidden && hidden !== change.before && isAsRead(codec.encode(hidden));
        };
        const sighting = { key, updatedAt, age, published, equals, isHiddenAnew };
        const heldBack = confirmations.unconfirmed(sighting);
        if (heldBack) {
          unconfirmed.push(heldBack);
          continue;
        }
        const isLater =
          typeof published === 'number' && updatedAt !== null && updatedAt > published;
        if (op === 'c') confirmations.created(key);
        confirmations.published(key, isLater || !before ? undefined : { bytes: before, codec });
      }
      if (span) newest?.saw(key, span, updatedAt, false);
      page.set(key, after);
      changes.push(change);
    }
    const absent = (read.gone ?? []).map((key) => ({ key, updatedAt: null }));
    // A cached response may show as deleted a record that has come back since.
    const tombstones = isStale(age) ? [] : (read.tombstones ?? []);
    for (const { key, updatedAt } of tombstones) {
      if (span && !images.get(key)) newest?.saw(key, span, updatedAt, true);
    }
    for (const { key, updatedAt } of [...absent, ...tombstones]) {
      const before = images.get(key);
      if (!before) continue;
      if (!isNewer(key, updatedAt)) continue;
      // `updatedAt` is null because the API does not return the time of a deletion.
      const facts = { key, op: 'd', images: { before, after: null }, updatedAt: null } as const;
      const change = new DecodedChange(facts, decoding);
      // A lagging replica, too, may show as deleted a record that has come back since.
      if (updatedAt !== null && updatedAt < (change.updatedBefore ?? -Infinity)) continue;
      if (span) newest?.saw(key, span, updatedAt, false);
      confirmations?.deleted(key, change.updatedBefore);
      changes.push(change);
      memoryImages.delete(key);
    }
    if (images === memoryImages) for (const [key, image] of page) memoryImages.set(key, image);
    return {
      ...{ read, changes, refreshed, undecided, unconfirmed },
      unchanged: unchanged.length + inRuns,
      same: unchanged,
    };
  });
}

/** How the images (encoded records) of a change are decoded and compared. */
interface DecodingOptions extends Pick<DiffOptions, 'stamps' | 'identities'> {
  readonly decode: ImageCodec['decode'];
}

/**
 * A change whose images (encoded records) are decoded when `before`, `after` or `changed` is accessed: most changes of an initial snapshot
 * are never looked at. Both images are decoded by the same codec. As a result, two values that the codec encodes in the same way do not
 * count as changed, and a time by which an array element is identified is written in the same way in `before` and `after`.
 */
export class DecodedChange implements Change {
  readonly key: string;
  readonly op: Change['op'];
  readonly images: Change['images'];
  readonly updatedAt: number | null;
  readonly #options: DecodingOptions;
  #before: JsonObject | null | undefined;
  #after: JsonObject | null | undefined;
  #changed: readonly string[] | undefined;

  constructor(
    { key, op, images, updatedAt }: Pick<Change, 'key' | 'op' | 'images' | 'updatedAt'>,
    options: DecodingOptions,
  ) {
    this.key = key;
    this.op = op;
    this.images = images;
    this.updatedAt = updatedAt;
    this.#options = options;
  }

  get before(): JsonObject | null {
    return (this.#before ??= this.images.before && this.#options.decode(this.images.before));
  }

  get after(): JsonObject | null {
    return (this.#after ??= this.images.after && this.#options.decode(this.images.after));
  }

  get updatedBefore(): number | null {
    return (this.before && this.#options.stamps?.updatedAt(this.before)) ?? null;
  }

  get changed(): readonly string[] {
    return (this.#changed ??=
      this.op === 'u' ? changedPaths(this.before!, this.after!, this.#options.identities) : []);
  }

  /** Returns the change as a plain object; called by `JSON.stringify`. */
  toJSON(): Change {
    const { key, op, before, after, images, changed, updatedAt } = this;
    return { key, op, before, after, images, changed, updatedAt };
  }
}

const jsonCodec: ImageCodec = {
  encode: (record) => Buffer.from(canonicalJson(record)),
  decode: (bytes) => parseJson(bytes.toString('utf8')) as JsonObject,
};
