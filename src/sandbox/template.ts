import type { JsonObject } from './resources.ts';

const ZERO = 48;
const DAY_MS = 86_400_000;

/** Buffer to which JSON text is written. Writing a page of a thousand records takes one to two ms. */
export class ByteWriter {
  #bytes: Buffer;
  #length = 0;
  readonly #dates = new Map<number, Uint8Array>(); // days since 1970 -> `2024-03-05`

  /** @param capacity Initial capacity in bytes. The buffer grows when it is full. */
  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Returns the written bytes. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  bytes(part: Uint8Array): void {
    this.#reserve(part.length);
    this.#bytes.set(part, this.#length);
    this.#length += part.length;
  }

  text(part: string): void {
    this.bytes(Buffer.from(part));
  }

  digits(value: number): void {
    let width = 1;
    for (let limit = 10; value >= limit; limit *= 10) width++;
    this.#reserve(width);
    this.#number(this.#length, value, width);
    this.#length += width;
  }

  /** Replaces the time at index `at`, written as `2024-03-05T10:00:00.000Z`, by the time `epochMs`. */
  stamp(at: number, epochMs: number): void {
    const day = Math.floor(epochMs / DAY_MS);
    const ms = epochMs - day * DAY_MS;
    let date = this.#dates.get(day);
    if (!date) {
      date = Buffer.from(new Date(day * DAY_MS).toISOString().slice(0, 10));
      this.#dates.set(day, date);
    }
    const bytes = this.#bytes;
    for (let k = 0; k < 10; k++) bytes[at + k] = date[k]!;
    this.#number(at + 11, Math.floor(ms / 3_600_000), 2);
    this.#number(at + 14, Math.floor(ms / 60_000) % 60, 2);
    this.#number(at + 17, Math.floor(ms / 1000) % 60, 2);
    this.#number(at + 20, ms % 1000, 3);
  }

  #number(at: number, value: number, width: number): void {
    let rest = value;
    for (let k = at + width - 1; k >= at; k--) {
      const next = Math.floor(rest / 10);
      this.#bytes[k] = ZERO + (rest - next * 10);
      rest = next;
    }
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** Values that stand for number, customer, times and personal fields in a template's source record. Each copy gets its own instead. */
export const PLACEHOLDERS = {
  number: 987_654_321_987,
  customer: 987_654_321_986,
  /**
   * Creation time of a template's source record, in epoch ms. The record's times in the years 2200 to 2299 are moved in each copy, so that
   * their distance from the creation time remains the same.
   */
  createdAt: Date.parse('2200-01-01T00:00:00.000Z'),
  /** Placeholder that is replaced by the record's `updated_at` when a record is made from the template. */
  updatedAt: '2999-01-01T00:00:00.000Z',
  /** Placeholder that is replaced by the name and contact fields of a person when a record is made from the template. */
  contact: { '@contact': 0 },
  shipping: { '@shipping': 0 },
  billing: { '@billing': 0 },
} as const;

interface Fill {
  readonly number: number;
  readonly customer: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly person: PersonBytes;
}

/**
 * Personal fields of a generated record, in groups. Each group is UTF-8 JSON text of an object without its braces, to be inserted among the
 * members of another object.
 */
export interface PersonBytes {
  readonly contact: Uint8Array;
  readonly shipping: Uint8Array;
  readonly billing: Uint8Array;
}

/** Part of a template: JSON text whose times are overwritten in each copy, and the kind of the value that is inserted after the text. */
interface TextSegment {
  readonly bytes: Uint8Array;
  /** Indexes in `bytes` at which the texts of times begin, such as `2024-05-01T12:34:56.789Z`. */
  readonly places: readonly number[];
  /** Time in ms from the record's creation to each of the times at `places`; NaN for a time that is replaced by the copy's `updated_at`. */
  readonly distances: readonly number[];
  readonly then: 'number' | 'customer' | keyof PersonBytes | 'end';
}

const SLOTS = new Map<string, TextSegment['then']>([
  [String(PLACEHOLDERS.number), 'number'],
  [String(PLACEHOLDERS.customer), 'customer'],
  ['"@contact":0', 'contact'],
  ['"@shipping":0', 'shipping'],
  ['"@billing":0', 'billing'],
]);
const SLOT = new RegExp(`(${[...SLOTS.keys()].join('|')})`);
const STAMP = /"(2[29]\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"/g;

/**
 * JSON text from which generated records are copied, each with other values at the placeholders. The text is split at the placeholders in
 * advance, so that a copy takes about a microsecond.
 */
export class Template {
  readonly #chunks: readonly TextSegment[];
  /**
   * Time in ms from a record's creation to the latest date in the template, not counting `updated_at`. Only records at least this old can
   * use the template: in a younger record the date would be in the future.
   */
  readonly lifeMs: number;

  constructor(template: JsonObject) {
    const parts = JSON.stringify(template).split(SLOT);
    const chunks: TextSegment[] = [];
    for (let k = 0; k < parts.length; k += 2) {
      const text = parts[k]!;
      const stamps = [...text.matchAll(STAMP)];
      chunks.push({
        bytes: Buffer.from(text),
        places: stamps.map((found) => Buffer.byteLength(text.slice(0, found.index)) + 1),
        distances: stamps.map(([, stamp]) =>
          stamp === PLACEHOLDERS.updatedAt ? NaN : Date.parse(stamp!) - PLACEHOLDERS.createdAt,
        ),
        then: SLOTS.get(parts[k + 1] ?? '') ?? 'end',
      });
    }
    this.#chunks = chunks;
    const distances = chunks.flatMap((chunk) => chunk.distances);
    this.lifeMs = Math.max(0, ...distances.filter((distance) => !Number.isNaN(distance)));
  }

  write(out: ByteWriter, fill: Fill): void {
    for (const { bytes, places, distances, then } of this.#chunks) {
      const start = out.length;
      out.bytes(bytes);
      for (let k = 0; k < places.length; k++) {
        const distance = distances[k]!;
        const at = distance === distance ? fill.createdAt + distance : fill.updatedAt;
        out.stamp(start + places[k]!, at);
      }
      if (then === 'number' || then === 'customer') out.digits(fill[then]);
      else if (then !== 'end') out.bytes(fill.person[then]);
    }
  }
}
