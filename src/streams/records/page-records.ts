// The records of a page: single ones, and runs whose records are made when they are asked for.

import type { Body } from '../http/body.ts';
import { KeyIndex } from './key-index.ts';
import { PageRecord } from './page-record.ts';
import type { KnownRun } from './page-record.ts';

/** A record of a page by itself, or some that are known again with their run. */
export type PagePart = PageRecord | PageRun;

/** The records of a page, in its order. Those of a run are made when somebody asks for them. */
export class PageRecords {
  readonly parts: readonly PagePart[];
  /** How many records they are. */
  readonly length: number;
  #keys: { readonly index: KeyIndex | undefined } | undefined;
  #all: readonly PageRecord[] | undefined;
  readonly #body: Body | undefined;

  /** @param body What they stand in, if it is to be given back. */
  constructor(parts: readonly PagePart[], body?: Body) {
    this.parts = parts;
    this.#body = body;
    if (isOfRecords(parts)) this.#all = parts;
    this.length = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  }

  /** Each record by itself. */
  all(): readonly PageRecord[] {
    return (this.#all ??= this.parts.flatMap((part) =>
      part instanceof PageRecord ? part : part.records(),
    ));
  }

  /** The record at a place, from 0; undefined where there is none. */
  at(place: number): PageRecord | undefined {
    if (this.#all) return this.#all[place];
    let left = place;
    for (const part of left < 0 ? [] : this.parts) {
      const size = sizeOf(part);
      if (left < size) return part instanceof PageRecord ? part : part.record(left);
      left -= size;
    }
    return undefined;
  }

  /** The keys of all of them, each at the place of its record; undefined where a record has none. */
  get keys(): KeyIndex | undefined {
    this.#keys ??= { index: indexOf(this.parts) };
    return this.#keys.index;
  }

  /** The `updated_at` of each, in ms since the epoch; null where it has none. */
  updatedAt(): readonly (number | null)[] {
    const times: (number | null)[] = [];
    const tell = (at: number | null) => void times.push(at);
    for (const part of this.parts) {
      if (part instanceof PageRecord) tell(part.updatedAt);
      else part.run.eachUpdatedAt(tell);
    }
    return times;
  }

  /** They are dealt with: nobody looks at what was sent of them any more. */
  settle(): void {
    this.#body?.giveBack();
  }

  /** Whether each of them is JSON. */
  get isReadable(): boolean {
    return this.parts.every(
      (part) => !(part instanceof PageRecord) || part.unreadableAt === undefined,
    );
  }
}

/** Whether none of them is known with a run: then they are all that there is to make. */
function isOfRecords(parts: readonly PagePart[]): parts is readonly PageRecord[] {
  return parts.every((part) => part instanceof PageRecord);
}

function sizeOf(part: PagePart): number {
  return part instanceof PageRecord ? 1 : part.size;
}

function indexOf(parts: readonly PagePart[]): KeyIndex | undefined {
  const index = new KeyIndex();
  for (const part of parts) {
    if (!(part instanceof PageRecord)) part.addKeysTo(index);
    else if (part.key === undefined) return undefined;
    else index.add(part.key);
  }
  return index;
}

/**
 * A run that was known again in a page, for all of its records: one of them is made when somebody asks for it. Pages of
 * nothing else are most of what is read, and nobody looks at most of their records.
 */
export class PageRun {
  readonly run: KnownRun;
  readonly page: Body;
  /** Where it begins in the page. */
  readonly from: number;

  constructor(run: KnownRun, page: Body, from: number) {
    this.run = run;
    this.page = page;
    this.from = from;
  }

  /** How many records it has. */
  get size(): number {
    return this.run.size;
  }

  /** The nth of its records, from 0. */
  record(nth: number): PageRecord {
    return PageRecord.ofRun(this, this.run.member(nth));
  }

  /** All of its records. */
  records(): readonly PageRecord[] {
    return this.run.members.map((member) => PageRecord.ofRun(this, member));
  }

  /** Adds the key of each, in their order. */
  addKeysTo(index: KeyIndex): void {
    this.run.eachKey((bytes, from, to) => index.addBytes(bytes, from, to));
  }
}
