// The records of one list: columns for those that were never changed, texts for the others.

import { ByteWriter } from './template.ts';
import { MAX_RECORDS } from './options.ts';
import { RULES } from './resources.ts';
import type { RecordKey, Resource, ResourceRules } from './resources.ts';
import { SortedIds } from './sorted-ids.ts';
import type { Template } from './template.ts';
import type { Winery } from './trade.ts';
import { mix } from './random.ts';

/** Bytes of a record, about: where writers begin. */
const RECORD_BYTES = 3_000;

/** Lists of things of which there is one each. */
const IN_TURN: ReadonlySet<Resource> = new Set(['inventory', 'wine-clubs', 'products']);

/**
 * The records of one list as they are served. A record that was never changed is not held: it is
 * written from its outline, its id and its columns; a changed one is held as its JSON text. Ids
 * count from 0 and are never given twice.
 */
export class Table {
  readonly resource: Resource;
  readonly rules: ResourceRules;
  readonly byKey: SortedIds;
  readonly byUpdated: SortedIds;
  readonly #winery: Winery;
  readonly #outlines: readonly Template[];
  readonly #columns: Columns;
  readonly #texts = new Map<number, Buffer>();
  #alive: Uint8Array;
  #issued: number;

  constructor(
    resource: Resource,
    winery: Winery,
    count: number,
    history: { seed: number; endsAt: number; resolutionMs: number },
  ) {
    this.resource = resource;
    this.rules = RULES[resource];
    this.#winery = winery;
    this.#outlines = count > 0 ? winery.outlines(resource) : [];
    const { seed, endsAt, resolutionMs } = history;
    const columns = makeHistory(
      count,
      seed,
      endsAt,
      resolutionMs,
      this.#outlines,
      IN_TURN.has(resource),
    );
    this.#columns = columns;
    this.#alive = new Uint8Array(count).fill(1);
    this.#issued = count;
    this.byKey = new SortedIds(
      (a, b) => a < b,
      new Uint32Array(count).map((_, id) => id),
    );
    this.byUpdated = new SortedIds(
      (a, b) =>
        this.updatedAt(a) < this.updatedAt(b) || (this.updatedAt(a) === this.updatedAt(b) && a < b),
      sortByUpdated(columns.updated),
    );
  }

  get size(): number {
    return this.byKey.size;
  }

  has(id: number): boolean {
    return this.#alive[id] === 1;
  }

  /** The number of a record's key. */
  numberOf(id: number): number {
    return this.rules.firstNumber + id;
  }

  keyOf(id: number): RecordKey {
    const number = this.numberOf(id);
    return this.rules.keyPrefix === null ? number : `${this.rules.keyPrefix}${number}`;
  }

  /** The id that goes with a key, whether or not there is such a record. */
  idOf(key: RecordKey): number {
    const text = String(key);
    const prefix = this.rules.keyPrefix ?? '';
    const id = Number(text.slice(prefix.length)) - this.rules.firstNumber;
    return text.startsWith(prefix) && Number.isInteger(id) && id >= 0 ? id : -1;
  }

  /** Epoch ms; of lists that show no `updated_at` too. */
  updatedAt(id: number): number {
    return this.#columns.updated[id]!;
  }

  /** The same of all records by id, until the next {@link issue}. */
  get updated(): Float64Array {
    return this.#columns.updated;
  }

  /** Writes a record that there is. */
  write(out: ByteWriter, id: number): void {
    const text = this.#texts.get(id);
    if (text) return out.bytes(text);
    const customer = this.#winery.customerOf(this.resource, id);
    this.#outlines[this.#columns.outline[id]!]!.write(out, {
      number: this.numberOf(id),
      customer: RULES.customers.firstNumber + customer,
      createdAt: this.#columns.created[id]!,
      updatedAt: this.updatedAt(id),
      person: this.#winery.personAt(customer),
    });
  }

  /** The JSON text of a record, if there is one. */
  text(id: number): string | undefined {
    if (!this.has(id)) return undefined;
    const out = new ByteWriter(RECORD_BYTES);
    this.write(out, id);
    return out.finish().toString();
  }

  /** An id for a new record. @throws RangeError when there is none left. */
  issue(): number {
    if (this.#issued >= MAX_RECORDS) throw new RangeError(`${this.resource}: no more records`);
    this.#reserve(this.#issued + 1);
    return this.#issued++;
  }

  /** Serves this text for the record from now on, whether or not there was one. */
  put(id: number, text: string, updatedAt: number): void {
    this.#reserve(id + 1); // a replica has issued no id itself
    if (this.has(id)) this.byUpdated.remove(id);
    else this.byKey.add(id);
    this.#alive[id] = 1;
    this.#columns.updated[id] = updatedAt;
    // Not from Node's pool: one long-lived text would keep 8 kB of others' alive.
    const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    bytes.write(text);
    this.#texts.set(id, bytes);
    this.byUpdated.add(id);
  }

  remove(id: number): void {
    this.byUpdated.remove(id);
    this.byKey.remove(id);
    this.#alive[id] = 0;
    this.#texts.delete(id);
  }

  #reserve(count: number): void {
    if (count <= this.#alive.length) return;
    const room = Math.max(64, Math.ceil(count * 1.5));
    const updated = new Float64Array(room);
    updated.set(this.#columns.updated);
    this.#columns.updated = updated;
    const alive = new Uint8Array(room);
    alive.set(this.#alive);
    this.#alive = alive;
  }
}

/** How far back history goes: three years of 365 days. */
const HISTORY_MS = 3 * 365 * 86_400_000;

/** What is known of every record of a list without writing it: one column each, by id. */
interface Columns {
  /** Epoch ms. */
  created: Float64Array;
  /** Epoch ms. */
  updated: Float64Array;
  /** Which outline the record is made of. */
  outline: Uint16Array;
}

/**
 * Spreads `count` records evenly over history, in order of their ids. A record is made of an
 * outline that its age allows: the oldest have mostly run their course, the newest only begun.
 *
 * @param inTurn whether outlines take turns, so that few records are all different.
 */
function makeHistory(
  count: number,
  seed: number,
  endsAt: number,
  resolutionMs: number,
  outlines: readonly Template[],
  inTurn: boolean,
): Columns {
  const columns = {
    created: new Float64Array(count),
    updated: new Float64Array(count),
    outline: new Uint16Array(count),
  };
  const lives = outlines.map(({ lifeMs }) => lifeMs);
  const floor = (at: number) => Math.floor(at / resolutionMs) * resolutionMs;
  const begin = endsAt - HISTORY_MS;
  for (let id = 0; id < count; id++) {
    const within = mix(seed, id * 2) / 2 ** 32;
    const created = begin + Math.floor(((id + within) / count) * HISTORY_MS);
    const fitting = countFitting(lives, endsAt - 1 - created);
    const lot = Math.cbrt(mix(seed, id * 2 + 1) / 2 ** 32);
    const chosen = inTurn ? id % fitting : Math.floor(lot * fitting);
    columns.created[id] = floor(created);
    columns.updated[id] = floor(created + lives[chosen]!);
    columns.outline[id] = chosen;
  }
  return columns;
}

/** The ids in order of `updated`, then of id. */
function sortByUpdated(updated: Float64Array): Uint32Array {
  // Time and id packed into one number of 64 bits, which the engine sorts natively: in a tenth of
  // the time that a comparator takes. 24 bits hold the id, 40 the ms since the oldest (34 years).
  const packed = new BigUint64Array(updated.length);
  const words = new Uint32Array(packed.buffer);
  let oldest = Infinity;
  for (const at of updated) oldest = Math.min(oldest, at);
  for (let id = 0; id < updated.length; id++) {
    const age = updated[id]! - oldest;
    words[id * 2] = ((age % 256) * 2 ** 24 + id) >>> 0;
    words[id * 2 + 1] = Math.floor(age / 256);
  }
  packed.sort();
  const ids = new Uint32Array(updated.length);
  for (let k = 0; k < ids.length; k++) ids[k] = words[k * 2]! & 0xff_ff_ff;
  return ids;
}

function countFitting(lives: readonly number[], ageMs: number): number {
  let low = 0;
  let high = lives.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lives[middle]! <= ageMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
