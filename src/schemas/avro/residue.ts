import { canonicalJson } from '../json/json.ts';
import type { JsonValue } from '../json/json.ts';
import { pointerStep } from '../json/pointer.ts';
import type { Place } from './places.ts';
import { speaksForAny } from './shape.ts';

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
