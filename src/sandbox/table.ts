import { ByteWriter, type Template } from './template.ts';
import { MAX_RECORDS } from './options.ts';
import { RULES, type RecordKey, type Resource, type SandboxListRules } from './resources.ts';
import { countWhile, SortedIds } from './sorted-ids.ts';
import type { Winery } from './trade.ts';
import { mix } from './random.ts';

/** Approximate size of a record in bytes, used as the initial capacity of a writer. */
const RECORD_BYTES = 3_000;

/** Lists whose records copy the list's templates in turn, so that a short list has few similar records. Other lists choose at random. */
const IN_TURN: ReadonlySet<Resource> = new Set(['inventory', 'wine-clubs', 'products']);

/**
 * The records of one list as they are served. Changed and new records are stored as JSON text; all others are generated on demand. Ids
 * count from 0 and are never reused.
 */
export class RecordTable {
  readonly resource: Resource;
  readonly rules: SandboxListRules;
  readonly byKey: SortedIds;
  readonly byUpdated: SortedIds;
  readonly #winery: Winery;
  readonly #templates: readonly Template[];
  readonly #columns: Columns;
  readonly #texts = new Map<number, Buffer>();
  #alive: Uint8Array;
  #issued: number;

  constructor(resource: Resource, winery: Winery, count: number, history: History) {
    this.resource = resource;
    this.rules = RULES[resource];
    this.#winery = winery;
    this.#templates = count > 0 ? winery.templates(resource) : [];
    this.#columns = makeHistory(count, history, this.#templates, IN_TURN.has(resource));
    this.#alive = new Uint8Array(count).fill(1);
    this.#issued = count;
    this.byKey = new SortedIds(
      (a, b) => a < b,
      new Uint32Array(count).map((_, id) => id),
    );
    this.byUpdated = new SortedIds(
      (a, b) =>
        this.updatedAt(a) < this.updatedAt(b) || (this.updatedAt(a) === this.updatedAt(b) && a < b),
      sortByUpdated(this.#columns.updated),
    );
  }

  get size(): number {
    return this.byKey.size;
  }

  has(id: number): boolean {
    return this.#alive[id] === 1;
  }

  numberOf(id: number): number {
    return this.rules.firstNumber + id;
  }

  keyOf(id: number): RecordKey {
    const number = this.numberOf(id);
    return this.rules.keyPrefix === null ? number : `${this.rules.keyPrefix}${number}`;
  }

  /** Returns the id that belongs to a key, even if no such record exists; -1 if the key is malformed or below the first key of the list. */
  idOf(key: RecordKey): number {
    const text = String(key);
    const prefix = this.rules.keyPrefix ?? '';
    const id = Number(text.slice(prefix.length)) - this.rules.firstNumber;
    return text.startsWith(prefix) && Number.isInteger(id) && id >= 0 ? id : -1;
  }

  /** Returns the update time of a record, in epoch ms. Records in lists without `updated_at` have one too. */
  updatedAt(id: number): number {
    return this.#columns.updated[id]!;
  }

  /**
   * Update times of all records by id, in epoch ms. The array may be replaced by a longer one when {@link issue} or {@link put} is called.
   */
  get updated(): Float64Array {
    return this.#columns.updated;
  }

  write(out: ByteWriter, id: number): void {
    const text = this.#texts.get(id);
    if (text) return out.bytes(text);
    const customer = this.#winery.customerOf(this.resource, id);
    this.#templates[this.#columns.template[id]!]!.write(out, {
      number: this.numberOf(id),
      customer: RULES.customers.firstNumber + customer,
      createdAt: this.#columns.created[id]!,
      updatedAt: this.updatedAt(id),
      person: this.#winery.personAt(customer),
    });
  }

  text(id: number): string | undefined {
    if (!this.has(id)) return undefined;
    const out = new ByteWriter(RECORD_BYTES);
    this.write(out, id);
    return out.finish().toString();
  }

  /** Returns an unused id for a new record. @throws RangeError if the list has used all ids. */
  issue(): number {
    if (this.#issued >= MAX_RECORDS)
      throw new RangeError(
        `no further record can be added to ${this.resource}: the sandbox has used all ${MAX_RECORDS} ids of this list`,
      );
    this.#reserve(this.#issued + 1);
    return this.#issued++;
  }

  put(id: number, text: string, updatedAt: number): void {
    this.#reserve(id + 1); // the ids of a replica were issued by another table
    if (this.has(id)) this.byUpdated.remove(id);
    else this.byKey.add(id);
    this.#alive[id] = 1;
    this.#columns.updated[id] = updatedAt;
    // Not from Node's buffer pool: one long-lived text would keep its whole 8 kB slab in memory.
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
    const capacity = Math.max(64, Math.ceil(count * 1.5));
    const updated = new Float64Array(capacity);
    updated.set(this.#columns.updated);
    this.#columns.updated = updated;
    const alive = new Uint8Array(capacity);
    alive.set(this.#alive);
    this.#alive = alive;
  }
}

const HISTORY_MS = 3 * 365 * 86_400_000;

/** Settings for the times of the initially generated records. All are before `endsAt`, in epoch ms. */
interface History {
  readonly seed: number;
  readonly endsAt: number;
  readonly resolutionMs: number;
}

/** Creation times and template indexes of the initially generated records, and update times (epoch ms) of all records, by record id. */
interface Columns {
  created: Float64Array;
  updated: Float64Array;
  template: Uint16Array;
}

/**
 * Generates the creation times, the times of the last change and the templates of `count` records. Creation times are spread evenly over
 * the three years before `endsAt`. The time of a record's last change is determined by its template, and is before `endsAt`.
 */
function makeHistory(
  count: number,
  { seed, endsAt, resolutionMs }: History,
  templates: readonly Template[],
  inTurn: boolean,
): Columns {
  const columns = {
    created: new Float64Array(count),
    updated: new Float64Array(count),
    template: new Uint16Array(count),
  };
  const lives = templates.map(({ lifeMs }) => lifeMs);
  const floor = (at: number) => Math.floor(at / resolutionMs) * resolutionMs;
  const begin = endsAt - HISTORY_MS;
  for (let id = 0; id < count; id++) {
    const within = mix(seed, id * 2) / 2 ** 32;
    const created = begin + Math.floor(((id + within) / count) * HISTORY_MS);
    const fitting = countWhile(lives.length, (nth) => lives[nth]! <= endsAt - 1 - created);
    const lot = Math.cbrt(mix(seed, id * 2 + 1) / 2 ** 32);
    const chosen = inTurn ? id % fitting : Math.floor(lot * fitting);
    columns.created[id] = floor(created);
    columns.updated[id] = floor(created + lives[chosen]!);
    columns.template[id] = chosen;
  }
  return columns;
}

function sortByUpdated(updated: Float64Array): Uint32Array {
  // Packs time and id into one 64-bit number, which is sorted natively, in a tenth of the time of a comparator: 24 bits for the id, 40 for
  // the ms since the oldest time (34 years).
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
