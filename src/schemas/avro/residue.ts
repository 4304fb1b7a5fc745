// What typed fields can't say of a record: nulls, exact values and unknown members, by the place where they stand.

import { canonicalJson, pointerStep } from '../json/json.ts';
import type { JsonValue } from '../json/json.ts';
import { speaksForAny } from './shape.ts';
import { AvroOutput } from './avro-output.ts';

/** What is met in a record that its typed fields can't say, by JSON Pointer; and how far its writing is. */
export class Residue {
  /** Where the API sent null. */
  readonly nulls: Place[] = [];
  /** Exact values, as JSON text; undefined as long as there are none. */
  unmapped: Map<string, string> | undefined;
  /** Whether a member was met that has no field, and that one could be made of. */
  hasUnknown = false;
  /** The last step to what is being written: with its slash, or an index of an array. None leads to the record itself. */
  step: string | number = '';
  /** What it leads from: undefined for the record itself. */
  #whole: Place | undefined;
  /** The place of the record. */
  readonly record: Place;

  constructor(record: Place) {
    this.record = record;
  }

  /** The steps from here on are those of parts of what is being written. */
  enter(): void {
    this.#whole = this.#place();
  }

  /** What has parts is written. */
  leave(): void {
    const { step, whole } = this.#whole!;
    this.step = step;
    this.#whole = whole;
  }

  /** What is written next is a part of this, by that step. */
  goTo(whole: Place, step: string | number): void {
    this.#whole = whole;
    this.step = step;
  }

  /** Where the writing is. */
  #place(): Place {
    return this.#whole?.part(this.step) ?? this.record;
  }

  noteNull(): void {
    this.nulls.push(this.#place());
  }

  /** That the value which is being written can only be told as it came. */
  noteValue(value: JsonValue): void {
    this.unmapped ??= new Map();
    this.unmapped.set(this.#place().pointer, canonicalJson(value));
  }

  /** Keeps a member of what was {@link enter entered} that has no field. */
  noteUnknown(key: string, item: JsonValue): void {
    this.hasUnknown ||= speaksForAny(item);
    this.step = pointerStep(key);
    if (item === null) this.noteNull();
    else this.noteValue(item);
  }
}

/** A place in the records of a list, by the steps that lead there: it is made once, and found again by them. */
export class Place {
  /** What it is a part of, and the step that leads here: with its slash, or an index of an array. */
  readonly whole: Place | undefined;
  readonly step: string | number;
  /** A JSON Pointer. */
  readonly pointer: string;
  readonly #parts = new Map<string | number, Place>();
  readonly #onMade: () => void;
  #bytes: Buffer | undefined;
  /** Among those that were null, by their pointers; -1 before it was. */
  rank = -1;

  constructor(whole: Place | undefined, step: string | number, onMade: () => void) {
    this.whole = whole;
    this.step = step;
    this.pointer = (whole?.pointer ?? '') + (typeof step === 'number' ? `/${step}` : step);
    this.#onMade = onMade;
    onMade();
  }

  part(step: string | number): Place {
    let part = this.#parts.get(step);
    if (!part) {
      part = new Place(this, step, this.#onMade);
      this.#parts.set(step, part);
    }
    return part;
  }

  /** Its pointer, as Avro writes a string. */
  get bytes(): Buffer {
    if (!this.#bytes) {
      const out = new AvroOutput();
      out.string(this.pointer);
      this.#bytes = out.take();
    }
    return this.#bytes;
  }
}

/** Of one schema, some 300 bytes each: each element of an array that has parts, or is null, is one. */
const MAX_PLACES = 5_000;

/**
 * The places in records of one schema: what has parts, and what was noted. Records of a list have nulls in the same places, so these
 * are kept with their order, and as bytes.
 */
export class Places {
  #count = 0;
  #root = this.#newRoot();
  /** Those that were null. */
  #ranked: Place[] = [];

  /** The record itself. To be asked for with each record. */
  get root(): Place {
    if (this.#count > MAX_PLACES) {
      this.#count = 0;
      this.#root = this.#newRoot();
      this.#ranked = [];
    }
    return this.#root;
  }

  /** Writes the array `nulls`, which is sorted by pointers. */
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

/** Of more the way below takes long. */
const MAX_FEW = 64;

/** Mostly they are a few: `sort` would make arrays of its own for each record. */
function sortByRank(places: Place[]): void {
  if (places.length > MAX_FEW) {
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
