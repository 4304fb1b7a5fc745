import { concat, of, Subject, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { resyncReads } from '../../../src/pipeline/reads/resync-reads.ts';
import type { ResyncBatch } from '../../../src/pipeline/reads/read-batch.ts';
import type { ResyncJob } from '../../../src/account/signal-jobs.ts';
import type { SingleRecords } from '../../../src/pipeline/reads/single-records.ts';
import { BEGINNING } from '../../../src/streams/paging/anchors.ts';
import type { ScanPage } from '../../../src/streams/paging/pages.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Answer } from '../../../src/streams/decode/response.ts';
import { splitRecords } from '../../../src/streams/records/records.ts';
import { records } from '../../support/records.ts';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';

const span = { begin: 1, end: 2 };
const answer = (...data: JsonObject[]): Answer => ({
  data: records(data, () => '1'),
  total: data.length,
  hasNext: false,
  span,
  serverTime: undefined,
});
const page = (next: boolean): ScanPage => ({
  answer: answer({ order_number: 1 }),
  offset: 0,
  next: next ? BEGINNING : undefined,
});
const resync = (id: string, more: Partial<ResyncJob> = {}): ResyncJob => ({
  id,
  resource: 'orders',
  key: null,
  since: null,
  ...more,
});

/** Reads what these say; a reading is settled by the test. */
function reading(
  scan: (since: number | null) => Observable<ScanPage>,
  single?: Partial<SingleRecords>,
) {
  const requests$ = new Subject<ResyncJob>();
  const place = pageSlots(1);
  const begun: string[] = [];
  const readings: ResyncBatch[] = [];
  const errors: unknown[] = [];
  resyncReads({
    requests$,
    scan,
    single: single as SingleRecords | undefined,
    singleLists: ['orders', 'returns'],
    lane: {
      pageSlots: place,
      limit: (source) => source,
      splitAndTellClock: ({ data }) => ({
        ...splitRecords(data),
        runs: [],
        span,
        settle: () => place.release(),
      }),
      noRecords: () => ({
        ...{ keyed: [], runs: [], rejected: [], rejectedAt: [], span },
        settle: () => place.release(),
      }),
    },
    onBegin: ({ id }) => begun.push(id),
  }).subscribe({
    next: (each) => readings.push(each),
    error: (error: unknown) => errors.push(error),
  });
  const outcomes = () => readings.map((each) => each.step.outcome);
  return { requests$, begun, readings, outcomes, errors };
}
const done = (message: string | null = null) => ({ status: 'done', message });

describe('resyncReads', () => {
  it('reads one request after the other; the last page has the outcome', () => {
    const scans: [number | null, Subject<ScanPage>][] = [];
    const { requests$, begun, outcomes } = reading((since) => {
      const pages$ = new Subject<ScanPage>();
      scans.push([since, pages$]);
      return pages$;
    });
    requests$.next(resync('a'));
    requests$.next(resync('b', { since: 7 }));
    expect(begun).toEqual(['a']);
    const [, first$] = scans[0]!;
    first$.next(page(true));
    first$.next(page(false));
    first$.complete();
    expect(outcomes()).toEqual([undefined, done()]);
    expect(begun).toEqual(['a', 'b']);
    expect(scans.map(([since]) => since)).toEqual([null, 7]);
  });

  it('asks for one order, and says when there is none or nobody knows', () => {
    const answers: Record<string, Answer | undefined> = {
      1: answer({ order_number: 1 }),
      2: answer(),
    };
    const { requests$, readings, outcomes } = reading(() => throwError(() => new Error()), {
      request: (key) => of(answers[key]),
    });
    for (const key of ['1', '2', '3']) {
      requests$.next(resync(key, { key }));
      readings.at(-1)!.settle();
    }
    expect(readings.map(({ keyed }) => keyed.length)).toEqual([1, 0, 0]);
    expect(outcomes()).toMatchObject([
      done(),
      done('the API has no record 2 in orders'),
      { status: 'failed' },
    ]);
  });

  it('waits until what came before is dealt with', () => {
    const { requests$, readings } = reading(() => of(page(false)), { request: () => of(answer()) });
    requests$.next(resync('a', { key: '1' }));
    requests$.next(resync('b', { key: '2' }));
    expect(readings).toHaveLength(1);
    readings[0]!.settle();
    expect(readings).toHaveLength(2);
  });

  it('refuses an order number of a list that can not be asked for one', () => {
    const { requests$, outcomes } = reading(() => of(page(false)));
    requests$.next(resync('a', { resource: 'customers', key: '1' }));
    expect(outcomes()).toMatchObject([
      {
        status: 'refused',
        message: expect.stringContaining('only of orders, returns') as string,
      },
    ]);
  });

  it('fails a request whose list the API does not serve to its end', () => {
    const cut: ScanPage = { ...page(false), offset: 99 };
    const { requests$, outcomes } = reading(() =>
      of({ ...cut, answer: { ...cut.answer, isCut: true } }),
    );
    requests$.next(resync('a'));
    expect(outcomes()).toEqual([
      {
        status: 'failed',
        message:
          'the API serves only the first 100 records of the list: those were published again, later ones were not',
      },
    ]);
  });

  it('fails a request that the API has something against, and goes on with the next', () => {
    const refusal = new CellarstreamError('API_STATUS', 'orders answered 400', {
      context: { status: 400 },
    });
    const scans = [
      concat(
        of(page(true)),
        throwError(() => refusal),
      ),
      of(page(false)),
    ];
    const { requests$, outcomes, errors } = reading(() => scans.shift()!);
    requests$.next(resync('a'));
    requests$.next(resync('b'));
    expect(outcomes()).toEqual([
      undefined,
      { status: 'failed', message: 'orders answered 400' },
      done(),
    ]);
    expect(errors).toEqual([]);
  });

  it('leaves every other error to the task', () => {
    const lost = new CellarstreamError('STATE_FOLDER', 'the disk is full');
    const { requests$, errors } = reading(() => throwError(() => lost));
    requests$.next(resync('a'));
    expect(errors).toEqual([lost]);
  });
});
