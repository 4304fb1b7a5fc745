// Writes records from outlines straight as bytes, a thousand in a millisecond or two.

import type { JsonObject } from './resources.ts';

const ZERO = 48;
const DAY_MS = 86_400_000;

/** Writes JSON text straight as UTF-8: a page of a thousand records in a millisecond or two. */
export class ByteWriter {
  #bytes: Buffer;
  #length = 0;
  readonly #dates = new Map<number, Uint8Array>(); // day since 1970 -> `2024-03-05`

  /** @param capacity bytes to begin with; it grows. */
  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** What was written. The writer is used up. */
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

  /** A whole number >= 0 in decimal digits. */
  digits(value: number): void {
    let width = 1;
    for (let limit = 10; value >= limit; limit *= 10) width++;
    this.#reserve(width);
    this.#number(this.#length, value, width);
    this.#length += width;
  }

  /** Writes an instant over 24 bytes that are there, as `2024-03-05T10:00:00.000Z`. */
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
 * Stand-ins that an outline holds where its records differ. An outline is an ordinary record in
 * all else, made by the same code as one that is created later: it just lives in the year 2200,
 * and its number and people are filled in when it is written.
 */
export const STAND_IN = {
  /** Number in the record's key; stands in numbers and inside texts. */
  number: 987_654_321_987,
  /** Number of the customer the record belongs to. */
  customer: 987_654_321_986,
  /** When the record was created; all its other times are kept by their distance from this. */
  createdAt: Date.parse('2200-01-01T00:00:00.000Z'),
  /** `updated_at` of the record, which has a column of its own. */
  updatedAt: '2999-01-01T00:00:00.000Z',
  /** Fields that come from a person. */
  contact: { '@contact': 0 },
  shipping: { '@shipping': 0 },
  billing: { '@billing': 0 },
} as const;

/** What fills in an outline. */
interface Fill {
  readonly number: number;
  readonly customer: number;
  /** Epoch ms. */
  readonly createdAt: number;
  /** Epoch ms. */
  readonly updatedAt: number;
  readonly person: PersonBytes;
}

/** Fields of a person as JSON text, without the braces. */
export interface PersonBytes {
  readonly contact: Uint8Array;
  readonly shipping: Uint8Array;
  readonly billing: Uint8Array;
}

/** A stretch of fixed text in which times are filled in, then what follows it. */
interface Stretch {
  readonly bytes: Uint8Array;
  /** Where times stand in `bytes`. */
  readonly places: readonly number[];
  /** Their distance from `createdAt` in ms; NaN for `updatedAt`. */
  readonly distances: readonly number[];
  readonly then: 'number' | 'customer' | keyof PersonBytes | 'end';
}

const SLOTS = new Map<string, Stretch['then']>([
  [String(STAND_IN.number), 'number'],
  [String(STAND_IN.customer), 'customer'],
  ['"@contact":0', 'contact'],
  ['"@shipping":0', 'shipping'],
  ['"@billing":0', 'billing'],
]);
const SLOT = new RegExp(`(${[...SLOTS.keys()].join('|')})`);
const STAMP = /"(2[29]\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"/g;

/** An outline cut up once, so that a record of it is written in about a microsecond. */
export class Template {
  readonly #stretches: readonly Stretch[];
  /** The longest distance of a time from `createdAt`, in ms: before that the record is not so. */
  readonly lifeMs: number;

  constructor(outline: JsonObject) {
    const parts = JSON.stringify(outline).split(SLOT);
    const stretches: Stretch[] = [];
    for (let k = 0; k < parts.length; k += 2) {
      const text = parts[k]!;
      const stamps = [...text.matchAll(STAMP)];
      stretches.push({
        bytes: Buffer.from(text),
        places: stamps.map((found) => Buffer.byteLength(text.slice(0, found.index)) + 1),
        distances: stamps.map(([, stamp]) =>
          stamp === STAND_IN.updatedAt ? NaN : Date.parse(stamp!) - STAND_IN.createdAt,
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
