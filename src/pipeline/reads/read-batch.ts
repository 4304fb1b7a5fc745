import type { CertifyJob, ResyncOutcome, ResyncJob } from '../../account/signal-jobs.ts';
import type { AnswerAge } from '../../streams/http/response-age.ts';
import type { Answer } from '../../streams/decode/response.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import type { ScanPage } from '../../streams/paging/pages.ts';
import type { SweepStep } from '../../streams/paging/sweeps.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import type { PagePart } from '../../streams/records/page-records.ts';
import type { SplitPage } from '../../streams/records/records.ts';
import type { InitialSnapshot } from '../checkpoint/cursor.ts';
import type { PageLane } from '../../account/page-lane.ts';

/** Result of one read (a request and its response), in any lane. */
export interface ReadResult extends SplitPage {
  readonly span: Span;
  /** Upper bound of the age of the response's content. Undefined for a batch without a response. */
  readonly age?: AnswerAge | undefined;
  /** To be called once the batch is committed or dropped: frees its page slot and memory. */
  readonly settle: () => void;
}

/** A lane (stream of reads with its own share of the quota), with the functions that convert its responses. */
export interface ReadLane extends PageLane {
  /** Splits a poll's response into publishable and rejected records. The poll itself tells the server clock their modification times. */
  readonly split: (answer: Answer) => ReadResult;
  /**
   * Splits the response of a read that is not a poll into publishable and rejected records. Reports their modification times to the server
   * clock.
   */
  readonly splitAndTellClock: (answer: Answer) => ReadResult;
  /**
   * Returns a read without records, for a batch without a usable response, such as the outcome of a failed resync. If `span` is not given,
   * the read begins and ends now.
   */
  readonly noRecords: (span?: Span) => ReadResult;
}

export interface SnapshotBatch extends ReadResult {
  readonly lane: 'first-read';
  readonly page: ScanPage;
  /** Progress of the initial snapshot after the commit of this page. */
  readonly snapshot: InitialSnapshot;
  /** Whether the snapshot scans the whole list from the outset, so that it counts as the first sweep (recurring full scan). */
  readonly isFullScan: boolean;
  /** Whether the scan can still count as one that read every record. False, for example, after a stale response or an unreadable record. */
  readonly isConsistent: boolean;
}

export interface PollBatch extends ReadResult {
  readonly lane: 'poll';
  readonly page: ScanPage;
  /** Start of the next poll window before the lookback is subtracted, in epoch ms. Set only on the last page of a poll for new changes. */
  readonly since: number | undefined;
  /** Whether, with this page, polls have read every record that the initial snapshot missed: see {@link InitialSnapshot.caughtUp}. */
  readonly catchesUp: boolean;
}

/**
 * A batch of a sweep (recurring full scan): the records of a page, a single record, or no records for a step such as the check of how many
 * keys are missing.
 */
export interface SweepBatch extends ReadResult {
  readonly lane: 'sweep';
  readonly step: SweepStep;
  /** Keys to publish as deleted, unless a read has shown their records since sweep number `since` began. */
  readonly absent?: { readonly keys: readonly string[]; readonly since: number };
  /** Keys that count as seen although no page of the sweep showed them, because their records exist or may exist. */
  readonly presumedSeen?: readonly string[];
  /**
   * Whether this is the last batch of a sweep, so that every record that the initial snapshot missed has been read: see
   * {@link InitialSnapshot.caughtUp}.
   */
  readonly catchesUp: boolean;
  /** Certificate requests that this sweep fulfils (a certificate is a message about a full scan). Set only in the last batch of a sweep. */
  readonly certifyJobs?: readonly CertifyJob[];
}

/** Records of a refetch (request for a single record) or of a probe (request that tests the list's date parameters). */
export interface RefetchBatch extends ReadResult {
  readonly lane: 'reread';
}

/** Batch of a resync: a page or a single record that was read for the resync request, or only the outcome of the resync request. */
export interface ResyncBatch extends ReadResult {
  readonly lane: 'resync';
  readonly step: ResyncStep;
  /** The page; undefined for a single record, and for a batch that has only the outcome. */
  readonly page?: ScanPage;
}

export type ReadBatch = SnapshotBatch | PollBatch | SweepBatch | RefetchBatch | ResyncBatch;

/** Resync request that a batch was read for. The last batch for a request also has the request's outcome. */
export interface ResyncStep {
  readonly resync: ResyncJob;
  readonly outcome?: ResyncOutcome;
}

/** List offset of the page; null if the batch is not a page. */
export function listOffsetOf(batch: ReadBatch): number | null {
  return pageOf(batch)?.offset ?? null;
}

/**
 * Whether records that were last modified before `START_FROM` are to be left out of the batch, unless they are published already. False for
 * polls, and for a resync of a single record.
 */
export function mayPrecedeStartFrom(batch: ReadBatch): boolean {
  return batch.lane !== 'poll' && (batch.lane !== 'resync' || batch.page !== undefined);
}

/** Whether the batch is a page of a sweep, or of an initial snapshot that reads the whole list and so counts as the first sweep. */
export function isPageOfSweep(batch: ReadBatch): boolean {
  if (batch.lane === 'first-read') return batch.isFullScan;
  return batch.lane === 'sweep' && pageOf(batch) !== undefined;
}

/** Parts of a sweep's page, in page order: single records, and runs (adjacent records recognized as a unit). Empty for other batches. */
export function sweptParts(batch: ReadBatch): readonly PagePart[] {
  const page = batch.lane === 'sweep' ? pageOf(batch) : undefined;
  return page ? recordsOf(page.answer).parts : [];
}

/** Whether the batch is the last one of an initial snapshot, a poll for new changes or a sweep. False for batches of other reads. */
export function completesScan(batch: ReadBatch): boolean {
  if (batch.lane === 'first-read') return batch.snapshot.done;
  if (batch.lane === 'poll') return batch.since !== undefined;
  return batch.lane === 'sweep' && batch.step.kind === 'end';
}

function pageOf(batch: ReadBatch): ScanPage | undefined {
  if (batch.lane === 'sweep') return batch.step.kind === 'page' ? batch.step.page : undefined;
  return batch.lane === 'reread' ? undefined : batch.page;
}
