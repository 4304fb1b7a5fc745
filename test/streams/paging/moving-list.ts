import {
  asapScheduler,
  defer,
  delay,
  finalize,
  lastValueFrom,
  map,
  scheduled,
  timer,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import type { Observable } from 'rxjs';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import type { Position } from '../../../src/streams/paging/anchors.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { mulberry32 } from '../../support/chance.ts';
import { jsonsOf, records } from '../../support/records.ts';

export const SORTS = ['key-asc', 'key-desc', 'updated-asc', 'updated-desc'] as const;
export type Sort = (typeof SORTS)[number];

interface Row {
  readonly id: number;
  /** Rises with each change. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface ListOptions {
  readonly seed: number;
  readonly sort: Sort;
  readonly size: number;
  /** Changes, each of any kind, at most, before each request but the first. Default 0. */
  readonly churn?: number;
  /** Nothing is added or deleted: the total holds still. Default false. */
  readonly changesOnly?: boolean;
  /** Times during a scan that a burst strikes: deletions or insertions in a row. Default 0. */
  readonly bursts?: number;
  /** Rows in a burst, at most. */
  readonly burstSize?: number;
  /** Rows that share one `updated_at` to begin with, at most. Default 1. */
  readonly ties?: number;
  /** Orders ties anew at each request. Default false. */
  readonly shuffled?: boolean;
  /** Its records have a field that differs in every answer; `bare` ones nothing else beside their key. Default none. */
  readonly volatile?: 'none' | 'one' | 'bare';
}

/** A list that moves before every request, in a way that its seed decides. */
export class MovingList {
  readonly #options: Required<ListOptions>;
  readonly #random: (below: number) => number;
  #rows: Row[] = [];
  #clock = 1_000_000;
  #bursts: number;
  #frozen = false;
  requests = 0;
  /** Ids of rows that were changed or deleted since the list was made. */
  readonly touched = new Set<number>();
  readonly began: number;
  readonly initial: readonly number[];

  constructor(options: ListOptions) {
    const defaults = {
      churn: 0,
      bursts: 0,
      burstSize: 0,
      ties: 1,
      shuffled: false,
      changesOnly: false,
      volatile: 'none' as const,
    };
    this.#options = { ...defaults, ...options };
    this.#random = randomOf(options.seed);
    this.#bursts = this.#options.bursts;
    for (let k = 0; this.#rows.length < options.size; k++) {
      // The order of keys and the order of times have nothing to do with each other.
      const updatedAt = 1_000 + this.#random(100_000) * 10;
      for (let n = 1 + this.#random(this.#options.ties); n > 0; n--) {
        const id = 100_000 + this.#rows.length * 10;
        this.#rows.push({ id, version: 0, updatedAt });
      }
    }
    this.initial = this.#rows.map(({ id }) => id);
    this.began = ++this.#clock;
  }

  /** The rows as they are, id to version. */
  truth(): Map<number, number> {
    return new Map(this.#rows.map(({ id, version }) => [id, version]));
  }

  /** Moves, then answers. `since` leaves out what was last updated before. */
  page(offset: number, pageSize: number, since = -Infinity): Answer {
    if (this.requests++ > 0) this.#move(offset);
    this.#sort();
    const rows = this.#rows.filter(({ updatedAt }) => updatedAt >= since);
    return answer(
      rows.slice(offset, offset + pageSize).map((row) => this.#recordOf(row)),
      {
        total: rows.length,
        hasNext: offset + pageSize < rows.length,
      },
    );
  }

  /** From now on nothing moves. */
  freeze(): void {
    this.#frozen = true;
  }

  #recordOf(row: Row): JsonObject {
    const { volatile } = this.#options;
    if (volatile === 'none') return recordOf(row);
    const seen = `${this.requests}`;
    return volatile === 'one' ? { ...recordOf(row), seen } : { id: row.id, seen };
  }

  #sort(): void {
    const { sort, shuffled } = this.#options;
    const [field, direction] = sort.split('-');
    const sign = direction === 'asc' ? 1 : -1;
    const dice = new Map(shuffled ? this.#rows.map(({ id }) => [id, this.#random(1_000_000)]) : []);
    this.#rows.sort((a, b) => {
      if (field === 'key') return sign * (a.id - b.id);
      const byChance = (dice.get(a.id) ?? 0) - (dice.get(b.id) ?? 0);
      return sign * (a.updatedAt - b.updatedAt || byChance || a.id - b.id);
    });
  }

  #move(offset: number): void {
    if (this.#frozen) return;
    const { churn, changesOnly } = this.#options;
    for (let n = this.#random(churn + 1); n > 0; n--) {
      this.#clock += 1;
      const kind = changesOnly ? 9 : this.#random(10);
      if (kind < 2) this.#add(this.#random(3));
      else if (kind < 4) this.#remove(this.#random(this.#rows.length), 1);
      else this.#change(this.#random(this.#rows.length));
    }
    if (this.#bursts === 0 || this.#random(4) > 0) return;
    this.#bursts -= 1;
    this.#burst(offset);
  }

  #burst(offset: number): void {
    this.#clock += 1;
    const length = 1 + this.#random(this.#options.burstSize);
    const near = Math.max(0, Math.min(offset, this.#rows.length) - this.#random(2 * length));
    const kind = this.#random(6);
    if (kind === 0) for (let n = length; n > 0; n--) this.#add(2);
    else if (kind === 1) for (let n = length; n > 0; n--) this.#change(near + n);
    else this.#remove(kind < 5 ? near : this.#random(this.#rows.length), length);
  }

  /** 0: behind all keys; 1: among them; 2: in front of them. */
  #add(where: number): void {
    const ids = this.#rows.map(({ id }) => id);
    let id = Math.max(100_000, ...ids) + 10;
    if (where === 1) id = 100_000 + this.#random(ids.length * 10);
    if (where === 2) id = Math.min(100_000, ...ids) - 1 - this.#random(3);
    while (ids.includes(id) || this.touched.has(id)) id += where === 2 ? -1 : 1;
    this.touched.add(id);
    this.#rows.push({ id, version: 0, updatedAt: this.#clock });
  }

  /** Rows that stand side by side. */
  #remove(place: number, count: number): void {
    for (const { id } of this.#rows.splice(place, count)) this.touched.add(id);
  }

  #change(place: number): void {
    const row = this.#rows[place];
    if (!row) return;
    this.touched.add(row.id);
    this.#rows[place] = { ...row, version: row.version + 1, updatedAt: this.#clock };
  }
}

function recordOf({ id, version, updatedAt }: Row): JsonObject {
  return { id, version, updated_at: new Date(updatedAt).toISOString() };
}

export function answer(
  data: readonly JsonValue[],
  { total, hasNext }: Pick<Answer, 'total' | 'hasNext'>,
): Answer {
  return {
    data: records(data, keyOfId),
    total,
    hasNext,
    span: { begin: 1, end: 2 },
    serverTime: undefined,
  };
}

export const keyOfId = (record: JsonValue): string | undefined => {
  const { id } = (record ?? {}) as { id?: JsonValue };
  return typeof id === 'number' ? String(id) : undefined;
};

export interface Scan {
  /** The newest version read of each id. */
  readonly read: ReadonlyMap<number, number>;
  readonly troubles: ScanTrouble[];
}

export interface ScanOptions extends Partial<PagesOptions> {
  /** Leaves out what was last updated before. */
  readonly since?: number;
}

/** {@link pages} of a list; fails after a thousand requests, which no scan here needs to end. */
export function pagesOf(list: MovingList, options: ScanOptions): Observable<ScanPage> {
  let requests = 0;
  return pages({
    request: ({ offset, pageSize }) => {
      if (++requests > 1_000) throw new Error('the scan does not end');
      return scheduled([0], asapScheduler).pipe(
        map(() => list.page(offset, pageSize, options.since)),
      );
    },
    keyOf: keyOfId,
    ...options,
  });
}

/**
 * {@link pages} of a list, asked for ahead: requests and answers take their time, and overtake each other.
 * Tells also how many requests were under way at once, at most.
 */
export function scanAhead(
  list: MovingList,
  seed: number,
  options: ScanOptions,
): Scan & { readonly most: number } {
  const scheduler = new VirtualTimeScheduler();
  const random = randomOf(seed);
  const troubles: ScanTrouble[] = [];
  const answers: Answer[] = [];
  let underWay = 0;
  let most = 0;
  let requests = 0;
  const scan$ = pages({
    request: ({ offset, pageSize }) =>
      defer(() => {
        if (++requests > 2_000) throw new Error('the scan does not end');
        most = Math.max(most, ++underWay);
        const elapsedMs = 500 + random(500);
        return timer(random(400), scheduler).pipe(
          map(() => list.page(offset, pageSize)),
          delay(random(100), scheduler),
          map((page): Answer => ({ ...page, elapsedMs })),
          finalize(() => (underWay -= 1)),
        );
      }),
    keyOf: keyOfId,
    onTrouble: (trouble) => troubles.push(trouble),
    ahead: { most: 9, scheduler },
    ...options,
  });
  let isDone = false;
  scan$.subscribe({
    next: ({ answer }) => answers.push(answer),
    complete: () => (isDone = true),
  });
  scheduler.flush();
  if (!isDone || underWay > 0) throw new Error(`the scan did not end: ${underWay} under way`);
  return { read: newest(answers), troubles, most };
}

export async function scan(list: MovingList, options: ScanOptions): Promise<Scan> {
  const troubles: ScanTrouble[] = [];
  const onTrouble = (trouble: ScanTrouble) => void troubles.push(trouble);
  const all = await lastValueFrom(pagesOf(list, { onTrouble, ...options }).pipe(toArray()));
  return { read: newest(all.map((page) => page.answer)), troubles };
}

/** Reads the list as its description says: `offset += page_size`. */
export function plainScan(list: MovingList, pageSize: number): Map<number, number> {
  const answers: Answer[] = [];
  for (let offset = 0; ; offset += pageSize) {
    const answer = list.page(offset, pageSize);
    answers.push(answer);
    if (!answer.hasNext) return newest(answers);
  }
}

/** The newest version of each id. */
export function newest(answers: readonly Answer[]): Map<number, number> {
  const read = new Map<number, number>();
  for (const { data } of answers) {
    for (const record of jsonsOf(data) as { id: number; version: number }[]) {
      read.set(record.id, record.version);
    }
  }
  return read;
}

/** Ids that stood still during the whole scan and were not read. */
export function lost(list: MovingList, read: ReadonlyMap<number, number>): number[] {
  return list.initial.filter((id) => !list.touched.has(id) && !read.has(id));
}

/** A position as a cursor gives it back. */
export const throughJson = (position: Position): Position =>
  JSON.parse(JSON.stringify(position)) as Position;

/** Uniform integers below a bound; the same for one seed. */
export function randomOf(seed: number): (below: number) => number {
  const next = mulberry32(seed);
  return (below) => Math.floor(next() * below);
}
