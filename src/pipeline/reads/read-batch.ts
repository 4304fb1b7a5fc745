import type { Lane } from '../../observe/hooks.ts';
import type { Cursor } from '../checkpoint/cursor.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import type { KeyedRecord, RejectedRecord } from '../../streams/records/records.ts';
import type { SweepStep } from '../../streams/paging/sweeps.ts';
import type { Resync, Outcome } from '../../account/resync-requests.ts';

/** What one look at the API brought. */
export interface ReadBatch {
  readonly lane: Lane;
  /** The page, where it was a list that was read. */
  readonly page?: ScanPage;
  /** How far the reads have come once it is dealt with. */
  readonly progress: Partial<Pick<Cursor, 'firstRead' | 'since'>>;
  /** Whether with it all has turned up that the first read has missed: see `InitialSnapshot.caughtUp`. */
  readonly catchesUp?: boolean;
  /** The same of a sweep. */
  readonly step?: SweepStep;
  /** For which request it was read. */
  readonly resync?: ResyncStep;
  readonly records: readonly KeyedRecord[];
  readonly rejected: readonly RejectedRecord[];
  /** Keys that are gone, unless they have been seen since the sweep of that number. */
  readonly gone?: { readonly keys: readonly string[]; readonly since: number };
  /** Keys that count as seen: nobody can say that they are gone. */
  readonly spared?: readonly string[];
  readonly span: Span;
  /** To be called when it is dealt with: gives back its place in memory. */
  readonly settle: () => void;
}

/** A part of what was read for a request; the last one has its outcome. */
export interface ResyncStep {
  readonly resync: Resync;
  readonly outcome?: Outcome;
}
