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
  /** Begin and end of the read, as numbers of the list's logical clock. Without it, the read counts as newer than all reads before it. */
  readonly span?: Span;
  /** Age of the response. Without it, no record of the response has to wait for a second read ({@link DiffOptions.confirmations}). */
  readonly age?: AnswerAge | undefined;
}

/** Result of comparing the records of a read with the published images. */
export interface Difference<In extends ReadRecords> {
  readonly read: In;
  /** Changes, in the order of the read's records; deletions come last. */
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
  /** Keys that have to be read again: overlapping reads showed different content, and it is unknown which content is newer. */
  readonly undecided: readonly string[];
  /**
   * Records that are not published until a second read confirms them, because this read may show an earlier state than the published one.
   */
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
  /** Holds back records that return, or may return, to an earlier state. Needed if responses may come from a lagging replica or a cache. */
  readonly confirmations?: Confirmations;
  /**
   * Hides the personal fields in a published record as the current settings require. Lets `confirmations` recognize a change
   * that consists only of newly hidden fields.
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
 * Turns records into changes, one page at a time. Each record is compared with its image: the record in encoded form as last published
 * under the same key. If the bytes are equal, or only volatile fields differ, there is no change. A key that the read proved absent, or
 * whose record the API shows as deleted, gives a deletion (`d`) if it has an image.
 *
 * Two options keep back records that differ:
 *
 * - `newest`: a record that a newer read has shown is left out. If it is unknown which read is newer, the key is reported in `undecided`.
 * - `confirmations`: a record that may be in an earlier state than the published one is reported in `unconfirmed`.
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
  const memory = options.images ? undefined : new Map<string, Buffer>();
  return map((read) => {
    const page = new PageDiff(read, options, memory);
    page.addRuns();
    for (const record of read.records) page.addRecord(record);
    page.addDeletions();
    if (memory) for (const [key, image] of page.images) memory.set(key, image);
    const { changes, refreshed, undecided, unconfirmed, same } = page;
    const unchanged = same.length + page.inRuns;
    return { read, changes, refreshed, undecided, unconfirmed, unchanged, same };
  });
}

/** Compares the records of one response with the published images, and collects the result that {@link diff} emits. */
class PageDiff {
  readonly changes: Change[] = [];
  readonly same: KeyedRecord[] = [];
  readonly refreshed = new Map<string, Buffer>();
  readonly undecided: string[] = [];
  readonly unconfirmed: Unconfirmed[] = [];
  /**
   * New images, by key, of records that the response shows as new or changed. A later record of the response with the same key is compared
   * with the new image.
   */
  readonly images = new Map<string, Buffer>();
  /** Number of records in runs (adjacent records that were recognized together by their bytes). */
  readonly inRuns: number;
  readonly #read: ReadRecords;
  readonly #options: DiffOptions;
  /** Newest image of each key from earlier responses; undefined if the caller has a store of images. */
  readonly #memory: Map<string, Buffer> | undefined;
  readonly #published: Images;
  readonly #codec: ImageCodec;
  readonly #decoding: DecodingOptions;
  /**
   * Span under which `newest` remembers the records of this response. Undefined if the caller states none, or if the response is stale: its
   * content is then older than the read.
   */
  readonly #span: Span | undefined;
  /** The records that wait for a second read; undefined if there are none, or if the age of the response is unknown. */
  readonly #waiting: Confirmations | undefined;

  constructor(read: ReadRecords, options: DiffOptions, memory: Map<string, Buffer> | undefined) {
    const { codec = jsonCodec, stamps, identities, confirmations } = options; // read for each page: the codec changes with the schema
    const { runs = [], age, span } = read;
    this.#read = read;
    this.#options = options;
    this.#memory = memory;
    this.#published = options.images ?? memory!;
    this.#codec = codec;
    this.#decoding = { decode: (bytes) => codec.decode(bytes), stamps, identities };
    this.#span = isStale(age) ? undefined : span;
    this.#waiting = age && confirmations?.isAnyWaiting ? confirmations : undefined;
    this.inRuns = runs.reduce((sum, { size }) => sum + size, 0);
  }

  /** Passes on the keys of the response's runs, whose records all equal their images, to `newest` and `confirmations`. */
  addRuns(): void {
    const { runs = [], age } = this.#read;
    if (this.#span && this.inRuns > 0) {
      this.#options.newest?.sawAll(() => runs.flatMap(({ run }) => run.members), this.#span);
    }
    if (!this.#waiting) return;
    for (const { run } of runs) {
      for (const { key } of run.members) this.#waiting.agreed(key, age!);
    }
  }

  addRecord(record: KeyedRecord): void {
    const { key, image, updatedAt } = record;
    if (image?.kind === 'published' && !this.images.has(key)) return this.#addSame(record);
    const after = image?.kind === 'encoded' ? image.bytes : this.#codec.encode(record.json);
    const before = this.images.get(key) ?? this.#published.get(key);
    if (before?.equals(after)) return this.#addSame(record);
    if (before && this.#isRefreshed(before, after)) {
      this.refreshed.set(key, after);
      return this.#addSame(record);
    }
    if (!this.#isNewer(record)) return;
    const op = before ? 'u' : (this.#options.isNew?.(record) ?? true) ? 'c' : 'r';
    const images = { before: before ?? null, after };
    const change = new DecodedChange({ key, op, images, updatedAt }, this.#decoding);
    const heldBack = this.#confirm(change, before, after);
    if (heldBack) return void this.unconfirmed.push(heldBack);
    if (this.#span) this.#options.newest?.saw(key, this.#span, updatedAt, false);
    this.images.set(key, after);
    this.changes.push(change);
  }

  /** Adds deletions of records that have an image: those that the read has proved absent, and those that the API shows as deleted. */
  addDeletions(): void {
    const { newest, confirmations } = this.#options;
    const { gone = [], age } = this.#read;
    // A cached response may show as deleted a record that has come back since.
    const tombstones = isStale(age) ? [] : (this.#read.tombstones ?? []);
    for (const { key, updatedAt } of tombstones) {
      if (this.#span && !this.#published.get(key)) newest?.saw(key, this.#span, updatedAt, true);
    }
    const absent = gone.map((key) => ({ key, updatedAt: null }));
    for (const each of [...absent, ...tombstones]) {
      const { key, updatedAt } = each;
      const before = this.#published.get(key);
      if (!before || !this.#isNewer(each)) continue;
      // `updatedAt` is null because the API does not return the time of a deletion.
      const facts = { key, op: 'd', images: { before, after: null }, updatedAt: null } as const;
      const change = new DecodedChange(facts, this.#decoding);
      // A lagging replica, too, may show as deleted a record that has come back since.
      if (updatedAt !== null && updatedAt < (change.updatedBefore ?? -Infinity)) continue;
      if (this.#span) newest?.saw(key, this.#span, updatedAt, false);
      confirmations?.deleted(key, change.updatedBefore);
      this.changes.push(change);
      this.#memory?.delete(key);
    }
  }

  #addSame(record: KeyedRecord): void {
    const { key, updatedAt } = record;
    this.same.push(record);
    if (this.#span) this.#options.newest?.saw(key, this.#span, updatedAt, true);
    this.#waiting?.agreed(key, this.#read.age!);
  }

  /** Whether two different images differ only in volatile fields. */
  #isRefreshed(before: Buffer, after: Buffer): boolean {
    const { decode } = this.#decoding;
    return this.#options.volatile?.isSame(decode(before), decode(after)) === true;
  }

  /**
   * Whether this read is newer than the reads that showed the known content of the record. If that cannot be decided, returns false and
   * adds the key to `undecided`, as the record has to be read again.
   */
  #isNewer({ key, updatedAt }: Pick<KeyedRecord, 'key' | 'updatedAt'>): boolean {
    const { newest } = this.#options;
    if (!this.#read.span || !newest) return true;
    const verdict = newest.judge(key, this.#read.span, updatedAt);
    if (verdict === 'undecided') this.undecided.push(key);
    return verdict === 'newer';
  }

  /**
   * Decides whether a change may be published now. If so, returns undefined, and `confirmations` counts the change as published. Otherwise
   * returns the record with the time from which a second read can confirm it.
   */
  #confirm(change: Change, before: Buffer | undefined, after: Buffer): Unconfirmed | undefined {
    const { confirmations, hideStored } = this.#options;
    const { age } = this.#read;
    if (!confirmations || !age) return undefined;
    const codec = this.#codec;
    const { key, op, updatedAt } = change;
    const published = before ? change.updatedBefore : undefined;
    const isAsRead = (bytes: Buffer) => bytes.equals(after) || this.#isRefreshed(bytes, after);
    const equals = ({ bytes, codec: written }: ReplacedImage) =>
      isAsRead(written === codec ? bytes : codec.encode(written.decode(bytes)));
    const isHiddenAnew = () => {
      const hidden = hideStored && change.before && hideStored(change.before);
      return !!hidden && hidden !== change.before && isAsRead(codec.encode(hidden));
    };
    const sighting = { key, updatedAt, age, published, equals, isHiddenAnew };
    const heldBack = confirmations.unconfirmed(sighting);
    if (heldBack) return heldBack;
    const isLater = typeof published === 'number' && updatedAt !== null && updatedAt > published;
    if (op === 'c') confirmations.created(key);
    confirmations.published(key, isLater || !before ? undefined : { bytes: before, codec });
    return undefined;
  }
}

/** How the images (encoded records) of a change are decoded and compared. */
interface DecodingOptions extends Pick<DiffOptions, 'stamps' | 'identities'> {
  readonly decode: ImageCodec['decode'];
}

/**
 * A change whose images (encoded records) are decoded only when `before`, `after`, `updatedBefore` or `changed` is accessed: most changes
 * of an initial snapshot are never looked at. `after` is decoded from its image too, and not taken from the response, so that values which
 * the codec encodes alike do not count as changed.
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
    const { key, op, before, after, images, changed, updatedAt, updatedBefore } = this;
    return { key, op, before, after, images, changed, updatedAt, updatedBefore };
  }
}

const jsonCodec: ImageCodec = {
  encode: (record) => Buffer.from(canonicalJson(record)),
  decode: (bytes) => parseJson(bytes.toString('utf8')) as JsonObject,
};
