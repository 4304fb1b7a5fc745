// The records of a page: single records, and known runs (units of adjacent records) whose records are created on access.

import type { Body } from '../http/body.ts';
import { KeyIndex } from './key-index.ts';
import { PageRecord } from './page-record.ts';
import type { KnownRun } from './page-record.ts';

/** Part of a page: a single record, or a run (adjacent records recognized as a unit by their bytes). */
export type PagePart = PageRecord | PageRun;

/** The records of a page, in order. The records of a run (a unit of adjacent records, recognized by its bytes) are created on access. */
export class PageRecords {
  /** Single records and runs, in page order. */
  readonly parts: readonly PagePart[];
  /** Number of records of the page, including those of runs. */
  readonly length: number;
  #keys: { readonly index: KeyIndex | undefined } | undefined;
  #all: readonly PageRecord[] | undefined;
  readonly #body: Body | undefined;

  /** Creates the records of a page. @param body Body that holds the records' bytes; {@link PageRecords.settle} releases its memory. */
  constructor(parts: readonly PagePart[], body?: Body) {
    this.parts = parts;
    this.#body = body;
    if (isOfRecords(parts)) this.#all = parts;
    this.length = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  }

  /** Returns all records of the page; creates those that belong to runs. */
  all(): readonly PageRecord[] {
    return (this.#all ??= this.parts.flatMap((part) =>
      part instanceof PageRecord ? part : part.records(),
    ));
  }

  /** Returns the record at an index, from 0; undefined if there is none. */
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

  /** Index of the keys of the page's records, in page order; undefined if any record has no key. */
  get keys(): KeyIndex | undefined {
    this.#keys ??= { index: indexOf(this.parts) };
    return this.#keys.index;
  }

  /** Returns the `updated_at` of each record of the page, in epoch ms; null for a record without one. */
  updatedAt(): readonly (number | null)[] {
    const times: (number | null)[] = [];
    const tell = (at: number | null) => void times.push(at);
    for (const part of this.parts) {
      if (part instanceof PageRecord) tell(part.updatedAt);
      else part.run.eachUpdatedAt(tell);
    }
    return times;
  }

  /** Releases the memory of the page's body. The records' bytes must not be read afterwards. */
  settle(): void {
    this.#body?.giveBack();
  }

  /** Whether every record of the page is JSON. */
  get isReadable(): boolean {
    return this.parts.every(
      (part) => !(part instanceof PageRecord) || part.unreadableAt === undefined,
    );
  }
}

/** Whether no part of a page is a run, so that the parts are its records. */
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
 * A known run (adjacent records recognized as a unit by their bytes) in a page. It stands for its records, which are created on access.
 * Most pages consist of runs alone, and most of their records are never accessed.
 */
export class PageRun {
  readonly run: KnownRun;
  /** Body of the response that contains the run. */
  readonly page: Body;
  /** Index of the run's first byte in that body. */
  readonly from: number;

  constructor(run: KnownRun, page: Body, from: number) {
    this.run = run;
    this.page = page;
    this.from = from;
  }

  /** Number of records in the run. */
  get size(): number {
    return this.run.size;
  }

  /** Creates the nth record of the run, from 0. */
  record(nth: number): PageRecord {
    return PageRecord.ofRun(this, this.run.member(nth));
  }

  /** Creates all records of the run. */
  records(): readonly PageRecord[] {
    return this.run.members.map((member) => PageRecord.ofRun(this, member));
  }

  /** Adds the key of each record of the run to `index`, in order. */
  addKeysTo(index: KeyIndex): void {
    this.run.eachKey((bytes, from, to) => index.addBytes(bytes, from, to));
  }
}
