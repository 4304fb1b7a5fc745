// Templates of generated records: JSON with placeholders, which is filled in and written directly as bytes.

import type { JsonObject } from './resources.ts';

const ZERO = 48;
const DAY_MS = 86_400_000;

/** Buffer that JSON text is written to as UTF-8, fast enough for a page of a thousand records in one to two ms. */
export class ByteWriter {
  #bytes: Buffer;
  #length = 0;
  readonly #dates = new Map<number, Uint8Array>(); // days since 1970 -> `2024-03-05`

  /** @param capacity Initial capacity in bytes; grows as needed. */
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

  byte(code: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = code;
  }

  /** Writes a whole number >= 0 in decimal digits. */
  digits(value: number): void {
    let width = 1;
    for (let limit = 10; value >= limit; limit *= 10) width++;
    this.#reserve(width);
    this.#number(this.#length, value, width);
    this.#length += width;
  }

  /** Overwrites 24 bytes that have already been written, from index `at` on, with an instant, such as `2024-03-05T10:00:00.000Z`. */
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

/**
 * Placeholders in the record that a template is made from. That record is created by the same code as any other, but in the year 2200; its
 * number, people and times are filled in when the template is written.
 */
export const PLACEHOLDERS = {
  /** Number in the record's key, as a number or inside text. */
  number: 987_654_321_987,
  /** Number of the customer that the record belongs to. */
  customer: 987_654_321_986,
  /**
   * Creation time of the record that a template is made from, in a year in which no real time lies, so that its times are recognized. All
   * its other times except `updated_at` are stored relative to it.
   */
  createdAt: Date.parse('2200-01-01T00:00:00.000Z'),
  /** Marker for `updated_at`, which is filled in with the update time of the generated record. */
  updatedAt: '2999-01-01T00:00:00.000Z',
  /** Markers that are replaced with a person's contact, shipping and billing fields. */
  contact: { '@contact': 0 },
  shipping: { '@shipping': 0 },
  billing: { '@billing': 0 },
} as const;

/** Values that replace the placeholders of a record template. */
interface Fill {
  readonly number: number;
  readonly customer: number;
  /** Creation time of the generated record in epoch ms. */
  readonly createdAt: number;
  /** Update time of the generated record in epoch ms. */
  readonly updatedAt: number;
  readonly person: PersonBytes;
}

/** Personal fields of a generated record, as JSON text without the braces. */
export interface PersonBytes {
  readonly contact: Uint8Array;
  readonly shipping: Uint8Array;
  readonly billing: Uint8Array;
}

/** Segment of a record template: fixed text with times to fill in, and the placeholder that follows the text. */
interface TextSegment {
  readonly bytes: Uint8Array;
  /** Indexes in `bytes` at which times are filled in. */
  readonly places: readonly number[];
  /** Distance of each of the times to fill in from the record's creation time, in ms; NaN for the update time. */
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

/** Template of a record: JSON text with placeholders, split at them once so that a record can be written in about a microsecond. */
export class Template {
  readonly #stretches: readonly TextSegment[];
  /** Largest distance of a time in the record from `createdAt`, in ms: only records at least this old can use the template. */
  readonly lifeMs: number;

  constructor(outline: JsonObject) {
    const parts = JSON.stringify(outline).split(SLOT);
    const stretches: TextSegment[] = [];
    for (let k = 0; k < parts.length; k += 2) {
      const text = parts[k]!;
      const stamps = [...text.matchAll(STAMP)];
      stretches.push({
        bytes: Buffer.from(text),
        places: stamps.map((found) => Buffer.byteLength(text.slice(0, found.index)) + 1),
        distances: stamps.map(([, stamp]) =>
          stamp === PLACEHOLDERS.updatedAt ? NaN : Date.parse(stamp!) - PLACEHOLDERS.createdAt,
        ),
        then: SLOTS.get(parts[k + 1] ?? '') ?? 'end',
      });
    }
    this.#stretches = stretches;
    const distances = stretches.flatMap((stretch) => stretch.distances);
    this.lifeMs = Math.max(0, ...distances.filter((distance) => !Number.isNaN(distance)));
  }

  write(out: ByteWriter, fill: Fill): void {
    for (const { bytes, places, distances, then } of this.#stretches) {
      const start = out.length;
      out.bytes(bytes);
      for (let k = 0; k < places.length; k++) {
        const distance = distances[k]!;
        const at = distance === distance ? fill.createdAt + distance : fill.updatedAt;
        out.stamp(start + places[k]!, at);
      }
      switch (then) {
        case 'number':
        case 'customer':
          out.digits(fill[then]);
          break;
        case 'contact':
        case 'shipping':
        case 'billing':
          out.bytes(fill.person[then]);
      }
    }
  }
}
