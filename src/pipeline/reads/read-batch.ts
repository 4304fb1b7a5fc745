import type { CertifyAsked, Outcome, Resync } from '../../account/resync-requests.ts';
import type { Answer } from '../../streams/decode/answer.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { SweepStep } from '../../streams/paging/sweeps.ts';
import { recordsOf } from '../../streams/decode/answer.ts';
import type { PagePart } from '../../streams/records/page-records.ts';
import type { SplitPage } from '../../streams/records/records.ts';
import type { InitialSnapshot } from '../checkpoint/cursor.ts';
import type { PageLane } from '../../account/page-lane.ts';

/** What one look at the API brought, whatever it was for. */
export interface Brought extends SplitPage {
  readonly span: Span;
  /** To be called when it is dealt with: gives back its place in memory. */
  readonly settle: () => void;
}

/** A lane, and how its answers are taken in. */
export interface ReadLane extends PageLane {
  /**
   * An answer, split into what can be published and what can't. It tells the server's clock nothing, because polls tell it by
   * themselves.
   */
  readonly arrived: (answer: Answer) => Brought;
  /** The same for all other reads: it also tells the server's clock the `updated_at` of the records. */
  readonly seen: (answer: Answer) => Brought;
}

/** A page of the initial snapshot. */
export interface SnapshotBatch extends Brought {
  readonly lane: 'first-read';
  readonly page: ScanPage;
  /** How far the snapshot has come once it is dealt with. */
  readonly snapshot: InitialSnapshot;
  /** Whether it reads the whole list: then it counts as the first sweep. */
  readonly isWhole: boolean;
  /** False when the list did not add up so far. */
  readonly settled: boolean;
}

/** A page of a poll. */
export interface PollBatch extends Brought {
  readonly lane: 'poll';
  readonly page: ScanPage;
  /** Where the next window begins; undefined unless this is the last page of its window. */
  readonly since: number | undefined;
  /** Whether with it all has turned up that the snapshot has missed: see {@link InitialSnapshot.caughtUp}. */
  readonly catchesUp: boolean;
}

/** A step of a sweep. */
export interface SweepBatch extends Brought {
  readonly lane: 'sweep';
  readonly step: SweepStep;
  /** Keys that are gone, unless they have been seen since the sweep of that number. */
  readonly gone?: { readonly keys: readonly string[]; readonly since: number };
  /** Keys that count as seen: nobody can say that they are gone. */
  readonly spared?: readonly string[];
  /** As that of a poll. */
  readonly catchesUp: boolean;
  /** At its end: requests for a certificate of it. */
  readonly asked?: readonly CertifyAsked[];
}

/** A record that was asked for again. */
export interface RefetchBatch extends Brought {
  readonly lane: 'reread';
}

/** A part of what was read for a request to publish again. */
export interface ResyncBatch extends Brought {
  readonly lane: 'resync';
  readonly step: ResyncStep;
  /** Where it was the list that was read. */
  readonly page?: ScanPage;
}

export type ReadBatch = SnapshotBatch | PollBatch | SweepBatch | RefetchBatch | ResyncBatch;

/** A request, and once all of it is read its outcome. */
export interface ResyncStep {
  readonly resync: Resync;
  readonly outcome?: Outcome;
}

/** Where in the list it was read; 0 where it was no page. */
export function offsetIn(batch: ReadBatch): number {
  return pageOf(batch)?.offset ?? 0;
}

/** Whether it may hold records from before `START_FROM`; polls begin there. */
export function isUnbounded(batch: ReadBatch): boolean {
  return batch.lane !== 'poll' && (batch.lane !== 'resync' || batch.page !== undefined);
}

/** Whether a complete reading itself has read it: its records count for what is gone. */
export function isPageOfSweep(batch: ReadBatch): boolean {
  if (batch.lane === 'first-read') return batch.isWhole;
  return batch.lane === 'sweep' && pageOf(batch) !== undefined;
}

/** What a sweep has read on a page, in its order. */
export function sweptParts(batch: ReadBatch): readonly PagePart[] {
  const page = batch.lane === 'sweep' ? pageOf(batch) : undefined;
  return page ? recordsOf(page.answer).parts : [];
}

/** Whether with it a reading has come to its end: see `Published.completes`. */
export function completes(batch: ReadBatch): boolean {
  switch (batch.lane) {
    case 'first-read':
      return batch.snapshot.done;
    case 'poll':
      return batch.since !== undefined;
    case 'sweep':
      return batch.step.kind === 'end';
    default:
      return false;
  }
}

function pageOf(batch: ReadBatch): ScanPage | undefined {
  switch (batch.lane) {
    case 'sweep':
      return batch.step.kind === 'page' ? batch.step.page : undefined;
    case 'reread':
      return undefined;
    default:
      return batch.page;
  }
}
