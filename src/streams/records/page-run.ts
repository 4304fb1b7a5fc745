import type { Body } from '../http/body.ts';
import type { KeyIndex } from './key-index.ts';
import { PageRecord } from './page-record.ts';
import type { KnownRun } from './page-record.ts';

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
