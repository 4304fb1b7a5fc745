import { canonicalJson } from '../json/json.ts';
import type { JsonValue } from '../json/json.ts';
import { pointerStep } from '../json/pointer.ts';
import { speaksForAny } from './shape.ts';

/** How much was noted. */
export interface Noted {
  readonly nulls: number;
  readonly unmapped: number;
  readonly hasUnknown: boolean;
}

/** What is met in a record that its typed fields can't say, by JSON Pointer; and how far its writing is. */
export class Residue {
  /** Where the API sent null. */
  readonly nulls: string[] = [];
  /** Exact values, as JSON text. */
  readonly unmapped = new Map<string, string>();
  /** Whether a member was met that has no field, and that one could be made of. */
  hasUnknown = false;
  /** Of what is being written: steps with their slash, indices of arrays as numbers. */
  readonly path: (string | number)[] = [];

  /** Where the writing is. */
  pointer(): string {
    let pointer = '';
    for (const step of this.path) pointer += typeof step === 'number' ? `/${step}` : step;
    return pointer;
  }

  noteNull(): void {
    this.nulls.push(this.pointer());
  }

  /** That the value which is being written can only be told as it came. */
  noteValue(value: JsonValue): void {
    this.unmapped.set(this.pointer(), canonicalJson(value));
  }

  /** Keeps a member of what is being written that has no field. */
  noteUnknown(key: string, item: JsonValue): void {
    this.hasUnknown ||= speaksForAny(item);
    this.path.push(pointerStep(key));
    if (item === null) this.noteNull();
    else this.noteValue(item);
    this.path.pop();
  }

  /** To come {@link backTo}. */
  get noted(): Noted {
    const { nulls, unmapped, hasUnknown } = this;
    return { nulls: nulls.length, unmapped: unmapped.size, hasUnknown };
  }

  /** Forgets what was noted since. */
  backTo({ nulls, unmapped, hasUnknown }: Noted): void {
    this.nulls.length = nulls;
    if (this.unmapped.size > unmapped) {
      const since = [...this.unmapped.keys()].slice(unmapped);
      for (const pointer of since) this.unmapped.delete(pointer);
    }
    this.hasUnknown = hasUnknown;
  }
}
