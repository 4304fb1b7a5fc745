import { canonicalJson, pointerStep, type JsonValue } from '../json/json.ts';
import { isTypable } from './shape.ts';
import { AvroOutput } from './avro-output.ts';

/**
 * Collects the values of one record that typed Avro fields can't represent, with the JSON Pointer of each. Tracks the path of the value
 * that is being encoded.
 */
export class EncodingResidue {
  /** Paths in the record at which the API sent null. */
  readonly nulls: Place[] = [];
  /** JSON texts, by JSON Pointer, of the values that no field of the schema can represent exactly; undefined if there are none. */
  unmapped: Map<string, string> | undefined;
  /**
   * Whether the record has a member that may need a new field: the schema has none for it, and its value may show a type. Null, for
   * example, shows no type.
   */
  hasUnknown = false;
  /** Last step of the path of the value that is being encoded: a JSON Pointer step with its slash, or an array index. */
  step: string | number = '';
  /** Path of the object or array whose member or item is being encoded; undefined while the record itself is encoded. */
  #parent: Place | undefined;
  readonly record: Place;

  constructor(record: Place) {
    this.record = record;
  }

  /** Moves the current path from an object or array down to its members or items; then set `step` for each. {@link leave} moves back up. */
  enter(): void {
    this.#parent = this.#place();
  }

  /** Undoes the last {@link enter}: moves the current path from a member or item back up to the object or array that contains it. */
  leave(): void {
    const { step, parent } = this.#parent!;
    this.step = step;
    this.#parent = parent;
  }

  goTo(parent: Place, step: string | number): void {
    this.#parent = parent;
    this.step = step;
  }

  #place(): Place {
    return this.#parent?.child(this.step) ?? this.record;
  }

  noteNull(): void {
    this.nulls.push(this.#place());
  }

  /** Adds a value to `unmapped` at the current path. */
  noteValue(value: JsonValue): void {
    this.unmapped ??= new Map();
    this.unmapped.set(this.#place().pointer, canonicalJson(value));
  }

  /**
   * Notes a member that has no field in the schema: the path in `nulls` if `item` is null, the value in `unmapped` if not. The parent of
   * the current path must be the object that contains the member.
   */
  noteUnknown(key: string, item: JsonValue): void {
    this.hasUnknown ||= isTypable(item);
    this.step = pointerStep(key);
    if (item === null) this.noteNull();
    else this.noteValue(item);
  }
}

/** Path to a value within the records of a list, such as `/items/0/price`. Records of a schema share one instance for each path. */
export class Place {
  /** Path of the object or array that contains the value at this path; undefined for the record itself. */
  readonly parent: Place | undefined;
  /** Step from `parent` to this path: a JSON Pointer step with its slash, or an array index. */
  readonly step: string | number;
  readonly pointer: string;
  readonly #parts = new Map<string | number, Place>();
  readonly #onMade: () => void;
  #bytes: Buffer | undefined;
  /** Index of this path in the sorted array of the cached paths at which any record had a null; -1 if no record had a null here. */
  rank = -1;

  constructor(parent: Place | undefined, step: string | number, onMade: () => void) {
    this.parent = parent;
    this.step = step;
    this.pointer = (parent?.pointer ?? '') + (typeof step === 'number' ? `/${step}` : step);
    this.#onMade = onMade;
    onMade();
  }

  child(step: string | number): Place {
    let part = this.#parts.get(step);
    if (!part) {
      part = new Place(this, step, this.#onMade);
      this.#parts.set(step, part);
    }
    return part;
  }

  /** The path as a JSON Pointer, in Avro's encoding of a string. */
  get bytes(): Buffer {
    if (!this.#bytes) {
      const out = new AvroOutput();
      out.string(this.pointer);
      this.#bytes = out.take();
    }
    return this.#bytes;
  }
}

/**
 * Maximum number of paths that are cached for a schema, some 300 bytes each. If there are more, the cache is cleared. If the limit is too
 * low, the paths into long arrays are created again for most records.
 */
const MAX_PLACES = 5_000;

/**
 * Cache of JSON Pointers to values in records of one schema, with the sort order and the Avro encoding of each. Images list the pointers to
 * nulls, which are the same in most records of a list.
 */
export class PathTree {
  #count = 0;
  #root = this.#newRoot();
  /** Paths at which any record had a null, sorted by JSON Pointer. The index of a path in this array is its `rank`. */
  #ranked: Place[] = [];

  /**
   * Path of a record as a whole (the empty JSON Pointer), from which the paths of its values are derived. Call this getter once at the
   * beginning of each record, as it may clear the cache.
   */
  get root(): Place {
    if (this.#count > MAX_PLACES) {
      this.#count = 0;
      this.#root = this.#newRoot();
      this.#ranked = [];
    }
    return this.#root;
  }

  /** Writes the image's array `nulls`: the JSON Pointers of the values that the API sent as null, sorted. */
  writeNulls(nulls: Place[], out: AvroOutput): void {
    if (nulls.some(({ rank }) => rank < 0)) this.#rank(nulls);
    sortByRank(nulls);
    out.block(nulls, ({ bytes }) => out.raw(bytes));
  }

  #rank(more: readonly Place[]): void {
    for (const place of more) if (place.rank < 0) this.#ranked.push(place);
    this.#ranked.sort((a, b) => (a.pointer < b.pointer ? -1 : 1));
    this.#ranked.forEach((place, rank) => (place.rank = rank));
  }

  #newRoot(): Place {
    return new Place(undefined, '', () => (this.#count += 1));
  }
}

/** Maximum number of paths that are sorted by insertion, which takes quadratic time. */
const MAX_INSERTION_SORT = 64;

/**
 * Sorts an array of paths in place by `rank`, their order as JSON Pointers. Short arrays are sorted by insertion, which allocates no
 * memory.
 */
function sortByRank(places: Place[]): void {
  if (places.length > MAX_INSERTION_SORT) {
    places.sort((a, b) => a.rank - b.rank);
    return;
  }
  for (let end = 1; end < places.length; end++) {
    const place = places[end]!;
    let at = end;
    for (; at > 0 && places[at - 1]!.rank > place.rank; at--) places[at] = places[at - 1]!;
    places[at] = place;
  }
}
