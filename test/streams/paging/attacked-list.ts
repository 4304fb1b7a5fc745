import type { Answer } from '../../../src/streams/decode/response.ts';
import { answer, randomOf } from './moving-list.ts';

/** In which order a list is served; `value` is a field that changes, `ties` an order with ties that differ in each answer. */
export const ATTACKED_SORTS = [
  'key-asc',
  'key-desc',
  'updated-asc',
  'updated-desc',
  'value',
  'ties',
] as const;

/** How a server lies, and how its list moves. Times are ms of virtual time. */
export interface Attack {
  readonly seed: number;
  readonly sort: (typeof ATTACKED_SORTS)[number];
  readonly size: number;
  /** Mean time between two changes. */
  readonly changeEveryMs: number;
  /** Of the changes: records added and records deleted; the rest are altered. */
  readonly added: number;
  readonly deleted: number;
  /** When nothing changes any more. */
  readonly stillFrom: number;
  /** The list shows no more records than this; `total`: and says that there are no more; `offset`: later offsets are refused. */
  readonly cap: number;
  readonly capped: 'total' | 'offset' | 'next';
  /** When two of three records are hidden, and not counted. */
  readonly wrong: { readonly from: number; readonly to: number };
  /** Every other answer is of so long ago. */
  readonly lagMs: number;
  /** How `total_records` is told: rounded to tens, or as of so many ms ago. */
  readonly estimate: 'exact' | 'tens' | number;
  readonly hasTimes: boolean;
}

interface Version {
  readonly from: number;
  readonly to: number;
  readonly value: number;
  readonly updatedAt: number;
}

interface Row {
  readonly id: number;
  readonly version: Version;
}

/** A list with all of its history, as a server shows it that is attacked in several ways at once. */
export class AttackedList {
  readonly #attack: Attack;
  readonly #random: (below: number) => number;
  readonly #history = new Map<number, Version[]>();
  /** Records that exist after the newest change. */
  readonly #alive = new Map<number, Version>();
  #nextChange = 0;
  #now = 0;
  #nextId = 1_000;
  #requests = 0;

  constructor(attack: Attack) {
    this.#attack = attack;
    this.#random = randomOf(attack.seed);
    for (let k = 0; k < attack.size; k++) this.#add(-1 - this.#random(1_000_000));
  }

  /** Whether a record exists. */
  has(id: number, at: number): boolean {
    this.#moveTo(at);
    return this.#alive.has(id);
  }

  /** When a record was deleted. */
  goneSince(id: number): number {
    return this.#history.get(id)!.at(-1)!.to;
  }

  /** The records that a poll finds: those that have changed since a time. */
  changedSince(since: number, at: number): readonly Row[] {
    return this.#view(at).filter(({ version }) => version.updatedAt >= since);
  }

  /** A page; behind the cap an empty one that says so, as `listRequest` makes of refused offsets. */
  page(offset: number, pageSize: number, at: number): Answer {
    const { cap, capped, lagMs, estimate, hasTimes } = this.#attack;
    this.#moveTo(at);
    this.#requests += 1;
    if (capped === 'offset' && offset >= cap)
      return {
        ...answer([], { total: this.#view(at).length, hasNext: false }),
        isCut: true,
      };
    const of = this.#requests % 2 === 0 ? at - lagMs : at;
    const all = this.#sorted(this.#view(of));
    const shown = all.slice(0, cap).slice(offset, offset + pageSize);
    const counted = typeof estimate === 'number' ? this.#view(of - estimate).length : all.length;
    const honest = estimate === 'tens' ? Math.round(counted / 10) * 10 : counted;
    const total = capped === 'total' ? Math.min(honest, cap) : honest;
    const end = capped === 'total' ? Math.min(all.length, cap) : all.length;
    return answer(
      shown.map(({ id, version: { value, updatedAt } }) => ({
        ...{ id, value },
        ...(hasTimes && { updated_at: new Date(updatedAt + 2e12).toISOString() }),
      })),
      { total, hasNext: offset + pageSize < end },
    );
  }

  #moveTo(at: number): void {
    this.#now = Math.max(this.#now, at);
    const { changeEveryMs, stillFrom } = this.#attack;
    while (this.#nextChange <= Math.min(at, stillFrom)) {
      if (this.#nextChange > 0) this.#change(this.#nextChange);
      this.#nextChange += 1 + this.#random(2 * changeEveryMs);
    }
  }

  #change(at: number): void {
    const { added, deleted } = this.#attack;
    const lot = this.#random(1_000) / 1_000;
    if (lot < added) return this.#add(at);
    const alive = [...this.#alive.keys()];
    const id = alive[this.#random(alive.length)];
    if (id === undefined) return;
    const versions = this.#history.get(id)!;
    const last = versions.pop()!;
    versions.push({ ...last, to: at });
    this.#alive.delete(id);
    if (lot >= added + deleted || alive.length < 8) this.#push(id, at);
  }

  #add(at: number): void {
    this.#push((this.#nextId += 1 + this.#random(3)), at);
  }

  #push(id: number, at: number): void {
    const versions = this.#history.get(id) ?? [];
    this.#history.set(id, versions);
    const from = Math.max(0, at);
    const version = { from, to: Infinity, value: this.#random(1_000), updatedAt: at };
    versions.push(version);
    this.#alive.set(id, version);
  }

  #versionAt(id: number, at: number): Version | undefined {
    const time = Math.max(0, at);
    return this.#history.get(id)!.findLast(({ from, to }) => from <= time && time < to);
  }

  #view(at: number): Row[] {
    this.#moveTo(at);
    const isNow = at >= this.#now;
    const { wrong } = this.#attack;
    const isWrong = at >= wrong.from && at < wrong.to;
    const rows: Row[] = [];
    for (const id of isNow ? this.#alive.keys() : this.#history.keys()) {
      const version = isNow ? this.#alive.get(id) : this.#versionAt(id, at);
      if (version && !(isWrong && id % 3 > 0)) rows.push({ id, version });
    }
    return rows;
  }

  #sorted(rows: readonly Row[]): readonly Row[] {
    const { sort } = this.#attack;
    const shuffle = new Map(rows.map(({ id }) => [id, sort === 'ties' ? this.#random(1_000) : id]));
    const tie = (a: Row, b: Row) => shuffle.get(a.id)! - shuffle.get(b.id)!;
    const by = ({ id, version }: Row): number => {
      switch (sort) {
        case 'key-asc':
          return id;
        case 'key-desc':
          return -id;
        case 'updated-asc':
          return version.updatedAt;
        case 'updated-desc':
          return -version.updatedAt;
        case 'value':
          return version.value;
        case 'ties':
          return Math.floor(version.value / 100);
      }
    };
    return rows.toSorted((a, b) => by(a) - by(b) || tie(a, b));
  }
}
