import type { Dispatcher } from 'undici';
import type { Resource } from '../../src/resources.ts';
import type { Chance } from './chance.ts';
import type { SimTime } from './sim-time.ts';

export const SORTS = ['key-asc', 'key-desc', 'updated-asc', 'updated-desc'] as const;

/** What of the API a run draws by its seed. */
export interface ApiTraits {
  readonly resource: Resource;
  readonly sort: (typeof SORTS)[number];
  /** How fine `updated_at` is, ms. */
  readonly resolutionMs: number;
  /** A change may be seen so much later than its `updated_at`, ms. */
  readonly lateMs: number;
  /** The clock that stamps records, and the one that `Date` comes from, ahead of the true time, ms. */
  readonly stampSkewMs: number;
  readonly dateSkewMs: number;
  readonly sendsDate: boolean;
  readonly boundsInclude: boolean;
  /** Most that an answer takes, ms. */
  readonly latencyMs: number;
}

export interface SimRecord {
  readonly json: Readonly<Record<string, unknown>>;
  readonly updatedAt: number;
}

/** What could be seen of a key, from when on; null when it was gone. */
export interface Sight {
  readonly at: number;
  readonly text: string | null;
}

type Fault = 'drop' | '500' | '502' | '429' | '429-later' | '401' | 'truncated' | 'garbage';
const FAULTS: readonly Fault[] = ['drop', '500', '502', '429', '429-later', '401', 'truncated', 'garbage']; // prettier-ignore

export const keyField = (resource: Resource) => (resource === 'orders' ? 'order_number' : 'id');

/** The API of one list: records that change, clocks that disagree, faults; and the truth of it. */
export class SimApi {
  readonly traits: ApiTraits;
  readonly #chance: Chance;
  readonly #time: SimTime;
  readonly #rows = new Map<number, SimRecord>();
  /** All that could be seen, by key. */
  readonly history = new Map<number, Sight[]>();
  readonly requests: number[] = [];
  #token = 0;
  #next = 1_001;
  #pending = 0;
  /** How likely a request meets a fault. */
  faultiness = 0;
  isDown = false;
  /** Of the clock that stamps records: it may be set back. */
  stampSkewMs: number;

  constructor(traits: ApiTraits, chance: Chance, time: SimTime, count: number) {
    this.traits = traits;
    this.#chance = chance;
    this.#time = time;
    this.stampSkewMs = traits.stampSkewMs;
    for (let k = 0; k < count; k++) {
      const at = time.now() - 1_000 - chance.below(40 * 86_400_000);
      this.#write(this.#newKey(), at, {}, 0);
    }
  }

  /** The records as they are, by key as text. */
  truth(): Map<string, string> {
    return new Map([...this.#rows].map(([key, { json }]) => [String(key), JSON.stringify(json)]));
  }

  get isSettled(): boolean {
    return this.#pending === 0;
  }

  /** Something happens to the list. */
  change(): void {
    const lot = this.#chance.next();
    const keys = [...this.#rows.keys()];
    const key = this.#chance.pick(keys);
    // A list that becomes empty proves nothing, and keeps its last records.
    if (lot < 0.15 || key === undefined || keys.length < 10) this.#commit(this.#newKey(), 'new');
    else if (lot < 0.25) this.#commit(key, 'gone');
    else if (lot < 0.3)
      for (const each of keys.slice(this.#chance.below(keys.length)).slice(0, 6)) this.#commit(each, 'gone'); // prettier-ignore
    else this.#commit(key, 'altered');
  }

  /** Connections of one process; what it is told only comes when it is there to hear it. */
  dispatcher(heard: () => Promise<void>): Dispatcher {
    const request = async (options: Dispatcher.RequestOptions) => {
      const { path, method } = options;
      const { latencyMs } = this.traits;
      await this.#time.sleep(this.#chance.below(latencyMs / 2));
      await heard();
      if (method === 'GET') this.requests.push(this.#time.now());
      const answer = this.#answer(String(path), headerOf(options, 'authorization'));
      await this.#time.sleep(this.#chance.below(latencyMs / 2));
      await heard();
      if (answer === 'drop') throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      return answer;
    };
    return { request, destroy: () => Promise.resolve() } as unknown as Dispatcher;
  }

  #answer(path: string, authorization: string | undefined) {
    if (this.isDown) return 'drop' as const;
    const isLogin = path.endsWith('/login');
    const fault = this.#chance.is(this.faultiness) ? this.#chance.pick(FAULTS) : undefined;
    switch (isLogin && fault === '401' ? undefined : fault) {
      case 'drop':
        return fault;
      case '500':
        return this.#reply(500, JSON.stringify({ message: 'oops' }));
      case '502':
        return this.#reply(502, '<h1>Bad Gateway</h1>');
      case '429':
        return this.#reply(429, '{}');
      case '429-later':
        return this.#reply(429, '{}', { 'retry-after': '3' });
      case '401':
        this.#token += 1; // whatever was given out is over
        return this.#reply(401, '{}');
      case 'garbage':
        return this.#reply(200, '<html></html>');
    }
    const url = new URL(path, 'http://sim');
    if (isLogin) {
      return this.#reply(200, JSON.stringify({ accessToken: `t.${this.#token}`, expiresIn: 1_800_000 })); // prettier-ignore
    }
    if (authorization !== `Bearer t.${this.#token}`) return this.#reply(401, '{}');
    const text = this.#page(url.searchParams);
    return fault === 'truncated' ? this.#reply(200, text, {}, text.length / 2) : this.#reply(200, text); // prettier-ignore
  }

  #page(query: URLSearchParams): string {
    const number = query.get('orderNumber');
    const offset = Number(query.get('offset') ?? 0);
    const pageSize = Number(query.get('pageSize') ?? 1_000);
    const from = query.get('modifiedFromDate');
    const to = query.get('modifiedToDate');
    let rows = [...this.#rows];
    if (number !== null) rows = rows.filter(([key]) => String(key) === number);
    if (from !== null && to !== null) {
      const [low, high] = [Date.parse(from), Date.parse(to)];
      const { boundsInclude } = this.traits;
      rows = rows.filter(([, { updatedAt: at }]) =>
        boundsInclude ? at >= low && at <= high : at > low && at < high,
      );
    }
    const [field, direction] = this.traits.sort.split('-');
    const sign = direction === 'asc' ? 1 : -1;
    rows.sort(([a, x], [b, y]) =>
      field === 'key' ? sign * (a - b) : sign * (x.updatedAt - y.updatedAt || a - b),
    );
    const data = rows.slice(offset, offset + pageSize).map(([, { json }]) => json);
    const has_next_page = offset + pageSize < rows.length;
    return JSON.stringify({ data, pagination: { total_records: rows.length, has_next_page } });
  }

  #reply(statusCode: number, text: string, headers: Record<string, string> = {}, cutAt?: number) {
    const { sendsDate, dateSkewMs } = this.traits;
    if (sendsDate) headers.date = new Date(this.#time.now() + dateSkewMs).toUTCString();
    // eslint-disable-next-line @typescript-eslint/require-await
    async function* body() {
      yield Buffer.from(cutAt === undefined ? text : text.slice(0, cutAt));
      if (cutAt !== undefined) throw Object.assign(new Error('closed'), { code: 'UND_ERR_SOCKET' });
    }
    return { statusCode, headers, body: body() };
  }

  #newKey(): number {
    return (this.#next += 1 + this.#chance.below(3));
  }

  /** A change that is stamped now, and seen now or later. */
  #commit(key: number, what: 'new' | 'altered' | 'gone'): void {
    const { lateMs } = this.traits;
    const stamp = this.#time.now() + this.stampSkewMs;
    const show = () => {
      this.#pending -= 1;
      const old = this.#rows.get(key);
      if (what === 'gone') this.#remove(key);
      else if (what === 'new' || old) {
        const version = Number(old?.json.version ?? 0) + 1;
        this.#write(key, stamp, old?.json ?? {}, version);
      }
    };
    this.#pending += 1;
    if (lateMs === 0) return show();
    this.#time.scheduler.schedule(show, this.#chance.below(lateMs));
  }

  #write(key: number, at: number, old: SimRecord['json'], version: number): void {
    const { resolutionMs, resource } = this.traits;
    const updatedAt = Math.floor(at / resolutionMs) * resolutionMs;
    const updated_at = new Date(updatedAt).toISOString();
    const dated = resource === 'inventory' ? {} : { updated_at };
    const created = resource === 'inventory' ? {} : { created_at: old.created_at ?? updated_at };
    const json = {
      [keyField(resource)]: key,
      ...created,
      ...dated,
      version,
      ...(resource === 'orders' && this.#statuses(old)),
      ...(this.#chance.is(0.02) && { [`extra_${this.#chance.below(3)}`]: version }),
    };
    this.#rows.set(key, { json, updatedAt });
    this.#see(key, JSON.stringify(json));
  }

  #statuses(old: SimRecord['json']) {
    const next = (was: unknown) =>
      was === undefined || this.#chance.is(0.5)
        ? this.#chance.pick(['pending', 'paid', 'refunded'])
        : was;
    const parcels = (old.fulfillment_info ?? []) as { fulfillment_id: string; status: string }[];
    const more = this.#chance.is(0.2) ? [{ fulfillment_id: `F${parcels.length}`, status: 'open' }] : []; // prettier-ignore
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
    if (this.#rows.delete(key)) this.#see(key, null);
  }

  #see(key: number, text: string | null): void {
    const sights = this.history.get(key) ?? [];
    this.history.set(key, sights);
    sights.push({ at: this.#time.now(), text });
  }
}

function headerOf({ headers }: Dispatcher.RequestOptions, name: string): string | undefined {
  return (headers as Record<string, string>)[name];
}
