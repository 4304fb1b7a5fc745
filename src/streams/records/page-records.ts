// The records of a page, single or in runs.

import type { Body } from '../http/body.ts';
import { KeyIndex } from './key-index.ts';
import { PageRecord } from './page-record.ts';
import type { PageRun } from './page-record.ts';

/** A part of a page: a single record, or a run of adjacent records that were recognized together. */
export type PagePart = PageRecord | PageRun;

/** The records of a page: single ones, and runs of adjacent records. The objects for records of runs are created on access. */
export class PageRecords {
  readonly parts: readonly PagePart[];
  /** Number of records on the page, both single ones and those of runs. */
  readonly length: number;
  #keys: { readonly index: KeyIndex | undefined } | undefined;
  #all: readonly PageRecord[] | undefined;
  readonly #body: Body | undefined;

  constructor(parts: readonly PagePart[], body?: Body) {
    this.parts = parts;
    this.#body = body;
    if (parts.every((part) => part instanceof PageRecord)) this.#all = parts;
    this.length = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  }

  /** Returns all records of the page in order. Creates those of runs (adjacent records that were recognized together) at the first call. */
  all(): readonly PageRecord[] {
    return (this.#all ??= this.parts.flatMap((part) =>
      part instanceof PageRecord ? part : part.records(),
    ));
  }

  /** Returns the record at index `place` of the page; undefined if there is none. */
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

  /** Keys of all records in page order; undefined if any record has no key. */
  get keys(): KeyIndex | undefined {
    this.#keys ??= { index: indexOf(this.parts, this.length) };
    return this.#keys.index;
  }

  /** Returns the modification times of all records in page order, in epoch ms; null for a record without one. */
  updatedAt(): readonly (number | null)[] {
    const times: (number | null)[] = [];
    const tell = (at: number | null) => void times.push(at);
    for (const part of this.parts) {
      if (part instanceof PageRecord) tell(part.updatedAt);
      else part.run.eachUpdatedAt(tell);
    }
    return times;
  }

  /** Releases the memory of the response body. The bytes of the records must not be read afterwards. */
  settle(): void {
    this.#body?.giveBack();
  }

  get isReadable(): boolean {
    return this.parts.every(
      (part) => !(part instanceof PageRecord) || part.unreadableAt === undefined,
    );
  }
}

function sizeOf(part: PagePart): number {
  return part instanceof PageRecord ? 1 : part.size;
}

function indexOf(parts: readonly PagePart[], length: number): KeyIndex | undefined {
  const index = new KeyIndex(length);
  for (const part of parts) {
    if (!(part instanceof PageRecord)) part.addKeysTo(index);
    else if (part.key === undefined) return undefined;
    else index.add(part.key);
  }
  return index;
}
