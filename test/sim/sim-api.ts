import type { Dispatcher } from 'undici';
import { CellarstreamError } from '../../src/core/errors.ts';
import { MAX_LAG_MS } from '../../src/streams/http/response-age.ts';
import { answering } from '../support/answering.ts';
import type { Given } from '../support/answering.ts';
import type { Chance } from '../support/chance.ts';
import { keyField, SimList } from './sim-list.ts';
import type { ListTraits, SimQuery, SimRecord } from './sim-list.ts';
import { paginationOf, PAGING_AS_WRITTEN, placeOf } from './sim-paging.ts';
import type { Paging, Place, Poison } from './sim-paging.ts';
import type { SimTime } from './sim-time.ts';

/** What of the API a run draws by its seed. */
export interface ApiTraits extends ListTraits {
  /** The clock that `Date` comes from, ahead of the true time, ms. */
  readonly dateSkewMs: number;
  readonly sendsDate: boolean;
  /** Answer to a window that ends later than the server's time. */
  readonly futureEnd: FutureEnd;
  /** Answer to each request with dates in place of a page; null: pages. */
  readonly datedFailure: DatedFailure | null;
  /** Most that an answer takes, ms. */
  readonly latencyMs: number;
  /** List requests in any 60 seconds. */
  readonly quotaPerMinute: number;
  readonly loginsPerMinute: number;
}

/** A list that reads date parameters, and writes stamps, as the API's description has it. */
export const DATES_AS_WRITTEN = {
  parameterZone: 0,
  stampZone: null,
  ignoresDates: false,
  futureEnd: 'as written',
  datedFailure: null,
} as const;

/** Answer to a window that ends in the future: its records, a status, or no records. */
export type FutureEnd = 'as written' | 400 | 500 | 'empty';

/** How requests with dates fail, while others are answered: a status, the page of a firewall, or no answer. */
export type DatedFailure =
  400 | 401 | 403 | 404 | 414 | 422 | 429 | 431 | 504 | 'firewall' | 'drop';

/** Who asks. */
export interface SimClient {
  readonly name: string;
  /** Waits while the process stands still; for ever when it is dead. */
  readonly awake: () => Promise<void>;
  /** Whether a request may leave it now. */
  readonly mayBeSent: () => boolean;
  /** Whether what it is told now is for its records, and not for finding their key. */
  readonly isReading: () => boolean;
}

/** A request as the server counts it. */
export interface Arrival {
  readonly at: number;
  readonly what: 'list' | 'login';
  readonly client: SimClient;
}

/** A list's answer that a process was there to hear; begin and end are places in one order. */
export interface Heard {
  readonly client: SimClient;
  readonly begin: number;
  readonly end: number;
  readonly at: number;
  readonly query: SimQuery;
  readonly rows: readonly SimRecord[];
  /** Whether what it says has to be published. */
  readonly isOwed: boolean;
}

/** How the API reports a token that it does not accept, 401 first. */
export const DEAD_TOKENS: readonly (readonly [status: number, text: string])[] = [
  [401, '{}'],
  [401, '{}'],
  [403, '{}'],
  [400, '{"message":"bad request"}'],
  [419, '<h1>Page Expired</h1>'],
  [498, '{}'],
  [500, '{"message":"jwt invalid"}'],
  [302, ''],
  [200, '{"error":"Unauthenticated."}'],
  [200, '<form></form>'],
];
/** Read replicas behind the API: some of its answers show the list as it was a while ago. */
export interface Replica {
  readonly lagMs: number;
  readonly turn: 'every second' | 'by chance';
}

/** A cache in front of the API: pages of the whole list come from it for a while. */
export interface PageCache {
  readonly ttlMs: number;
  /** Whether it says how old they are; else their `Date` is that of the API's answer. */
  readonly sendsAge: boolean;
}

interface CachedPage {
  readonly at: number;
  readonly date: string | undefined;
  readonly text: string;
  readonly shown: Shown;
}

type Fault = 'drop' | '500' | '502' | '429' | '429-later' | '401' | 'truncated' | 'garbage';
const FAULTS: readonly Fault[] = [
  'drop',
  '500',
  '502',
  '429',
  '429-later',
  '401',
  'truncated',
  'garbage',
];
export const WINDOW_MS = 60_000;

/** Whether the newest arrival, of the kind `what`, exceeds its quota. */
export function isOverQuota(
  what: Arrival['what'],
  arrivals: readonly Arrival[],
  { quotaPerMinute, loginsPerMinute }: Pick<ApiTraits, 'quotaPerMinute' | 'loginsPerMinute'>,
): boolean {
  const now = arrivals.at(-1)!.at;
  let left = what === 'list' ? quotaPerMinute : loginsPerMinute;
  for (let k = arrivals.length - 1; k >= 0 && left >= 0; k--) {
    const arrival = arrivals[k]!;
    if (now - arrival.at >= WINDOW_MS) break;
    if (arrival.what === what) left -= 1;
  }
  return left < 0;
}
/** A field that differs in every answer, and what is said of it in the settings. */
export const VOLATILE = 'signed';
/** What every `contact` begins with. */
export const PERSONAL = 'nobody may know';
/** So much may one request be faster on its way than another: the headroom of the quota. */
const MAX_APART_MS = 900;
/** Beside the time that another takes, a page mostly waits no longer until it is published or given up. */
const LATE_MS = 100;

/** For a while some records are no JSON. */
export interface Oddity {
  /** Times, ms since the epoch. */
  readonly from: number;
  readonly to: number;
  /** `cut`: the server ends its answer in the record. */
  readonly way: 'word' | 'brace' | 'quote' | 'cut';
}
/** Most records of a page by which the service probes how the API pages. All pages of a reading are larger. */
const MOST_PROBED = 2;
/** A window that holds no record. */
const NO_WINDOW = [1, 0] as const;
/** So many keys apart are the records that it strikes. */
const ODD_EACH = 9;
const CUT = '\0';

/** What comes back: nothing, or an answer, with the records that it is made of if it can be read. */
type Reply = 'drop' | { readonly answer: Given; readonly shown?: Shown };
type Shown = Pick<Heard, 'query' | 'rows' | 'isOwed'>;

/** The API of one list: its HTTP, its token, its quota as a server counts it, its faults. */
export class SimApi {
  readonly traits: ApiTraits;
  readonly list: SimList;
  readonly arrivals: Arrival[] = [];
  readonly heard: Heard[] = [];
  readonly #chance: Chance;
  readonly #time: SimTime;
  #token = 0;
  #order = 0;
  /** How likely a request meets a fault. */
  faultiness = 0;
  isDown = false;
  /** How long a new token is refused, ms. */
  tokenLagMs = 0;
  datedFailure: DatedFailure | null;
  deadToken = DEAD_TOKENS[0]!;
  #given = -1;
  #validFrom = 0;
  /** Whether records hold a field that is not to be published; it is another one in each answer. */
  isPersonal = false;
  /** Whether records hold a field that differs in every answer. */
  isVolatile = false;
  oddity: Oddity | undefined;
  paging: Paging = PAGING_AS_WRITTEN;
  poison: Poison | undefined;
  replica: Replica | undefined;
  cache: PageCache | undefined;
  readonly #cached = new Map<string, CachedPage>();
  /** Back halves of pages that were refused as too large, and all parts of them, by {@link placeText}. */
  readonly #backParts = new Set<string>();
  #lists = 0;
  /** Of each value of that field the records that were sent with it. */
  readonly signed = new Map<string, readonly SimRecord[]>();
  /** Of the clock that `Date` comes from: it may be set back. */
  dateSkewMs: number;
  /** Whether it was, by so much that its answers look like those of a cache at first. */
  isDateSetBack = false;

  constructor(traits: ApiTraits, chance: Chance, time: SimTime, count: number) {
    this.traits = traits;
    this.#chance = chance;
    this.#time = time;
    this.dateSkewMs = traits.dateSkewMs;
    this.datedFailure = traits.datedFailure;
    this.list = new SimList(traits, chance, time, count);
  }

  /**
   * Connections of one process. What it has sent arrives whatever becomes of it; what it is told
   * only comes when it is there to hear it.
   */
  dispatcher(client: SimClient): Dispatcher {
    const way = this.traits.latencyMs / 2;
    return answering(async (options, isAborted) => {
      if (!client.mayBeSent()) throw new CellarstreamError('LEASE_OVER', 'it is over');
      const begin = ++this.#order;
      await this.#time.sleep(this.#chance.below(Math.min(way, MAX_APART_MS)));
      const reply = this.#reply(client, options);
      await this.#time.sleep(this.#chance.below(way));
      await client.awake();
      if (reply === 'drop') throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      const { answer, shown } = reply;
      const end = ++this.#order;
      if (shown && client.isReading() && !isAborted())
        this.heard.push({ client, begin, end, at: this.#time.now(), ...shown });
      return answer;
    });
  }

  /** Whether the newest token that a login has issued is no longer accepted. */
  get isTokenDead(): boolean {
    return this.#given !== this.#token;
  }

  skewDate(ms: number): void {
    this.dateSkewMs += ms;
    this.isDateSetBack ||= this.traits.sendsDate && ms < -MAX_LAG_MS;
  }

  /** A process has given up an answer that it asked for ahead: one of those that came of late, nobody says which. */
  dropped(name: string, offset: number): void {
    const isOfPlace = ({ client, query }: Heard) => client.name === name && query.offset === offset;
    const newest = this.heard.findLast(isOfPlace);
    const others = this.heard.filter(
      (each) => each !== newest && !(isOfPlace(each) && this.#isOfLate(each)),
    );
    this.heard.splice(0, Infinity, ...others);
  }

  #isOfLate({ at }: Heard): boolean {
    return at >= this.#time.now() - this.traits.latencyMs - LATE_MS;
  }

  #reply(client: SimClient, { path, headers }: Dispatcher.DispatchOptions): Reply {
    const isLogin = String(path).endsWith('/login');
    const what = isLogin ? 'login' : 'list';
    this.arrivals.push({ at: this.#time.now(), what, client });
    if (this.isDown) return 'drop';
    const fault = this.#chance.is(this.faultiness) ? this.#chance.pick(FAULTS) : undefined;
    switch (isLogin && fault === '401' ? undefined : fault) {
      case 'drop':
        return 'drop';
      case '500':
        return this.#answer(500, JSON.stringify({ message: 'oops' }));
      case '502':
        return this.#answer(502, '<h1>Bad Gateway</h1>');
      case '429':
        return this.#answer(429, '{}');
      case '429-later':
        return this.#answer(429, '{}', { 'retry-after': '3' });
      case '401':
        this.#token += 1; // whatever was given out is over
        return this.#answer(...this.deadToken);
      case 'garbage':
        return this.#answer(200, '<html></html>');
    }
    if (isOverQuota(what, this.arrivals, this.traits)) return this.#answer(429, '{}');
    const token = `t.${this.#token}`;
    if (isLogin) {
      if (this.#given !== this.#token) this.#validFrom = this.#time.now() + this.tokenLagMs;
      this.#given = this.#token;
      return this.#answer(200, JSON.stringify({ accessToken: token, expiresIn: 1_800_000 }));
    }
    const { authorization } = headers as Record<string, string>;
    const isAccepted = authorization === `Bearer ${token}` && this.#time.now() >= this.#validFrom;
    if (!isAccepted) return this.#answer(...this.deadToken);

    const now = this.#time.now() + this.dateSkewMs;
    const sent = queryOf(new URL(String(path), 'http://sim').searchParams, now);
    if (sent.window && this.datedFailure !== null) return this.#failed(this.datedFailure);
    const { futureEnd, parameterZone } = this.traits;
    const latest = Math.max(...(sent.window ?? [0])) - parameterZone * 60_000;
    const isFuture = latest > now && futureEnd !== 'as written';
    if (isFuture && futureEnd !== 'empty') return this.#answer(futureEnd, '{}');
    const query = isFuture ? { ...sent, window: NO_WINDOW } : sent;
    const cached = this.#fromCache(String(path));
    if (cached) return cached;
    const behindMs = this.#lagMs();
    const isPage = query.orderNumber === null;
    const place = isPage ? placeOf(query, this.paging) : query;
    if (place === 400) return this.#answer(400, JSON.stringify({ message: 'bad request' }));
    if (place === 504) {
      for (const part of partsOf(halvesOf(query)[1])) this.#backParts.add(placeText(part));
      return this.#answer(504, '<h1>Gateway Time-out</h1>');
    }
    const { cap } = isPage ? this.paging : { cap: Infinity };
    const within = ({ offset, pageSize }: Place) => ({
      offset,
      pageSize: Math.max(0, Math.min(pageSize, cap - offset)),
    });
    const asked = this.list.page({ ...query, ...within(place) }, behindMs);
    const total = Math.min(asked.total, cap);
    const isWrapped = this.paging.wraps && isPage && place.offset > 0 && place.offset >= total;
    const used = isWrapped ? { ...place, offset: 0 } : place;
    const { rows } = isWrapped ? this.list.page({ ...query, ...within(used) }, behindMs) : asked;
    if (rows.some((row) => this.#isPoison(row)))
      return this.#answer(500, JSON.stringify({ message: 'oops' }));
    const pagination = paginationOf({ asked: query, used }, total, this.paging);
    const contact = this.isPersonal ? { contact: `${PERSONAL} ${this.arrivals.length}` } : {};
    const signature = `signature ${this.arrivals.length}`;
    if (this.isVolatile) this.signed.set(signature, rows);
    const more = { ...contact, ...(this.isVolatile && { [VOLATILE]: signature }) };
    const texts = rows.map((row) => {
      const text = JSON.stringify({ ...row.json, ...more });
      return this.#isOdd(row) ? this.#broken(text) : text;
    });
    const whole = `{"data":[${texts.join()}],"pagination":${JSON.stringify(pagination)}}`;
    const text = whole.split(CUT, 1)[0]!;
    if (fault === 'truncated') return this.#answer(200, text, {}, text.length / 2);
    const shownRows = rows.filter((row) => !this.#isOdd(row));
    // Three kinds of answers need not be published: stale ones of a replica or a cache; probes of one or two records, which only show why another
    // page fails (`page-attempts.ts`); and parts behind the front half of a page that is too large (`failing-pages.ts`), which are read
    // again in smaller pages.
    const isProbe = isPage && query.pageSize <= MOST_PROBED;
    const isOwed = behindMs === 0 && !isProbe && !this.#backParts.has(placeText(query));
    const shown = { query, rows: shownRows, isOwed };
    const { answer } = this.#answer(200, text);
    const isWhole = query.window === null && query.orderNumber === null;
    if (this.cache && isWhole && !this.isVolatile) {
      const { date } = answer.headers as { date?: string };
      const kept = { at: this.#time.now(), date, text, shown: { ...shown, isOwed: false } };
      this.#cached.set(String(path), kept);
    }
    return { answer, shown };
  }

  #failed(failure: DatedFailure): Reply {
    if (failure === 'drop') return 'drop';
    if (failure === 'firewall') return this.#answer(403, '<h1>Request blocked</h1>');
    return this.#answer(failure, failure === 504 ? '<h1>Gateway Time-out</h1>' : '{}');
  }

  #fromCache(path: string): Reply | undefined {
    const page = this.#cached.get(path);
    if (!this.cache || !page) return undefined;
    const ageMs = this.#time.now() - page.at;
    if (ageMs >= this.cache.ttlMs) return undefined;
    const { sendsAge } = this.cache;
    const headers = {
      ...(page.date !== undefined && { date: page.date }),
      ...(sendsAge && { age: String(Math.ceil(ageMs / 1_000)) }),
    };
    return { answer: { status: 200, headers, text: page.text }, shown: page.shown };
  }

  #lagMs(): number {
    if (!this.replica) return 0;
    const { lagMs, turn } = this.replica;
    this.#lists += 1;
    const isBehind = turn === 'by chance' ? this.#chance.is(0.5) : this.#lists % 2 === 0;
    return isBehind ? lagMs : 0;
  }

  /** Whether a record was no JSON, or made its pages fail, at any time between. */
  readonly wasOdd = (key: number, begin: number, end: number): boolean => {
    const { poison } = this;
    if (key === poison?.key && begin < poison.to && end >= poison.from) return true;
    return this.#wasNoJson(key, begin, end);
  };

  #wasNoJson(key: number, begin: number, end: number): boolean {
    const { from, to } = this.oddity ?? { from: Infinity, to: Infinity };
    return key % ODD_EACH === 0 && begin < to && end >= from;
  }

  #isOdd({ json }: SimRecord): boolean {
    const now = this.#time.now();
    return this.#wasNoJson(Number(json[keyField(this.traits.resource)]), now, now);
  }

  #isPoison({ json }: SimRecord): boolean {
    const { poison } = this;
    const now = this.#time.now();
    if (!poison || now < poison.from || now >= poison.to) return false;
    return json[keyField(this.traits.resource)] === poison.key;
  }

  #broken(text: string): string {
    switch (this.oddity!.way) {
      case 'word':
        return text.replace('{', '{"total":NaN,');
      case 'brace':
        return `${text}}`;
      case 'quote':
        return text.replace('{', '{"note":"5" tall",');
      case 'cut':
        return text.slice(0, text.length / 2) + CUT;
    }
  }

  #answer(status: number, text: string, headers: Record<string, string> = {}, cutAt?: number) {
    if (this.traits.sendsDate)
      headers.date = new Date(this.#time.now() + this.dateSkewMs).toUTCString();
    if (cutAt === undefined) return { answer: { status, headers, text } };
    const cutBy = Object.assign(new Error('closed'), { code: 'UND_ERR_SOCKET' });
    return { answer: { status, headers, text: text.slice(0, cutAt), cutBy } };
  }
}

/** The two parts that a page is split into. */
function halvesOf(page: SimQuery): readonly [front: SimQuery, back: SimQuery] {
  const half = Math.ceil(page.pageSize / 2);
  const back = { offset: page.offset + half, pageSize: page.pageSize - half };
  return [
    { ...page, pageSize: half },
    { ...page, ...back },
  ];
}

/** A page, its halves, their halves, and so on. */
function partsOf(page: SimQuery): readonly SimQuery[] {
  return [page, ...(page.pageSize > 1 ? halvesOf(page).flatMap(partsOf) : [])];
}

/** A place of a page of the whole list, or of a window of dates. */
function placeText({ offset, pageSize, window }: SimQuery): string {
  return JSON.stringify([offset, pageSize, window]);
}

/** @param now Where a window without an end ends. */
function queryOf(query: URLSearchParams, now: number): SimQuery {
  const [from, to] = [query.get('modifiedFromDate'), query.get('modifiedToDate')];
  return {
    offset: Number(query.get('offset') ?? 0),
    pageSize: Number(query.get('pageSize') ?? 1_000),
    orderNumber: query.get('orderNumber'),
    window: from === null ? null : [Date.parse(from), to === null ? now : Date.parse(to)],
  };
}
