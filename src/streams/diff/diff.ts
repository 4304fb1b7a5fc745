import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { canonicalJson, parseJson } from '../../schemas/json/json.ts';
import type { JsonObject } from '../../schemas/json/json.ts';
import type { Change } from './change.ts';
import { changedPaths } from './changed-paths.ts';
import type { ImageCodec } from '../records/image-codec.ts';
import type { Identities } from './identity.ts';
import type { NewestReads, Verdict } from './newest.ts';
import type { Span } from '../http/logical-clock.ts';
import type { KeyedRecord } from '../records/page-record.ts';
import type { PageRun } from '../records/page-run.ts';
import type { VolatileFields } from '../records/volatile-fields.ts';

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
  const { isNew = () => true, newest, identities, volatile } = options;
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
    const unchanged: KeyedRecord[] = [];
    const refreshed = new Map<string, Buffer>();
    const { runs = [] } = read;
    const inRuns = runs.reduce((sum, { size }) => sum + size, 0);
    if (read.span && inRuns > 0) {
      newest?.sawAll(() => runs.flatMap(({ run }) => run.members), read.span);
    }
    const isRefreshed = (before: Buffer | undefined, after: Buffer): boolean =>
      volatile !== undefined &&
      before !== undefined &&
      volatile.isSame(decode(before), decode(after));

    for (const each of read.records) {
      const { key, image } = each;
      if (image?.kind === 'published' && !page.has(key)) {
        unchanged.push(each);
        if (read.span) newest?.saw(key, read.span, each.updatedAt, true);
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
      } else {
        const verdict = judge(key, read.span, updatedAt);
        if (verdict === 'undecided') undecided.push(key);
        if (verdict !== 'newer') continue;
      }
      if (read.span) newest?.saw(key, read.span, updatedAt, same);
      if (same) continue;

      page.set(key, after);
      const op = before ? 'u' : isNew(each) ? 'c' : 'r';
      const pair = { before: before ?? null, after };
      changes.push(new DecodedChange({ key, op, images: pair, updatedAt }, decode, identities));
    }
    for (const key of read.gone ?? []) {
      const before = images.get(key);
      if (!before) continue;
      const verdict = judge(key, read.span, null);
      if (verdict === 'undecided') undecided.push(key);
      if (verdict !== 'newer') continue;
      if (read.span) newest?.saw(key, read.span, null, false);
      // When it was deleted the API does not say.
      const change = { key, op: 'd', images: { before, after: null }, updatedAt: null } as const;
      changes.push(new DecodedChange(change, decode));
      kept.delete(key);
    }
    if (images === kept) for (const [key, image] of page) kept.set(key, image);
    return {
      ...{ read, changes, refreshed, undecided },
      unchanged: unchanged.length + inRuns,
      same: unchanged,
    };
  });
}

/**
 * A change by its images, decoded when somebody looks into them: nobody does for most of an initial snapshot.
 * Both sides go through the codec: what it holds to be equal is no difference between them, and a time
 * that tells two elements apart is the same text on both.
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
