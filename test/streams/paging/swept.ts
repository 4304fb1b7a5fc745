import { concatMap, defer, delay, map, of, takeWhile, tap, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import type { ProvingScan } from '../../../src/streams/paging/reading-proofs.ts';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import { NO_SWEEP, resumedSweep } from '../../../src/streams/paging/sweep-progress.ts';
import { sweeps } from '../../../src/streams/paging/sweeps.ts';
import type {
  DeletionRules,
  HeldDeletions,
  SweepPace,
  SweepStep,
} from '../../../src/streams/paging/sweeps.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId } from './moving-list.ts';
import { SweepLedger } from './sweep-ledger.ts';

export const REQUEST_MS = 5;
export const COMMIT_MS = 3;
const PAGE_SIZE = 4; // each page begins two records before the end of the one before

export const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, k) => from + k);
export const keys = (from: number, to: number) => ids(from, to).map(String);

export interface Run extends Partial<SweepPace>, Partial<DeletionRules> {
  /** The ids in the list as it is at a time, ms. */
  readonly list: (at: number) => readonly number[];
  /** The list shows and counts no more records than this, by the time, ms. Default no limit. */
  readonly cap?: number | ((at: number) => number);
  readonly ledger?: SweepLedger;
  /** Which records can be asked for by their keys. Default none. */
  readonly canRequestRecords?: (key: string) => boolean;
  /** Records that were published as new shortly before the reading. Default none. */
  readonly createdSince?: (time: number) => readonly string[];
  /** How long a step takes until it is kept, by when it came, ms. */
  readonly keepMs?: (at: number) => number;
  /** When something other than the sweep reads which keys. */
  readonly polled?: { readonly at: number; readonly keys: readonly string[] };
  /** When to stop: with a step that was kept, the how manieth. Default the end of a sweep. */
  readonly until?: (step: SweepStep, kept: number) => boolean;
}

/** Sweeps a list in virtual time: each request takes 5 ms, and each step 3 ms until it is kept. */
export function swept({ ledger = new SweepLedger(), canRequestRecords, until, ...rest }: Run) {
  const { list, cap = Infinity, keepMs = () => COMMIT_MS, polled, spacingMs = () => 0 } = rest;
  const { intervalMs = 0, proofMs = 0, limitPercent = 100, createdSince } = rest;
  const scheduler = virtualTime();
  const events: string[] = [];
  const startsAt: number[] = []; // of requests for the first page
  const spans: unknown[] = [];
  const gone: string[] = [];
  const goneAt: number[] = [];
  const held: HeldDeletions[] = [];
  const cuts: number[] = [];
  let kept = 0;
  const isEnough = until ?? (({ kind }) => kind === 'end');
  // Its clock begins again, the ledger's times go on from there.
  const { interrupted } = ledger.progress;
  const here = { canRequestRecords: true, now: scheduler.now(), byOthers: false };
  ledger.progress = { ...resumedSweep(ledger.progress, here), interrupted };

  const query = <T>(name: string, work: (listed: readonly number[]) => T): Observable<T> =>
    defer(() => {
      events.push(`ask for ${name}`);
      if (name === 'page 0') startsAt.push(scheduler.now());
      return timer(REQUEST_MS, scheduler).pipe(map(() => work(list(scheduler.now()))));
    });
  const request = ({ offset }: { offset: number }): Observable<Answer> =>
    query(`page ${offset}`, (all) => {
      const listed = all.slice(0, typeof cap === 'number' ? cap : cap(scheduler.now()));
      const data = listed.slice(offset, offset + PAGE_SIZE).map((id) => ({ id }));
      const hasNext = offset + PAGE_SIZE < listed.length;
      return answer(data, { total: listed.length, hasNext });
    });
  const ask = (key: string): Observable<Answer> =>
    query(`key ${key}`, (listed) => {
      const data = listed.includes(Number(key)) ? [{ id: Number(key) }] : [];
      return answer(data, { total: data.length, hasNext: false });
    });

  scheduler.run(() => {
    if (polled) scheduler.schedule(() => ledger.see(polled.keys), polled.at);
    const place = pageSlots(1);
    sweeps({
      progress: () => ledger.progress,
      scan: (from, onTrouble) =>
        pages({
          request,
          keyOf: keyOfId,
          pageSize: PAGE_SIZE,
          permit: () => place.acquire,
          from,
          onTrouble,
        }),
      pageSlots: place,
      records: ledger,
      createdSince,
      ...(canRequestRecords && { single: { request: ask, canRequest: canRequestRecords } }),
      emptySpan: () => ({ begin: 98, end: 99 }),
      pace: { intervalMs, spacingMs },
      deletions: {
        ...{ proofMs, limitPercent },
        onHeld: (found) => held.push(found),
        onCut: (total) => cuts.push(total),
      },
      scheduler,
    })
      .pipe(
        tap((step) => events.push(inWords(step))),
        tap((step) => 'span' in step && spans.push(step.span)),
        concatMap((step) => of(step).pipe(delay(keepMs(scheduler.now()), scheduler))),
        tap((step) => {
          const keys = ledger.keep(step, scheduler.now(), proofMs);
          gone.push(...keys);
          goneAt.push(...keys.map(() => scheduler.now()));
          events.push('kept');
          kept += 1;
        }),
        takeWhile((step) => !isEnough(step, kept)),
        tap(() => place.release()),
      )
      .subscribe();
  });
  return { events, startsAt, spans, gone, goneAt, held, cuts, ledger };
}

export function inWords(step: SweepStep): string {
  switch (step.kind) {
    case 'page':
      return `page ${step.page.offset}${step.isConsistent ? '' : ', unsettled'}`;
    case 'absent':
      return `absent since ${step.since}: ${step.keys.join()}`;
    case 'asked':
      return `asked${step.again ? ' again' : ''} since ${step.since}: ${step.key}`;
    case 'spared':
      return `spared: ${step.keys.join()}`;
    case 'asked-once':
      return 'asked once';
    case 'judged':
      return `judged, ${step.verdict.heldBack.reduce((sum, { gone }) => sum + gone, 0)} held back`;
    case 'polled':
      return 'polled';
    case 'end':
      return 'end';
  }
}

/** Until so many sweeps have ended. */
export const sweepsEnded = (ends: number) => {
  let left = ends;
  return ({ kind }: SweepStep) => kind === 'end' && --left === 0;
};
/** A ledger as if the keys had been read by sweeps 1 and 2, both exact. */
export function afterTwo(all: readonly string[], stretch?: number): SweepLedger {
  const ledger = new SweepLedger(all, stretch);
  ledger.progress = { ...NO_SWEEP, number: 2, proof: 'exact', judged: 2 };
  ledger.see(all);
  return ledger;
}
/** A reading that proves something, at the beginning of time. */
export const provingAt = (number: number): ProvingScan => ({
  ...{ number, beganAt: 0, at: 0 },
});
/** The same after two more sweeps, 3 and 4, that have not seen the keys. */
export function removing(all: readonly string[], stretch?: number): SweepLedger {
  const ledger = afterTwo(all, stretch);
  ledger.progress = {
    ...NO_SWEEP,
    number: 4,
    phase: 'removing',
    proof: 'exact',
    judged: 2,
    proving: [provingAt(3)],
    newest: provingAt(4),
  };
  return ledger;
}
export const steps = (events: readonly string[]) =>
  events.filter((event) => event !== 'kept' && !event.startsWith('ask for'));
export const requests = (events: readonly string[]) =>
  events.filter((event) => event.startsWith('ask for')).map((event) => event.slice(8));
