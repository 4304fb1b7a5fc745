import { concatMap, delay, EMPTY, map, of, takeWhile, tap, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import type { ScanPage } from '../../src/streams/pages.ts';
import { room } from '../../src/streams/room.ts';
import { NO_SWEEP, withRemoved } from '../../src/streams/sweep-progress.ts';
import type { SweepProgress } from '../../src/streams/sweep-progress.ts';
import { sweeps } from '../../src/streams/sweeps.ts';
import type { Held, SweepStep } from '../../src/streams/sweeps.ts';
import { scanPage } from '../support/scan-page.ts';
import { virtualTime } from '../support/virtual-time.ts';
import { answer } from './moving-list.ts';
import { SweepLedger } from './sweep-ledger.ts';
import { afterTwo, COMMIT_MS, ids, inWords, keys, removing, REQUEST_MS, requests, steps, swept, sweepsEnded } from './swept.ts'; // prettier-ignore
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
      const place = room(1);
      const page$ = cold<ScanPage>('--(a|)', { a: scanPage(true) });
      const sweep$ = sweeps({
        progress: () => NO_SWEEP,
        scan: () => place.enter.pipe(concatMap(() => page$)),
        room: place,
        records: new SweepLedger(),
        moment: () => ({ begin: 1, end: 2 }),
        intervalMs: 0,
        limitPercent: 5,
        scheduler,
      });
      expectObservable(sweep$.pipe(map(inWords)), '1s !').toBe('--a', { a: 'page 0' });
    });
  });

  it('follows the one before, each read anew', () => {
    const { events, ledger } = swept({ list: () => ids(1, 3), until: sweepsEnded(3) });
    expect(steps(events)).toEqual(['page 0', 'end', 'page 0', 'end', 'page 0', 'end']);
    expect(ledger.progress).toMatchObject({ number: 3, proof: 'exact', proofBefore: 'exact' });
  });

  it('says of a list that does not add up that it is not settled, with the page that ends it', () => {
    const scheduler = virtualTime();
    const found: string[] = [];
    scheduler.run(() => {
      const place = room(1);
      let scans = 0;
      sweeps({
        progress: () => NO_SWEEP,
        scan: (_, onUnsettled) => {
          const isFirst = scans++ === 0;
          return of(scanPage(false), scanPage(true)).pipe(
            concatMap((page) => place.enter.pipe(map(() => page))),
            tap(({ next }) => isFirst && !next && onUnsettled()),
          );
        },
        room: place,
        records: new SweepLedger(),
        moment: () => ({ begin: 1, end: 2 }),
        intervalMs: 1,
        limitPercent: 5,
        scheduler,
      })
        .pipe(
          tap((step) => found.push(inWords(step))),
          delay(1, scheduler),
          tap(() => place.leave()),
          takeWhile(() => found.length < 5),
        )
        .subscribe();
    });
    expect(found).toEqual(['page 0', 'page 0, unsettled', 'end', 'page 0', 'page 0']);
  });

  it('mirrors an error of the scan, and an unsubscription ends it', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const by = (source: Observable<ScanPage>) =>
        sweeps({
          progress: () => NO_SWEEP,
          scan: () => source,
          room: room(1),
          records: new SweepLedger(),
          moment: () => ({ begin: 1, end: 2 }),
          intervalMs: 0,
          limitPercent: 5,
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
    expect(steps(events)).toEqual(['absent since 3: 1,2,3', 'end']);
    expect(requests(events)).toEqual([]);
    expect(gone).toEqual(keys(1, 3));
    expect(spans).toEqual([{ begin: 98, end: 99 }]); // of the moment: no page was read
  });

  it('what had been told and kept is not told again', () => {
    const ledger = removing(keys(1, 6), 2);
    const canBeAsked = () => true;
    const before = swept({ list: () => [], ledger, canBeAsked, until: (_, kept) => kept === 3 });
    const after = swept({ list: () => [], ledger, canBeAsked });
    expect(requests(before.events)).toEqual(['key 1', 'key 2', 'key 3']);
    expect(requests(after.events)).toEqual(['key 4', 'key 5', 'key 6']);
  });
});

describe('where records can be asked for', () => {
  const canBeAsked = () => true;

  it('one complete sweep is enough to ask for each that it has not seen, one after the other', () => {
    const ledger = new SweepLedger(keys(1, 9));
    const missing = [3, 5, 8];
    const { events, gone } = swept({
      list: () => ids(1, 9).filter((id) => !missing.includes(id)),
      ledger,
      canBeAsked,
    });
    const from = events.indexOf('ask for key 3');
    expect(events.slice(from)).toEqual([
      ...['ask for key 3', 'asked since 1: 3', 'kept'],
      ...['ask for key 5', 'asked since 1: 5', 'kept'],
      ...['ask for key 8', 'asked since 1: 8', 'kept'],
      ...['end', 'kept'],
    ]);
    expect(gone).toEqual(['3', '5', '8']);
  });

  it('what is there is not gone, and what can not be asked for never is', () => {
    // 7 is missed by the sweep, as one can be in a list that moves.
    const list = (at: number) => (at < 10 ? [1, 2, 3] : [1, 2, 3, 7]);
    const ledger = new SweepLedger(['1', '2', '3', '7', 'x', '9']);
    const { events, gone } = swept({ list, ledger, canBeAsked: (key) => key !== 'x', until: sweepsEnded(3) }); // prettier-ignore
    expect(requests(events).filter((name) => name.startsWith('key'))).toEqual(['key 7', 'key 9']);
    expect(gone).toEqual(['9']);
    expect(ledger.keys().sort()).toEqual(['1', '2', '3', '7', 'x']);
  });

  it('nothing is asked after a sweep that proves nothing', () => {
    const { events } = swept({ list: () => [], ledger: afterTwo(keys(1, 3)), canBeAsked });
    expect(steps(events)).toEqual(['page 0', 'end']);
  });
});

describe('where they can not', () => {
  it('a key is gone that is absent from two sweeps in a row', () => {
    const ledger = afterTwo(keys(1, 5));
    const list = () => [1, 2, 4];
    const first = swept({ list, ledger });
    expect(steps(first.events)).toEqual(['page 0', 'end']);
    const second = swept({ list, ledger });
    expect(steps(second.events)).toEqual(['page 0', 'absent since 3: 3,5', 'end']);
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

  it('nothing is, where no sweep was exact', () => {
    const ledger = new SweepLedger(keys(1, 9));
    // Its total moves between any two pages.
    const moving = (at: number) => (at % 16 < 8 ? ids(1, 6) : ids(1, 7));
    const { gone, ledger: after } = swept({ list: moving, ledger, until: sweepsEnded(6) });
    expect(after.progress).toMatchObject({ proof: 'complete', proofBefore: 'complete' });
    expect(gone).toEqual([]);
    expect(swept({ list: () => ids(1, 7), ledger }).gone).toEqual(['8', '9']); // one exact is enough
  });

  it('a list that was empty in between breaks the row', () => {
    const ledger = afterTwo(keys(1, 5));
    const [some, none] = [() => [1, 2, 4], () => []];
    const gone = [some, none, some, some].map((list) => swept({ list, ledger }).gone);
    expect(gone).toEqual([[], [], [], ['3', '5']]);
  });
});

describe('when much is gone at once', () => {
  const list = () => ids(1, 100);
  const run = (known: number, limitPercent: number, more: Partial<Run> = {}) =>
    swept({ list, ledger: new SweepLedger(keys(1, known)), canBeAsked: () => true, limitPercent, ...more }); // prettier-ignore

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

  it('20 of 20 may go', () => {
    expect(swept({ list: () => [], ledger: removing(keys(1, 20)), limitPercent: 1 }).gone).toEqual(
      keys(1, 20).sort(),
    );
  });

  it('what went within the last hour counts too, and no longer', () => {
    const after = (ms: number) => {
      const ledger = new SweepLedger(keys(1, 115));
      ledger.progress = withRemoved({ ...NO_SWEEP, beganAt: -ms }, 10, -ms);
      return swept({ list, ledger, canBeAsked: () => true, limitPercent: 5 });
    };
    expect(after(3_599_000).held).toEqual([{ gone: 25, known: 125 }]);
    expect(after(3_600_000)).toMatchObject({ held: [], gone: expect.objectContaining({ length: 15 }) }); // prettier-ignore
  });

  it('nothing is held where nothing more is gone, whatever went before', () => {
    const ledger = new SweepLedger(keys(1, 100));
    ledger.progress = withRemoved({ ...NO_SWEEP, beganAt: -1_000 }, 30, -1_000);
    const { held } = swept({ list, ledger, canBeAsked: () => true, limitPercent: 5 });
    expect(held).toEqual([]);
  });

  it('what can never go does not count', () => {
    const canBeAsked = (key: string) => Number(key) <= 110;
    const { gone, held } = run(150, 5, { canBeAsked });
    expect({ gone: gone.length, held }).toEqual({ gone: 10, held: [] });
  });

  it('none of it is asked for, however many stretches it is counted in', () => {
    const ledger = new SweepLedger(keys(1, 150), 7);
    const { events, held } = swept({ list, ledger, canBeAsked: () => true, limitPercent: 5 });
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
  const phase: SweepProgress = { ...NO_SWEEP, number: 2, phase: 'removing', proof: 'exact', proofBefore: 'exact' }; // prettier-ignore
  const options = {
    progress: () => phase,
    scan: () => EMPTY,
    moment: () => ({ begin: 1, end: 2 }),
    intervalMs: 0,
    limitPercent: 100,
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
    };
    let told = 0;
    const scheduler = virtualTime();
    scheduler.run(() => {
      const place = room(1);
      const ask = () => timer(1, scheduler).pipe(map(() => answer([], { total_records: 0, has_next_page: false }))); // prettier-ignore
      sweeps({ ...options, progress: () => ledger.progress, room: place, records, scheduler, ...(asking && { ask }) }) // prettier-ignore
        .pipe(
          tap((step) => {
            if (step.kind === 'asked') told += 1;
            if (step.kind === 'absent') told += step.keys.length;
          }),
          takeWhile(({ kind }) => kind !== 'end'),
          delay(1, scheduler),
          tap(() => place.leave()),
        )
        .subscribe();
    });
    const since = asking ? 4 : 3;
    const ends = [undefined, ...keys(1, 60).sort().filter((_, k) => k % 10 === 9)].slice(0, 6); // prettier-ignore
    expect(lookups).toEqual([
      ...ends.map((after) => `since ${since} after ${after}, 0 told`), // they are counted first
      ...ends.map((after, k) => `since ${since} after ${after}, ${10 * k} told`),
    ]);
  });

  it('and stack stay bounded when millions are gone', () => {
    const stretch = Array<string>(500).fill('gone');
    const held: Held[] = [];
    const scheduler = virtualTime();
    scheduler.run(() => {
      const place = room(1);
      let stretches = 0;
      const unseen = () => ({ keys: stretch, next: ++stretches < 10_000 ? 'more' : undefined });
      sweeps({
        ...options,
        room: place,
        records: { count: () => 5_000_000, unseen },
        limitPercent: 5,
        onHeld: (found) => held.push(found),
        scheduler,
      })
        .pipe(takeWhile(({ kind }) => kind !== 'end'))
        .subscribe();
    });
    expect(held).toEqual([{ gone: 5_000_000, known: 5_000_000 }]);
  });
});
