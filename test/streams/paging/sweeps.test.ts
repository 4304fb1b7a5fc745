import { concatMap, delay, EMPTY, map, of, take, takeWhile, tap, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { MAX_LAG_MS } from '../../../src/streams/http/response-age.ts';
import type { ScanPage } from '../../../src/streams/paging/pages.ts';
import { pageSlots } from '../../../src/streams/flow/page-slots.ts';
import { NO_COUNTS } from '../../../src/streams/paging/scan-counts.ts';
import { NO_SWEEP, resumedSweep } from '../../../src/streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../../src/streams/paging/sweep-progress.ts';
import { sweeps } from '../../../src/streams/paging/sweeps.ts';
import type { HeldDeletions, SweepStep } from '../../../src/streams/paging/sweeps.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { scanPage } from '../../support/scan-page.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer } from './moving-list.ts';
import { SweepLedger } from './sweep-ledger.ts';
import {
  afterTwo,
  COMMIT_MS,
  ids,
  inWords,
  keys,
  provingAt,
  removing,
  REQUEST_MS,
  requests,
  steps,
  swept,
  sweepsEnded,
} from './swept.ts';
import type { Run } from './swept.ts';

describe('a sweep', () => {
  it('reads the whole list, and takes no step before the one before is kept', () => {
    const { events, ledger } = swept({ list: () => ids(1, 7) });
    expect(events).toEqual(
      ['ask for page 0', 'page 0', 'kept', 'ask for page 2', 'page 2', 'kept']
        .concat(['ask for page 4', 'page 4', 'kept'])
        .concat(['end', 'kept']),
    );
    expect(ledger.keys()).toEqual(keys(1, 7));
    expect(ledger.progress).toMatchObject({
      number: 1,
      phase: 'done',
      distinct: 7,
      proof: 'exact',
    });
  });

  it('waits while nothing is kept', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const place = pageSlots(1);
      const page$ = cold<ScanPage>('--(a|)', { a: scanPage(true) });
      const sweep$ = sweeps({
        progress: () => NO_SWEEP,
        scan: () => place.acquire.pipe(concatMap(() => page$)),
        pageSlots: place,
        records: new SweepLedger(),
        emptySpan: () => ({ begin: 1, end: 2 }),
        pace: { intervalMs: 0 },
        deletions: { proofMs: 0, limitPercent: 5 },
        scheduler,
      });
      expectObservable(sweep$.pipe(map(inWords)), '1s !').toBe('--a', { a: 'page 0' });
    });
  });

  it('follows the one before, each read anew', () => {
    const { events, ledger } = swept({ list: () => ids(1, 3), until: sweepsEnded(3) });
    expect(steps(events)).toEqual(['page 0', 'end', 'page 0', 'end', 'page 0', 'end']);
    expect(ledger.progress).toMatchObject({ number: 3, proof: 'exact' });
  });

  it('says of a list that does not add up that it is not settled, with the page that ends it', () => {
    const scheduler = virtualTime();
    const found: string[] = [];
    scheduler.run(() => {
      const place = pageSlots(1);
      let scans = 0;
      sweeps({
        progress: () => NO_SWEEP,
        scan: (_, onTrouble) => {
          const isFirst = scans++ === 0;
          return of(scanPage(false), scanPage(true)).pipe(
            concatMap((page) => place.acquire.pipe(map(() => page))),
            tap(({ next }) => isFirst && !next && onTrouble('unsettled')),
          );
        },
        pageSlots: place,
        records: new SweepLedger(),
        emptySpan: () => ({ begin: 1, end: 2 }),
        pace: { intervalMs: 1 },
        deletions: { proofMs: 0, limitPercent: 5 },
        scheduler,
      })
        .pipe(
          tap((step) => found.push(inWords(step))),
          delay(1, scheduler),
          tap(() => place.release()),
          takeWhile(() => found.length < 5),
        )
        .subscribe();
    });
    expect(found).toEqual(['page 0', 'page 0, unsettled', 'end', 'page 0', 'page 0']);
  });

  it('is not settled from a record on that is no JSON: it may be any of those that are missing', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const place = pageSlots(1);
      const odd = scanPage(false, undefined, [{ id: 1 }]);
      const unreadable = PageRecord.unreadable('{"id":2,}', 1);
      const page$ = cold<ScanPage>('abc', {
        a: odd,
        b: { ...odd, answer: { ...odd.answer, data: [...odd.answer.data, unreadable] } },
        c: scanPage(true),
      });
      const sweep$ = sweeps({
        progress: () => NO_SWEEP,
        scan: () => page$,
        pageSlots: place,
        records: new SweepLedger(),
        emptySpan: () => ({ begin: 1, end: 2 }),
        pace: { intervalMs: 0 },
        deletions: { proofMs: 0, limitPercent: 5 },
        scheduler,
      });
      expectObservable(sweep$.pipe(map(inWords)), '^--!').toBe('abc', {
        a: 'page 0',
        b: 'page 0, unsettled',
        c: 'page 0, unsettled',
      });
    });
  });

  it('mirrors an error of the scan, and an unsubscription ends it', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const by = (source: Observable<ScanPage>) =>
        sweeps({
          progress: () => NO_SWEEP,
          scan: () => source,
          pageSlots: pageSlots(1),
          records: new SweepLedger(),
          emptySpan: () => ({ begin: 1, end: 2 }),
          pace: { intervalMs: 0 },
          deletions: { proofMs: 0, limitPercent: 5 },
          scheduler,
        });
      expectObservable(by(cold<ScanPage>('--#'))).toBe('--#');
      const endless = cold<ScanPage>('-');
      expectObservable(by(endless), '^---!').toBe('-');
      expectSubscriptions(endless.subscriptions).toBe('^---!');
    });
  });
});

describe('after a restart', () => {
  it('a sweep goes on at the position that was kept last', () => {
    const list = () => ids(1, 11);
    const before = swept({ list, until: (_, kept) => kept === 2 });
    expect(requests(before.events)).toEqual(['page 0', 'page 2']);
    const { ledger, events } = swept({ list, ledger: before.ledger });
    expect(requests(events)).toEqual(['page 4', 'page 6', 'page 8']);
    expect(ledger.progress).toMatchObject({ number: 1, distinct: 11, proof: 'exact' });
  });

  it('what is gone is told without reading the list again', () => {
    const { events, gone, spans } = swept({ list: () => [], ledger: removing(keys(1, 3)) });
    expect(steps(events)).toEqual(['judged, 0 held back', 'absent since 3: 1,2,3', 'end']);
    expect(requests(events)).toEqual([]);
    expect(gone).toEqual(keys(1, 3));
    expect(spans).toEqual([{ begin: 98, end: 99 }]); // of the emptySpan: no page was read
  });

  it('what had been told and kept is not told again', () => {
    const ledger = removing(keys(1, 6), 2);
    const canRequestRecords = () => true;
    const stopped = (after: number) =>
      requests(
        swept({ list: () => [], ledger, canRequestRecords, until: (_, kept) => kept === after })
          .events,
      );
    expect(stopped(4)).toEqual(['key 1', 'key 2', 'key 3']); // after the verdict of the limit
    expect(stopped(6)).toEqual(['key 4', 'key 5', 'key 6', 'key 1']); // and that all were asked for once
    expect(stopped(7)).toEqual(['key 2', 'key 3', 'key 4', 'key 5', 'key 6']);
  });
});

describe('where records can be asked for', () => {
  const canRequestRecords = () => true;

  it('one complete sweep is enough to ask for each that it has not seen, one after the other, twice', () => {
    const ledger = new SweepLedger(keys(1, 9));
    const missing = [3, 5, 8];
    const { events, gone } = swept({
      list: () => ids(1, 9).filter((id) => !missing.includes(id)),
      ledger,
      canRequestRecords,
    });
    const from = events.indexOf('ask for key 3');
    expect(events.slice(from)).toEqual([
      ...['ask for key 3', 'asked since 1: 3', 'kept'],
      ...['ask for key 5', 'asked since 1: 5', 'kept'],
      ...['ask for key 8', 'asked since 1: 8', 'kept'],
      ...['asked once', 'kept'],
      ...['ask for key 3', 'asked again since 1: 3', 'kept'],
      ...['ask for key 5', 'asked again since 1: 5', 'kept'],
      ...['ask for key 8', 'asked again since 1: 8', 'kept'],
      ...['end', 'kept'],
    ]);
    expect(gone).toEqual(['3', '5', '8']);
  });

  it('what is there is not gone, and what can not be asked for never is', () => {
    // 7 is missed by the sweep, as one can be in a list that moves.
    const list = (at: number) => (at < 10 ? [1, 2, 3] : [1, 2, 3, 7]);
    const ledger = new SweepLedger(['1', '2', '3', '7', 'x', '9']);
    const { events, gone } = swept({
      list,
      ledger,
      canRequestRecords: (key) => key !== 'x',
      until: sweepsEnded(3),
    });
    expect(requests(events).filter((name) => name.startsWith('key'))).toEqual([
      'key 7',
      'key 9',
      'key 9',
    ]);
    expect(gone).toEqual(['9']);
    expect(ledger.keys().sort()).toEqual(['1', '2', '3', '7', 'x']);
  });

  it('what vanishes while others wait for their proof is told after its own, as the next sweep does not wait', () => {
    const { events, gone, goneAt } = swept({
      list: (at) => (at < 30_000 ? [1, 2, 4, 5] : [1, 2, 4]),
      ledger: new SweepLedger(keys(1, 5)),
      canRequestRecords,
      intervalMs: 5_000,
      proofMs: 60_000,
      until: sweepsEnded(25),
    });
    expect(gone).toEqual(['3', '5']);
    expect(goneAt[0]).toBeGreaterThan(60_000);
    expect(goneAt[0]).toBeLessThan(66_000);
    expect(goneAt[1]).toBeGreaterThan(90_000);
    expect(goneAt[1]).toBeLessThan(96_000);
    expect(requests(events).filter((name) => name.startsWith('key'))).toHaveLength(4);
  });

  it('a sweep that took longer than the proof makes the second request itself, though the next one is due', () => {
    const { gone, goneAt, ledger } = swept({
      list: () => [1, 2],
      ledger: new SweepLedger(keys(1, 3)),
      canRequestRecords,
      keepMs: (at) => (at < 10_000 ? 90_000 : COMMIT_MS), // the page is kept late
      intervalMs: 5_000,
      proofMs: 60_000,
      until: sweepsEnded(1),
    });
    expect(gone).toEqual(['3']);
    expect(goneAt[0]).toBeLessThan(160_000);
    expect(ledger.progress.number).toBe(1);
  });

  it('what was seen between is asked for twice again', () => {
    // 3 is gone, comes back for a while, and is gone again.
    const { gone, goneAt } = swept({
      list: (at) => (at > 30_000 && at < 50_000 ? [1, 2, 3] : [1, 2]),
      ledger: new SweepLedger(keys(1, 3)),
      canRequestRecords,
      intervalMs: 5_000,
      proofMs: 60_000,
      until: sweepsEnded(30),
    });
    expect(gone).toEqual(['3']);
    expect(goneAt[0]).toBeGreaterThan(110_000);
  });

  it('nothing is asked after a sweep that proves nothing', () => {
    const { events } = swept({ list: () => [], ledger: afterTwo(keys(1, 3)), canRequestRecords });
    expect(steps(events)).toEqual(['page 0', 'end']);
  });
});

it('a record that was published as new just before the reading is not missing: a replica may not show it yet', () => {
  const times: number[] = [];
  const { events, gone } = swept({
    list: () => [1, 2],
    ledger: new SweepLedger(keys(1, 4)),
    canRequestRecords: () => true,
    createdSince: (time) => {
      times.push(time);
      return ['2', '4'];
    },
  });
  expect(times).toEqual([-MAX_LAG_MS]);
  expect(steps(events).slice(0, 3)).toEqual(['page 0', 'spared: 4', 'judged, 0 held back']);
  expect(gone).toEqual(['3']);
});

describe('where they can not', () => {
  it('a key is gone that is absent from two exact sweeps, and from all in between', () => {
    const ledger = afterTwo(keys(1, 5));
    const list = () => [1, 2, 4];
    const first = swept({ list, ledger });
    expect(steps(first.events)).toEqual(['page 0', 'judged, 0 held back', 'end']);
    const second = swept({ list, ledger });
    expect(steps(second.events)).toEqual([
      ...['page 0', 'judged, 0 held back', 'absent since 3: 3,5', 'end'],
    ]);
    expect(second.gone).toEqual(['3', '5']);
    expect(second.spans).toEqual([{ begin: 1, end: 2 }]); // of the last page
  });

  it('a key that a poll has seen meanwhile is not', () => {
    const ledger = afterTwo(keys(1, 3));
    swept({ list: () => [1, 2], ledger });
    ledger.see(['3']);
    expect(swept({ list: () => [1, 2], ledger }).gone).toEqual([]);
    expect(swept({ list: () => [1, 2], ledger }).gone).toEqual(['3']);
  });

  it('nothing is, where no sweep was exact, and the list is not sorted by its keys', () => {
    const ledger = new SweepLedger(keys(1, 9));
    // Its total moves between any two pages.
    const moving = (at: number) => [2, 1, ...ids(3, at % 16 < 8 ? 6 : 7)];
    const { gone, ledger: after } = swept({ list: moving, ledger, until: sweepsEnded(6) });
    expect(after.progress).toMatchObject({ proof: 'complete', proving: [] });
    expect(gone).toEqual([]);
    const still = () => swept({ list: () => ids(1, 7), ledger }).gone;
    expect([still(), still()]).toEqual([[], ['8', '9']]);
  });

  it('a list that was empty in between breaks the row', () => {
    const ledger = afterTwo(keys(1, 5));
    const [some, none] = [() => [1, 2, 4], () => []];
    const gone = [some, none, some, some].map((list) => swept({ list, ledger }).gone);
    expect(gone).toEqual([[], [], [], ['3', '5']]);
  });
});

describe.each([
  ['can be asked for', { canRequestRecords: () => true }],
  ['can not', {}],
])('the time of a proof, where records %s', (_, asking) => {
  const all = ids(1, 18);
  const run = (list: Run['list'], more: Partial<Run> = {}) =>
    swept({
      list,
      ledger: afterTwo(keys(1, 18)),
      intervalMs: 600,
      proofMs: 60_000,
      until: sweepsEnded(220),
      ...asking,
      ...more,
    });

  it('an index that is wrong for three seconds deletes nothing', () => {
    const list = (at: number) => (at > 1_000 && at < 4_000 ? ids(1, 6) : all);
    expect(run(list).gone).toEqual([]);
  });

  it('what is gone is told after it, and soon', () => {
    const list = (at: number) => (at > 1_000 ? ids(1, 16) : all);
    const { gone, goneAt } = run(list);
    expect(gone).toEqual(['17', '18']);
    for (const at of goneAt) {
      expect(at).toBeGreaterThan(61_000);
      expect(at).toBeLessThan(61_000 + 60_000 / 10 + 3 * 600);
    }
  });

  it('goes by reading, and not by dealing with what was read', () => {
    // The second time it was read while it was wrong, and kept a long time later.
    const list = (at: number) => ids(1, at > 1_000 && at < 1_250 ? 3 : 4);
    const keepMs = (at: number) => (at > 1_100 && at < 1_200 ? 70_000 : COMMIT_MS);
    const { gone } = run(list, { ledger: afterTwo(keys(1, 4)), intervalMs: 100, keepMs });
    expect(gone).toEqual([]);
  });

  it('begins anew for one that is back in between', () => {
    const isThere = (at: number) => at < 1_000 || (at > 40_000 && at < 42_000);
    const list = (at: number) => (isThere(at) ? all : ids(1, 17));
    const { gone, goneAt } = run(list, { polled: { at: 41_000, keys: ['18'] } });
    expect(gone).toEqual(['18']);
    expect(goneAt[0]).toBeGreaterThan(102_000);
  });

  it('goes on after a restart, as far as it was kept', () => {
    const list = () => ids(1, 17);
    const ledger = afterTwo(keys(1, 18));
    expect(run(list, { ledger, until: (_, kept) => kept === 4 }).gone).toEqual([]);
    const { goneAt } = run(list, { ledger, until: sweepsEnded(150) });
    expect(goneAt[0]).toBeGreaterThan(58_000);
    expect(goneAt[0]).toBeLessThan(61_000);
  });
});

describe('when much is gone at once', () => {
  const list = () => ids(1, 100);
  const run = (known: number, limitPercent: number, more: Partial<Run> = {}) =>
    swept({
      list,
      ledger: new SweepLedger(keys(1, known)),
      canRequestRecords: () => true,
      limitPercent,
      ...more,
    });

  it.each([
    ['exactly 20 of however many', 120, 1, true],
    ['more than 20, and more than the limit', 121, 5, false],
    ['more than 20, exactly the limit', 125, 20, true],
    ['one more than the limit', 126, 20, false],
    ['more than 20, within the limit', 121, 50, true],
    ['nearly all, where no limit is set', 1_000, 100, true],
    ['more than 20, where nothing may go', 121, 0, false],
    ['few, where nothing may go', 120, 0, true],
  ])('%s', (_, known, limitPercent, goes) => {
    const { gone, held } = run(known, limitPercent);
    expect(gone.length).toBe(goes ? known - 100 : 0);
    expect(held).toEqual(goes ? [] : [{ gone: known - 100, known }]);
  });

  it.each([
    ['2 of 3', 1, 3, true],
    ['3 of 9, exactly a third', 6, 9, true],
    ['3 of 8', 5, 8, false],
    ['12 of 18', 6, 18, false],
    ['20 of 61', 41, 61, true],
    ['20 of 59', 39, 59, false],
  ])('of a short list: %s', (_, left, known, goes) => {
    const { gone, held } = run(known, 60, { list: () => ids(1, left) });
    expect(gone.length).toBe(goes ? known - left : 0);
    expect(held).toEqual(goes ? [] : [{ gone: known - left, known }]);
  });

  describe('or one after the other, so that many wait for their proof', () => {
    /** A list of 100, of which one record goes every 100 ms; until `stillFrom` its total moves during each reading. */
    const dwindling = (gone: number, stillFrom: number) => (at: number) => {
      const first = Math.min(gone, Math.floor(at / 100)) + 1;
      const isMoved = at < stillFrom && at % 8 >= 4;
      return [...ids(first, 100), ...(isMoved ? [999] : [])];
    };
    const sweep = (list: Run['list'], ledger: SweepLedger, ends: number, limitPercent = 5) =>
      swept({
        ...{ list, ledger, limitPercent },
        ...{ intervalMs: 50, proofMs: 1_000, until: sweepsEnded(ends) },
      });
    const hundred = () => {
      const ledger = new SweepLedger(keys(1, 100));
      ledger.progress = { ...NO_SWEEP, peak: 101 };
      return ledger;
    };
    const known = (gone: readonly string[]) =>
      gone.map(Number).filter((id) => id <= 100).sort((a, b) => a - b); // prettier-ignore

    it('none is held back, though more than the limit wait: all go once readings are exact', () => {
      const { held, gone } = sweep(dwindling(30, 3_500), hundred(), 20);
      expect(held).toEqual([]);
      expect(known(gone)).toEqual(ids(1, 30));
    });

    it('a mass that goes beside them is held back alone, however long', () => {
      const isThere = (id: number, at: number) =>
        at < 1_200 || (id < 70 && (id !== 50 || at < 3_000));
      const list = (at: number) => dwindling(10, 1_500)(at).filter((id) => isThere(id, at));
      const { held, gone } = sweep(list, hundred(), 30);
      expect(held.at(-1)).toMatchObject({ gone: 33 }); // with two that went in the reading that it began in
      expect(known(gone)).toEqual(expect.arrayContaining([...ids(1, 8), 50]));
    });

    it('what is held back stays so in another process, until the limit is another', () => {
      const ledger = hundred();
      expect(sweep(() => ids(1, 100), ledger, 2).held).toEqual([]);
      expect(sweep(() => ids(1, 60), ledger, 2).held).not.toEqual([]);
      const now = 5_000;
      ledger.progress = resumedSweep(ledger.progress, {
        canRequestRecords: false,
        now,
        byOthers: true,
      });
      const again = sweep(() => ids(1, 60), ledger, 10);
      expect([again.held.at(-1), again.gone]).toEqual([{ gone: 40, known: 100 }, []]);
      const allowed = sweep(() => ids(1, 60), ledger, 10, 100);
      expect([allowed.held, known(allowed.gone)]).toEqual([[], ids(61, 100)]);
    });
  });

  it('what can never go does not count', () => {
    const canRequestRecords = (key: string) => Number(key) <= 110;
    const { gone, held } = run(150, 5, { canRequestRecords });
    expect({ gone: gone.length, held }).toEqual({ gone: 10, held: [] });
  });

  it('none of it is asked for, however many stretches it is counted in', () => {
    const ledger = new SweepLedger(keys(1, 150), 7);
    const { events, held } = swept({
      list,
      ledger,
      canRequestRecords: () => true,
      limitPercent: 5,
    });
    expect(requests(events).some((name) => name.startsWith('key'))).toBe(false);
    expect(steps(events).at(-1)).toBe('end');
    expect(held).toEqual([{ gone: 50, known: 150 }]);
  });

  it('the next sweep counts again, and tells what is gone then', () => {
    let sweep = 0;
    const until = ({ kind }: SweepStep) => kind === 'end' && ++sweep === 4;
    // From the third sweep on most of it is back.
    const partly = () => (sweep < 2 ? ids(1, 100) : ids(1, 145));
    const { held, gone } = run(150, 5, { list: partly, until });
    expect(held).toEqual([
      { gone: 50, known: 150 },
      { gone: 50, known: 150 },
    ]);
    expect(gone).toEqual(keys(146, 150));
  });
});

describe('the time between sweeps', () => {
  const list = () => ids(1, 6); // two pages, 8 ms each, and 3 ms for the end
  const sweepMs = 2 * (REQUEST_MS + COMMIT_MS) + COMMIT_MS;
  const begun = (beganAt: number) => {
    const ledger = new SweepLedger();
    ledger.progress = { ...NO_SWEEP, beganAt };
    return ledger;
  };

  it('is none by default', () => {
    expect(swept({ list, until: sweepsEnded(3) }).startsAt).toEqual([0, sweepMs, 2 * sweepMs]);
  });

  it('is from the beginning of one to that of the next', () => {
    const { startsAt } = swept({ list, intervalMs: 1_000, until: sweepsEnded(3) });
    expect(startsAt).toEqual([1_000, 2_000, 3_000]);
  });

  it('is what a sweep takes, if that is longer', () => {
    const options = { list, intervalMs: 10, until: sweepsEnded(3) };
    expect(swept(options).startsAt).toEqual([10, 10 + sweepMs, 10 + 2 * sweepMs]);
  });

  it('is `spacingMs` for each page, if that is longer', () => {
    const spacings = [100, 300, 7];
    const spacingMs = vi.fn(() => spacings.shift() ?? 0);
    const { startsAt } = swept({ list, spacingMs, until: sweepsEnded(3) });
    expect(startsAt).toEqual([0, 2 * 300, 2 * 300 + sweepMs]); // 14 ms are less than it takes;

    const rare = swept({ list, intervalMs: 1_000, spacingMs: () => 100, until: sweepsEnded(2) });
    expect(rare.startsAt).toEqual([1_000, 2_000]);
  });

  it('counts from a sweep of an earlier process', () => {
    const at = (beganAt: number) => swept({ list, intervalMs: 1_000, ledger: begun(beganAt) });
    expect(at(-300).startsAt).toEqual([700]);
    expect(at(-1_000).startsAt).toEqual([0]);
    expect(at(-99_999).startsAt).toEqual([0]);
  });

  it('is never longer because the clock was set back', () => {
    const at = (beganAt: number) => swept({ list, intervalMs: 1_000, ledger: begun(beganAt) });
    expect(at(1).startsAt).toEqual([1_000]);
    expect(at(Date.UTC(2026, 0, 1)).startsAt).toEqual([1_000]);
  });

  it('is not waited for by a sweep that an earlier process began', () => {
    const { ledger } = swept({ list, until: (_, kept) => kept === 1 });
    expect(ledger.progress.phase).toBe('reading');
    const { events } = swept({ list, ledger, intervalMs: 1_000 });
    expect(requests(events)).toEqual(['page 2']);
  });
});

describe('memory', () => {
  const marks = { isUnseen: (_: string, since: number) => since > 1 };
  const phase: SweepProgress = {
    ...NO_SWEEP,
    number: 2,
    phase: 'removing',
    proof: 'exact',
    proving: [provingAt(1)],
    newest: provingAt(2),
  };
  const options = {
    progress: () => phase,
    scan: () => EMPTY,
    emptySpan: () => ({ begin: 1, end: 2 }),
    pace: { intervalMs: 0 },
    deletions: { proofMs: 0, limitPercent: 100 },
  };

  it.each([true, false])('holds a stretch of unseen keys at a time; asking: %s', (asking) => {
    const ledger = removing(keys(1, 60), 10);
    const lookups: string[] = [];
    const records = {
      count: () => ledger.count(),
      unseen: (since: number, after: string | undefined) => {
        lookups.push(`since ${since} after ${after}, ${told} told`);
        return ledger.unseen(since, after);
      },
      isUnseen: (key: string, since: number) => ledger.isUnseen(key, since),
    };
    let told = 0;
    const scheduler = virtualTime();
    scheduler.run(() => {
      const place = pageSlots(1);
      const ask = () =>
        timer(1, scheduler).pipe(map(() => answer([], { total: 0, hasNext: false })));
      sweeps({
        ...options,
        progress: () => ledger.progress,
        pageSlots: place,
        records,
        scheduler,
        ...(asking && { single: { request: ask, canRequest: () => true } }),
      })
        .pipe(
          tap((step) => {
            if (step.kind === 'asked') told += 1;
            if (step.kind === 'absent') told += step.keys.length;
          }),
          takeWhile(({ kind }) => kind !== 'end'),
          delay(1, scheduler),
          tap(() => place.release()),
        )
        .subscribe();
    });
    const ends = [
      undefined,
      ...keys(1, 60)
        .sort()
        .filter((_, k) => k % 10 === 9),
    ].slice(0, 6);
    const counted = (told: number) => ends.map((after) => `since 4 after ${after}, ${told} told`);
    const dealtWith = (since: number, told: number) =>
      ends.map((after, k) => `since ${since} after ${after}, ${told + 10 * k} told`);
    expect(lookups).toEqual(
      asking
        ? [...counted(0), ...counted(0), ...dealtWith(4, 0), ...counted(60), ...dealtWith(4, 60)]
        : [...counted(0), ...counted(0), ...dealtWith(4, 0), ...counted(60)],
    );
  });

  it('is not gone through for unseen keys where each image was read', () => {
    const scheduler = virtualTime();
    const steps: SweepStep[] = [];
    scheduler.run(() => {
      sweeps({
        ...options,
        progress: () => ({ ...phase, distinct: 60, counts: NO_COUNTS }),
        pageSlots: pageSlots(1),
        records: {
          count: () => 60,
          unseen: () => expect.unreachable(),
          ...marks,
        },
        scheduler,
      })
        .pipe(take(1))
        .subscribe((step) => steps.push(step));
    });
    expect(steps).toEqual([{ kind: 'end', held: 0 }]);
  });

  it('and stack stay bounded when millions are gone', () => {
    const stretch = Array<string>(500).fill('gone');
    const held: HeldDeletions[] = [];
    const scheduler = virtualTime();
    scheduler.run(() => {
      const place = pageSlots(1);
      let stretches = 0;
      const unseen = () => ({ keys: stretch, next: ++stretches < 10_000 ? 'more' : undefined });
      sweeps({
        ...options,
        pageSlots: place,
        records: { count: () => 5_000_000, unseen, ...marks },
        deletions: { proofMs: 0, limitPercent: 5, onHeld: (found) => held.push(found) },
        scheduler,
      })
        .pipe(takeWhile(({ kind }) => kind !== 'end'))
        .subscribe();
    });
    expect(held).toEqual([{ gone: 5_000_000, known: 5_000_000 }]);
  });
});
