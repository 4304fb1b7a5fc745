import type { Resource } from '../../src/description/description.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import type { Chance } from '../support/chance.ts';
import type { SimTime } from './sim-time.ts';

export const SORTS = ['key-asc', 'key-desc', 'updated-asc', 'updated-desc'] as const;

/** What of a list a run draws by its seed. */
export interface ListTraits {
  readonly resource: Resource;
  readonly sort: (typeof SORTS)[number];
  /** How fine `updated_at` is, ms. */
  readonly resolutionMs: number;
  /** A change may be seen so much later than its `updated_at`, ms. */
  readonly lateMs: number;
  /** The clock that stamps records, ahead of the true time, ms. */
  readonly stampSkewMs: number;
  readonly boundsInclude: boolean;
  /** Minutes ahead of UTC of the zone that date parameters are read in. */
  readonly parameterZone: number;
  /** Minutes ahead of UTC of the local times that records are stamped with, without a zone; null: UTC, with a `Z`. */
  readonly stampZone: number | null;
  /** Whether date parameters are ignored. */
  readonly ignoresDates: boolean;
  /** Whether many records are changed at once, and share one `updated_at`. */
  readonly isBulk: boolean;
}

export interface SimRecord {
  readonly json: JsonObject;
  /** Also of a list that does not show it. */
  readonly updatedAt: number;
}

/** What could be seen of a key, from when on; null when it was gone. */
export interface Sight {
  readonly at: number;
  readonly json: JsonObject | null;
  /** Also of a list that does not show it. */
  readonly updatedAt: number;
}

/** Times, ms since the epoch. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** A list query, as far as it chooses records. */
export interface SimQuery {
  readonly offset: number;
  readonly pageSize: number;
  readonly orderNumber: string | null;
  /** Of the modification date, ms. */
  readonly window: readonly [from: number, to: number] | null;
}

const UNDATED: ReadonlySet<Resource> = new Set<Resource>(['inventory', 'wine-club-members']);
/** A list that becomes empty proves nothing, and keeps its last records. */
const FEW = 10;

/** The field that is a record's key; `version`, beside it, tells its versions apart. */
export const keyField = (resource: Resource) => (resource === 'orders' ? 'order_number' : 'id');

/** The records of one list as they come, change and go; and all that could ever be seen of them. */
export class SimList {
  readonly traits: ListTraits;
  readonly #chance: Chance;
  readonly #time: SimTime;
  readonly #rows = new Map<number, SimRecord>();
  readonly history = new Map<string, Sight[]>();
  /** When its index was wrong: two of three records were not shown, nor counted, though they were there. */
  #wrong: Stretch | undefined;
  /** When it is going to be: with the first page of the list, read whole, behind a time. */
  #willBeWrong: { readonly after: number; readonly ms: number } | undefined;
  /** Of the clock that stamps records: it may be set back. */
  stampSkewMs: number;
  #next = 1_001;
  readonly #beganAt: number;

  constructor(traits: ListTraits, chance: Chance, time: SimTime, count: number) {
    this.traits = traits;
    this.#chance = chance;
    this.#time = time;
    this.stampSkewMs = traits.stampSkewMs;
    this.#beganAt = time.now();
    const imported = time.now() - 1_000 - chance.below(40 * 86_400_000);
    for (let k = 0; k < count; k++) {
      const at = traits.isBulk ? imported : time.now() - 1_000 - chance.below(40 * 86_400_000);
      this.#write(this.#newKey(), at, {}, 0);
    }
  }

  /** The records as they are, by key as text. */
  truth(): ReadonlyMap<string, JsonObject> {
    return new Map([...this.#rows].map(([key, { json }]) => [String(key), json]));
  }

  /** A record is added. */
  grow(): void {
    this.#commit([this.#newKey()], 'new');
  }

  /** Something happens to the list. */
  change(): void {
    const lot = this.#chance.next();
    const keys = [...this.#rows.keys()];
    const key = this.#chance.pick(keys);
    const some = () => {
      const from = this.#chance.below(keys.length);
      return keys.slice(from, from + 6);
    };
    if (lot < 0.15 || key === undefined || keys.length < FEW) this.#commit([this.#newKey()], 'new');
    else if (lot < 0.25) this.#commit([key], 'gone');
    else if (lot < 0.3) this.#commit(some(), 'gone');
    else this.#commit(this.traits.isBulk && lot < 0.5 ? some() : [key], 'altered');
  }

  /** Gives a record other fields, at once, stamped so many ms ago. */
  alter(key: number, fields: JsonObject, stampedAgoMs = 0): void {
    const old = this.#rows.get(key)?.json ?? {};
    this.#write(key, this.#time.now() - stampedAgoMs, old, Number(old.version ?? 0) + 1, fields);
  }

  /** Takes a record away, at once. */
  remove(key: number): void {
    this.#remove(key);
  }

  /** A page, and how many records there are in all: as they were `behindMs` ago. */
  page(query: SimQuery, behindMs = 0): { rows: SimRecord[]; total: number } {
    this.#beginsToBeWrong(query);
    const then = behindMs === 0 ? this.#rows : this.#rowsAt(this.#time.now() - behindMs);
    const { offset, pageSize, orderNumber, window } = query;
    if (orderNumber !== null) {
      const row = this.#isShown(orderNumber) && then.get(Number(orderNumber));
      return { rows: row ? [row] : [], total: row ? 1 : 0 };
    }
    const { boundsInclude, sort, ignoresDates, parameterZone } = this.traits;
    let rows = [...then].filter(([key]) => this.#isShown(String(key)));
    if (window && !ignoresDates) {
      const [low, high] = window.map((at) => at - parameterZone * 60_000) as [number, number];
      rows = rows.filter(([, { updatedAt }]) =>
        boundsInclude ? updatedAt >= low && updatedAt <= high : updatedAt > low && updatedAt < high,
      );
    }
    const [field, direction] = sort.split('-');
    const sign = direction === 'asc' ? 1 : -1;
    rows.sort(([a, x], [b, y]) =>
      field === 'key' ? sign * (a - b) : sign * (x.updatedAt - y.updatedAt || a - b),
    );
    const shown = rows.slice(offset, offset + pageSize).map(([, row]) => row);
    return { rows: shown, total: rows.length };
  }

  /** Lets its index be wrong for so long, once: from the next complete reading on that begins after a time. */
  beWrong(after: number, ms: number): void {
    this.#willBeWrong = { after, ms };
  }

  /** When a record was hidden, whether or not it was there; never, if it was not. */
  hidden(key: string): Stretch {
    return (Number(key) % 3 > 0 && this.#wrong) || { from: Infinity, to: -Infinity };
  }

  /** Smallest number of records that the list showed at any time of an interval, in epoch ms. A wrong index shows fewer than there are. */
  leastShown(from: number, to: number): number {
    const times = [...this.history.values()].flatMap((sights) => sights.map(({ at }) => at));
    const { from: wrongFrom, to: wrongTo } = this.#wrong ?? { from, to };
    const between = [...times, wrongFrom, wrongTo].filter((at) => at > from && at <= to);
    const shownAt = (at: number) =>
      [...this.#rowsAt(at).keys()].filter((key) => this.#isShown(String(key), at)).length;
    return Math.min(...[from, ...between].map(shownAt));
  }

  #rowsAt(time: number): ReadonlyMap<number, SimRecord> {
    const at = Math.max(time, this.#beganAt);
    const rows = new Map<number, SimRecord>();
    for (const [key, sights] of this.history) {
      const sight = sights.findLast((each) => each.at <= at);
      if (sight?.json) rows.set(Number(key), { json: sight.json, updatedAt: sight.updatedAt });
    }
    return rows;
  }

  #beginsToBeWrong({ offset, orderNumber, window }: SimQuery): void {
    const now = this.#time.now();
    const isBeginning = orderNumber === null && window === null && offset === 0;
    if (!this.#willBeWrong || !isBeginning || now < this.#willBeWrong.after) return;
    this.#wrong = { from: now, to: now + this.#willBeWrong.ms };
    this.#willBeWrong = undefined;
  }

  #isShown(key: string, at = this.#time.now()): boolean {
    const { from, to } = this.hidden(key);
    return at < from || at >= to;
  }

  #newKey(): number {
    return (this.#next += 1 + this.#chance.below(3));
  }

  /** A change of some records that is stamped now, and seen now or later. */
  #commit(keys: readonly number[], what: 'new' | 'altered' | 'gone'): void {
    const { lateMs } = this.traits;
    const stamp = this.#time.now() + this.stampSkewMs;
    const show = () => {
      for (const key of keys) {
        const old = this.#rows.get(key);
        // Of removals that are seen late there may be many by now.
        if (what === 'gone') {
          if (this.#rows.size > FEW / 2) this.#remove(key);
        } else if (what === 'new' || old) {
          this.#write(key, stamp, old?.json ?? {}, Number(old?.json.version ?? 0) + 1);
        }
      }
    };
    if (lateMs === 0) return show();
    this.#time.scheduler.schedule(show, this.#chance.below(lateMs));
  }

  #write(key: number, at: number, old: JsonObject, version: number, fields: JsonObject = {}): void {
    const { resolutionMs, resource, stampZone } = this.traits;
    const updatedAt = Math.floor(at / resolutionMs) * resolutionMs;
    const local = new Date(updatedAt + (stampZone ?? 0) * 60_000).toISOString();
    const updated_at = stampZone === null ? local : local.slice(0, -1);
    const json: JsonObject = {
      [keyField(resource)]: key,
      ...(!UNDATED.has(resource) && { created_at: old.created_at ?? updated_at, updated_at }),
      version,
      ...(resource === 'orders' && this.#statuses(old)),
      ...fields,
      ...(this.#chance.is(0.02) && { [`extra_${this.#chance.below(3)}`]: version }),
    };
    this.#rows.set(key, { json, updatedAt });
    this.#see(key, json, updatedAt);
  }

  #statuses(old: JsonObject): JsonObject {
    const next = (was: unknown) =>
      typeof was !== 'string' || this.#chance.is(0.5)
        ? this.#chance.pick(['pending', 'paid', 'refunded'])
        : was;
    const parcels = (old.fulfillment_info ?? []) as { fulfillment_id: string; status: string }[];
    const more = this.#chance.is(0.2)
      ? [{ fulfillment_id: `F${parcels.length}`, status: 'open' }]
      : [];
    return {
      payment_status: next(old.payment_status),
      fulfillment_status: next(old.fulfillment_status),
      fulfillment_info: [
        ...parcels.map((parcel) => ({ ...parcel, status: next(parcel.status) })),
        ...more,
      ],
    };
  }

  #remove(key: number): void {
    if (this.#rows.delete(key)) this.#see(key, null, 0);
  }

  #see(key: number, json: JsonObject | null, updatedAt: number): void {
    const sights = this.history.get(String(key)) ?? [];
    this.history.set(String(key), sights);
    sights.push({ at: this.#time.now(), json, updatedAt });
  }
}
