import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Chance } from '../../support/chance.ts';
import type { Sight } from '../sim-list.ts';
import type { SimTime } from '../sim-time.ts';
import { roundedTime, timeText } from './style.ts';
import type { Style } from './style.ts';

/** A record as the server has it. */
export interface Row {
  readonly id: number;
  readonly json: JsonObject;
  /** Modification time, in epoch ms. */
  readonly stamp: number;
  /** Whether it is shown as deleted. */
  readonly isGone: boolean;
}

/** A list that becomes empty proves nothing, and keeps its last records. */
const FEW = 8;
/** How long a deleted record is shown as one, ms. Longer than all that a service may miss. */
const TOMBSTONE_MS = 3_600_000;

/** The records of a list as they come, change and go, and all that could be seen of each key. */
export class StyleList {
  readonly #style: Style;
  readonly #chance: Chance;
  readonly #time: SimTime;
  readonly #rows = new Map<number, Row>();
  readonly history = new Map<string, Sight[]>();
  #next = 100;

  constructor(style: Style, chance: Chance, time: SimTime, count: number) {
    this.#style = style;
    this.#chance = chance;
    this.#time = time;
    const imported = time.now() - 1_000 - chance.below(40 * 86_400_000);
    for (let k = 0; k < count; k++) {
      const at = style.isUnstable ? imported : imported - chance.below(86_400_000);
      this.#write(this.#newId(), at);
    }
  }

  /** Key of a record as its events have it. */
  keyOf(id: number): string {
    return this.#style.keyFields.length === 1 ? String(id) : `${siteOf(id)}|${id}`;
  }

  /** The records as they are, by key. */
  truth(): ReadonlyMap<string, JsonObject> {
    return new Map(
      [...this.#rows.values()]
        .filter(({ isGone }) => !isGone)
        .map(({ id, json }) => [this.keyOf(id), json]),
    );
  }

  /** All that the list shows. */
  rows(): readonly Row[] {
    const now = this.#time.now();
    return [...this.#rows.values()].filter((row) => !row.isGone || now - row.stamp < TOMBSTONE_MS);
  }

  /** Never: this list has no index that is wrong for a while. */
  hidden(): { readonly from: number; readonly to: number } {
    return { from: Infinity, to: -Infinity };
  }

  /** Adds a record. */
  grow(): void {
    this.#write(this.#newId(), this.#time.now());
  }

  /** Adds, changes or removes records. */
  change(): void {
    const lot = this.#chance.next();
    const ids = [...this.#rows.values()].filter(({ isGone }) => !isGone).map(({ id }) => id);
    const id = this.#chance.pick(ids);
    const from = this.#chance.below(ids.length);
    const some = ids.slice(from, from + 5);
    if (lot < 0.15 || id === undefined || ids.length < FEW) this.grow();
    else if (lot < 0.27) this.#remove(id);
    else if (lot < 0.32 && ids.length > 2 * FEW) for (const each of some) this.#remove(each);
    else for (const each of lot < 0.4 ? some : [id]) this.#write(each, this.#time.now());
  }

  remove(id: number): void {
    this.#remove(id);
  }

  /** Removes one of these records, which a page has just shown: what follows moves forward. May add another record, so that the total holds still. */
  strike(ids: readonly number[], isReplaced: boolean): void {
    if (this.truth().size <= FEW || ids.length === 0) return;
    this.#remove(this.#chance.pick(ids));
    if (isReplaced) this.grow();
  }

  #newId(): number {
    return (this.#next += 1 + this.#chance.below(3));
  }

  #write(id: number, at: number): void {
    const { keyFields, isStamped, times, names, hasTombstones } = this.#style;
    const version = Number(this.#rows.get(id)?.json.version ?? 0) + 1;
    const [field, second] = keyFields;
    const json: JsonObject = {
      ...(second === undefined ? { [field]: id } : { [field]: siteOf(id), [second]: id }),
      ...(isStamped && { [names.updated]: timeText(times, at) }),
      version,
      ...(hasTombstones && { gone: false }),
      text: `text ${this.#chance.below(1_000)}`,
    };
    this.#rows.set(id, { id, json, stamp: roundedTime(times, at), isGone: false });
    this.#see(id, json, at);
  }

  #remove(id: number): void {
    const row = this.#rows.get(id);
    if (!row) return;
    if (this.#style.hasTombstones) {
      const at = this.#time.now();
      const { names, times, isStamped } = this.#style;
      const stamped = isStamped ? { [names.updated]: timeText(times, at) } : {};
      const json = { ...row.json, ...stamped, gone: true };
      this.#rows.set(id, { id, json, stamp: roundedTime(times, at), isGone: true });
    } else this.#rows.delete(id);
    this.#see(id, null, 0);
  }

  #see(id: number, json: JsonObject | null, updatedAt: number): void {
    const key = this.keyOf(id);
    const sights = this.history.get(key) ?? [];
    this.history.set(key, sights);
    sights.push({ at: this.#time.now(), json, updatedAt });
  }
}

/** The first field of a key of two. */
function siteOf(id: number): string {
  return id % 2 === 0 ? 'north' : 'south';
}
