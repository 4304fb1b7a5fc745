import type { Dispatcher } from 'undici';
import { CellarstreamError } from '../../src/core/errors.ts';
import { RESOURCES } from '../../src/sandbox/resources.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import type { Resource } from '../../src/description/description.ts';
import { answering } from '../support/answering.ts';
import type { SimTime } from '../sim/sim-time.ts';

/** A record as the API serves it: JSON text, which may be malformed. */
interface Row {
  readonly text: string;
  /** In epoch ms. */
  readonly updatedAt: number;
}

interface Page {
  readonly offset: number;
  readonly pageSize: number;
  readonly orderNumber: string | null;
  readonly window: readonly [from: number, to: number] | undefined;
}

/** A process that sends requests. */
interface GoldenClient {
  readonly isAlive: () => boolean;
  /** Whether its lease allows a request. */
  readonly maySend: () => boolean;
}

/** How long a request, and its response, is on its way, in ms. */
const WAY_MS = 40;
/** Spacing of the responses of one list, in ms: a response of another list never comes in the same ms. */
const SLOT_MS = 8;

/** The API with its six lists, by its description: nothing fails, and no two lists answer at the same time. */
export class GoldenApi {
  readonly #lists = new Map<Resource, GoldenList>(
    RESOURCES.map((name) => [name, new GoldenList()]),
  );
  readonly #lastSlot = new Map<string, number>();
  readonly #time: SimTime;
  /** Number of requests by path. */
  readonly requests = new Map<string, number>();

  constructor(time: SimTime) {
    this.#time = time;
  }

  list(resource: Resource): GoldenList {
    return this.#lists.get(resource)!;
  }

  /** Connections of one process, which gets no responses once it is not alive. */
  dispatcher({ isAlive, maySend }: GoldenClient): Dispatcher {
    return answering(async ({ path }) => {
      if (!maySend()) throw new CellarstreamError('LEASE_OVER', 'the lease has expired');
      const url = new URL(String(path), 'http://golden');
      this.requests.set(url.pathname, (this.requests.get(url.pathname) ?? 0) + 1);
      await this.#time.sleep(WAY_MS);
      const text = this.#textOf(url);
      const date = new Date(this.#time.now()).toUTCString();
      await this.#time.sleep(this.#slot(url.pathname) - this.#time.now());
      if (!isAlive()) await new Promise(() => undefined);
      return { status: 200, headers: { date, 'content-type': 'application/json' }, text };
    });
  }

  /** When the next response of a path may arrive, in epoch ms. */
  #slot(path: string): number {
    const nth = RESOURCES.findIndex((name) => listNamed(WINE, name).path === path) + 1; // 0 for logins
    const earliest = Math.max(this.#time.now() + WAY_MS, (this.#lastSlot.get(path) ?? 0) + 1);
    const slot = Math.ceil((earliest - nth) / SLOT_MS) * SLOT_MS + nth;
    this.#lastSlot.set(path, slot);
    return slot;
  }

  #textOf(url: URL): string {
    const resource = RESOURCES.find((name) => listNamed(WINE, name).path === url.pathname);
    if (!resource) return JSON.stringify({ accessToken: 'golden', expiresIn: 1_800_000 });
    const { rows, total, offset, pageSize } = this.list(resource).page(
      pageOf(url.searchParams, this.#time.now()),
    );
    const pagination = {
      total_records: total,
      has_next_page: offset + pageSize < total,
      current_offset: offset,
      page_size: pageSize,
    };
    return `{"data":[${rows.join()}],"pagination":${JSON.stringify(pagination)}}`;
  }
}

/** One list of the API, sorted by its records' numbers. */
export class GoldenList {
  readonly #rows = new Map<number, Row>();

  get numbers(): readonly number[] {
    return [...this.#rows.keys()].sort((a, b) => a - b);
  }

  put(number: number, text: string, updatedAt: number): void {
    this.#rows.set(number, { text, updatedAt });
  }

  remove(number: number): void {
    this.#rows.delete(number);
  }

  page({ offset, pageSize, orderNumber, window }: Page) {
    const all = this.numbers.flatMap((number) => {
      const row = this.#rows.get(number)!;
      if (orderNumber !== null && String(number) !== orderNumber) return [];
      const [from, to] = window ?? [-Infinity, Infinity];
      return row.updatedAt >= from && row.updatedAt <= to ? [row.text] : [];
    });
    const rows = all.slice(offset, offset + pageSize);
    return { rows, total: all.length, offset, pageSize };
  }
}

/** @param now End of a window without an end, in epoch ms. */
function pageOf(query: URLSearchParams, now: number): Page {
  const [from, to] = [query.get('modifiedFromDate'), query.get('modifiedToDate')];
  return {
    offset: Number(query.get('offset') ?? 0),
    pageSize: Number(query.get('pageSize') ?? 1_000),
    orderNumber: query.get('orderNumber'),
    window: from === null ? undefined : [Date.parse(from), to === null ? now : Date.parse(to)],
  };
}
