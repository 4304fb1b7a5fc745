import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { instantOf } from '../../schemas/avro/instant.ts';
import { canonicalJson, parseJson } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import { isStale } from '../http/answer-age.ts';
import type { AnswerAge } from '../http/answer-age.ts';
import type { Span } from '../http/logical-clock.ts';
import type { ImageCodec, KeyedRecord } from '../records/page-record.ts';
import type { PageRun } from '../records/page-records.ts';
import type { VolatileFields } from '../records/volatile-fields.ts';
import type { Change } from './change.ts';
import { changedPaths } from './changed-paths.ts';
import type { Identities } from './changed-paths.ts';
import type { Confirmations, ReplacedImage, Unconfirmed } from './confirmations.ts';
import type { NewestReads, Verdict } from './newest.ts';

/** The last published image of each record. */
export interface Images {
  /** The last image of a key; undefined when there is none. */
  get(key: string): Buffer | undefined;
}

/** Records of one page, and when they were read. */
export interface ReadRecords {
  readonly records: readonly KeyedRecord[];
  /** Others, which are as their images say, and of whose keys none is in `records`. Default none. */
  readonly runs?: readonly PageRun[];
  /** Keys that the read showed to be gone. */
  readonly gone?: readonly string[];
  /** Leave it out where reads never overlap. */
  readonly span?: Span;
  /** Needed for {@link DiffOptions.confirmations}; without it the read counts as one that is never behind. */
  readonly age?: AnswerAge | undefined;
}

/** What a page of records brought. */
export interface Difference<In extends ReadRecords> {
  readonly read: In;
  readonly changes: readonly Change[];
  readonly unchanged: number;
  /** The records that have not changed, those in runs aside. */
  readonly same: readonly KeyedRecord[];
  /** Of those whose volatile fields alone have: the images that they would have now, by key. */
  readonly refreshed: ReadonlyMap<string, Buffer>;
  /** Keys whose newest content can't be told: to be read again. */
  readonly undecided: readonly string[];
  /** Records that go back to an earlier state, and are held back until a later read shows the same. */
  readonly unconfirmed: readonly Unconfirmed[];
}

/** What {@link diff} compares by; all of it optional. */
export interface DiffOptions {
  /** Default: canonical JSON. */
  readonly codec?: ImageCodec;
  /**
   * Where last images are found. Whoever gives it keeps it up to date, before the next page comes.
   * Default: a map of its own, in memory, one image a key.
   */
  readonly images?: Images;
  /** Whether a record without an image is new (`c`) or read for the first time (`r`). Default `c`. */
  readonly isNew?: (record: KeyedRecord) => boolean;
  /** Needed where reads overlap: keeps an older answer from overwriting a newer one. */
  readonly newest?: NewestReads;
  /** Needed where an answer may be behind an earlier one: a lagging replica, or a cache. */
  readonly confirmations?: Confirmations;
  /**
   * Hides personal fields of a published record; needed with `confirmations` where others may be hidden after a restart. Default none is
   * hidden.
   */
  readonly hideStored?: ((record: JsonObject) => JsonObject) | undefined;
  readonly identities?: Identities;
  /** Fields whose change alone is none. Default none. */
  readonly volatile?: VolatileFields | undefined;
}

/**
 * From records to changes, a page at a time: each record is encoded and held against the bytes last
 * published under its key. Equal bytes are no change. Within a page a later record of a key is held
 * against the earlier one. A key that is gone is a deletion (`d`) if it has an image.
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
  const { isNew = () => true, newest, confirmations, hideStored, identities, volatile } = options;
  const kept = new Map<string, Buffer>();
  const images = options.images ?? kept;

  /** Whether a read says something newer of a key than is known. */
  const judge = (key: string, span: Span | undefined, updatedAt: number | null): Verdict =>
    span && newest ? newest.judge(key, span, updatedAt) : 'newer';

  return map((read) => {
    const { codec = jsonCodec } = options; // a getter may give each page the one of its time
    const decode = (bytes: Buffer) => codec.decode(bytes);
    const page = new Map<string, Buffer>(); // images that this very page has changed
    const changes: Change[] = [];
    const undecided: string[] = [];
    const unconfirmed: Unconfirmed[] = [];
    const unchanged: KeyedRecord[] = [];
    const refreshed = new Map<string, Buffer>();
    const { runs = [] } = read;
    const inRuns = runs.reduce((sum, { size }) => sum + size, 0);
    const { age } = read;
    // A stale answer was made before its request: it does not show that the content was still there by then.
    const span = isStale(age) ? undefined : read.span;
    if (span && inRuns > 0) newest?.sawAll(() => runs.flatMap(({ run }) => run.members), span);
    const waiting = age && confirmations?.isAnyWaiting ? confirmations : undefined;
    if (waiting && inRuns > 0) {
      for (const { run } of runs) for (const { key } of run.members) waiting.agreed(key, age!);
    }
    const isRefreshed = (before: Buffer | undefined, after: Buffer): boolean =>
      volatile !== undefined &&
      before !== undefined &&
      volatile.isSame(decode(before), decode(after));

    for (const each of read.records) {
      const { key, image } = each;
      if (image?.kind === 'published' && !page.has(key)) {
        unchanged.push(each);
        if (span) newest?.saw(key, span, each.updatedAt, true);
        waiting?.agreed(key, age!);
        continue;
      }
      const after = image?.kind === 'encoded' ? image.bytes : codec.encode(each.json);
      const before = page.get(key) ?? images.get(key);
      const { updatedAt } = each;
      const isEqual = before?.equals(after) ?? false;
      const same = isEqual || isRefreshed(before, after);
      if (same) {
        unchanged.push(each);
        if (!isEqual) refreshed.set(key, after);
        waiting?.agreed(key, age!);
      } else {
        const verdict = judge(key, read.span, updatedAt);
        if (verdict === 'undecided') undecided.push(key);
        if (verdict !== 'newer') continue;
      }
      if (same) {
        if (span) newest?.saw(key, span, updatedAt, true);
        continue;
      }
      const op = before ? 'u' : isNew(each) ? 'c' : 'r';
      const pair = { before: before ?? null, after };
      const change = new DecodedChange({ key, op, images: pair, updatedAt }, decode, identities);
      if (confirmations && age) {
        const published = change.before ? instantOf(change.before, 'updated_at') : undefined;
        const isAsRead = (bytes: Buffer) => bytes.equals(after) || isRefreshed(bytes, after);
        const equals = ({ bytes, codec: written }: ReplacedImage) =>
          isAsRead(written === codec ? bytes : codec.encode(written.decode(bytes)));
        const isHiddenAnew = () => {
          const hidden = hideStored && change.before && hideStored(change.before);
          return !!hidden && hidden !== change.before && isAsRead(codec.encode(hidden));
        };
        const from = confirmations.confirmableFrom({
          ...{ key, updatedAt, age, published, equals, isHiddenAnew },
        });
        if (from !== undefined) {
          unconfirmed.push({ key, from });
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
    for (const key of read.gone ?? []) {
      const before = images.get(key);
      if (!before) continue;
      const verdict = judge(key, read.span, null);
      if (verdict === 'undecided') undecided.push(key);
      if (verdict !== 'newer') continue;
      if (span) newest?.saw(key, span, null, false);
      // When it was deleted the API does not say.
      const facts = { key, op: 'd', images: { before, after: null }, updatedAt: null } as const;
      const change = new DecodedChange(facts, decode);
      confirmations?.deleted(key, instantOf(change.before!, 'updated_at'));
      changes.push(change);
      kept.delete(key);
    }
    if (images === kept) for (const [key, image] of page) kept.set(key, image);
    return {
      ...{ read, changes, refreshed, undecided, unconfirmed },
      unchanged: unchanged.length + inRuns,
      same: unchanged,
    };
  });
}

/**
 * A change by its images, decoded when somebody looks into them: nobody does for most of an initial snapshot. Both sides go through the
 * codec: what it holds to be equal is no difference between them, and a time that tells two elements apart is the same text on both.
 */
export class DecodedChange implements Change {
  readonly key: string;
  readonly op: Change['op'];
  readonly images: Change['images'];
  readonly updatedAt: number | null;
  readonly #decode: ImageCodec['decode'];
  readonly #identities: Identities | undefined;
  #before: JsonObject | null | undefined;
  #after: JsonObject | null | undefined;
  #changed: readonly string[] | undefined;

  constructor(
    { key, op, images, updatedAt }: Pick<Change, 'key' | 'op' | 'images' | 'updatedAt'>,
    decode: ImageCodec['decode'],
    identities?: Identities,
  ) {
    this.key = key;
    this.op = op;
    this.images = images;
    this.updatedAt = updatedAt;
    this.#decode = decode;
    this.#identities = identities;
  }

  get before(): JsonObject | null {
    return (this.#before ??= this.images.before && this.#decode(this.images.before));
  }

  get after(): JsonObject | null {
    return (this.#after ??= this.images.after && this.#decode(this.images.after));
  }

  get changed(): readonly string[] {
    return (this.#changed ??=
      this.op === 'u' ? changedPaths(this.before!, this.after!, this.#identities) : NO_PATHS);
  }

  /** All of it, for `JSON.stringify`. */
  toJSON(): Change {
    const { key, op, before, after, images, changed, updatedAt } = this;
    return { key, op, before, after, images, changed, updatedAt };
  }
}

const NO_PATHS: readonly string[] = [];

const jsonCodec: ImageCodec = {
  encode: (record) => Buffer.from(canonicalJson(record)),
  decode: (bytes) => parseJson(bytes.toString('utf8')) as JsonObject,
};
