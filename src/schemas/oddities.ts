import { canonicalJson } from './json.ts';
import type { JsonValue } from './json.ts';

/** How much was noted. */
export interface Noted {
  readonly nulls: number;
  readonly unmapped: number;
  readonly hasUnknown: boolean;
  readonly depth: number;
}

/** What is met in a record that its typed fields can't say, by JSON Pointer; and how far its writing is. */
export class Oddities {
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

  /** Whether anything was noted of where the writing is. */
  isNoted(): boolean {
    const pointer = this.pointer();
    return this.unmapped.has(pointer) || this.nulls.includes(pointer);
  }

  /** To come {@link backTo}. */
  get noted(): Noted {
    const { nulls, unmapped, hasUnknown, path } = this;
    return { nulls: nulls.length, unmapped: unmapped.size, hasUnknown, depth: path.length };
  }

  /** Forgets what was noted since. */
  backTo({ nulls, unmapped, hasUnknown, depth }: Noted): void {
    this.nulls.length = nulls;
    for (const pointer of [...this.unmapped.keys()].slice(unmapped)) this.unmapped.delete(pointer);
    this.hasUnknown = hasUnknown;
    this.path.length = depth;
  }
}
