import { concatMap, defer, delay, finalize, from, map, of, take, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';
import type { ScanPage } from '../../../src/streams/paging/pages.ts';
import { poll, window } from '../../../src/streams/paging/poll.ts';
import type { PollOptions, PollPage, Window } from '../../../src/streams/paging/poll.ts';
import { ServerClock } from '../../../src/streams/http/server-clock.ts';
import { scanPage } from '../../support/scan-page.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
/** The server's time at 0 ms of virtual time. */
const NOON = Date.UTC(2026, 2, 5, 12);

/** A scan as it was asked for: when (virtual ms), and from where and up to where (ms after noon). */
interface Asked {
  readonly back: boolean;
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

interface Pages {
  readonly pages?: number;
  readonly pageMs?: number;
  /** Of scans that look back far. */
  readonly backPages?: number;
  readonly backPageMs?: number;
}

/** Scans of so many pages, each of which takes `pageMs`, against a server with a right clock. */
function scans(scheduler: TestScheduler, options: Pages = {}) {
  const { pages = 1, pageMs = 5, backPages = pages, backPageMs = pageMs } = options;
  const asked: Asked[] = [];
  let running = 0;
  let maxAtOnce = 0;
  const scanning = (dates: Window, back: boolean): Observable<ScanPage> =>
    defer(() => {
      const from = Date.parse(dates.from) - NOON;
      const to = Date.parse(dates.to!) - NOON;
      asked.push({ back, at: scheduler.now(), from, to });
      if (back) return pagesOf(scheduler, backPages, backPageMs);
      maxAtOnce = Math.max(maxAtOnce, ++running);
      return pagesOf(scheduler, pages, pageMs).pipe(finalize(() => running--));
    });
  const scan = (dates: Window) => scanning(dates, false);
  const scanBack = (dates: Window) => scanning(dates, true);
  return { scan, scanBack, asked, maxAtOnce: () => maxAtOnce };
}

/** Pages one after the other, each with the server's time at which it was asked for. */
function pagesOf(scheduler: TestScheduler, pages: number, pageMs: number): Observable<ScanPage> {
  return from(Array(pages).keys()).pipe(
    concatMap((page) =>
      defer(() => of(scanPage(page === pages - 1, NOON + scheduler.now()))).pipe(
        delay(pageMs, scheduler),
      ),
    ),
  );
}

/** A clock of records that is never behind `Date`, as if such a record had been seen. */
function punctualClock(): ServerClock {
  return Object.assign(new ServerClock(), { newest: () => Infinity });
}

/** Polls for so long in virtual time, and gives what was asked for. */
function polled(
  forMs: number,
  options: Partial<PollOptions> &
    Pages & {
      onPage?: (page: PollPage) => void;
    } = {},
) {
  const scheduler = virtualTime();
  const { scan, scanBack, asked, maxAtOnce } = scans(scheduler, options);
  scheduler.run(() => {
    poll({ scan, scanBack, clock: punctualClock(), since: NOON, scheduler, ...options }).subscribe(
      (page) => options.onPage?.(page),
    );
    scheduler.maxFrames = forMs;
  });
  const [newest, back] = [false, true].map((which) => asked.filter((each) => each.back === which));
  return { asked, newest: newest!, back: back!, maxAtOnce: maxAtOnce() };
}

describe('poll', () => {
  it('gives each page, and with the last one of a poll where the next window begins', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const [first, last] = [scanPage(false, NOON + 1), scanPage(true, NOON + 2)];
      const source = cold('  --f-(l|)', { f: first, l: last });
      const subs = ['        ^---!', '10ms ^---!'];
      const unsub = '        20ms !';
      const expected = '     --f-l 7ms f-l';
      const values = {
        f: { page: first, since: undefined, looksBack: false },
        l: { page: last, since: NOON + 1, looksBack: false },
      };
      const scan = () => source;
      const poll$ = poll({
        scan,
        clock: punctualClock(),
        since: NOON,
        lookbackMs: 0,
        intervalMs: 10,
        scheduler,
      });

      expectObservable(poll$, unsub).toBe(expected, values);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('begins at once when it is told to in a pause, not earlier, and pauses as long behind it', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const source = cold('  --(l|)', { l: scanPage(true, NOON) });
      const pollNow$ = hot(' -x-----x');
      const subs = ['        ^-!', '-------^-!', '17ms ^-!'];
      const poll$ = poll({
        ...{ scan: () => source, clock: punctualClock(), since: NOON, lookbackMs: 0 },
        ...{ intervalMs: 10, pollNow$, scheduler },
      }).pipe(map(() => 'l'));

      expectObservable(poll$, '24ms !').toBe('--l------l 9ms l');
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('makes the first pause as long as it is told to', () => {
    const { newest } = polled(25_000, { intervalMs: 10_000, firstIntervalMs: 4_000 });
    expect(newest.map(({ at }) => at)).toEqual([0, 4_000, 14_000, 24_000]);
  });

  it('begins each window where the one before began, less ten seconds', () => {
    const { newest } = polled(35_000, { intervalMs: 10_000 });
    expect(newest.map(({ at, from }) => [at, from])).toEqual([
      [0, 0 - 10_000],
      [10_000, 0 - 10_000],
      [20_000, 10_000 - 10_000],
      [30_000, 20_000 - 10_000],
    ]);
  });

  it('looks back `lookbackMs` once every `lookbackMs`, from where it did so before', () => {
    const { back } = polled(125_000, { intervalMs: 7_000, lookbackMs: 30_000 });
    expect(back.map(({ at, from }) => [at, from])).toEqual([
      [0, -2 * 30_000], // whoever looked back before did so `lookbackMs` ago, or later
      [30_000, 0 - 30_000],
      [60_000, 30_000 - 30_000],
      [90_000, 60_000 - 30_000],
      [120_000, 90_000 - 30_000],
    ]);
  });

  it('looks back that far at every poll where they are as rare as that', () => {
    const { asked } = polled(65_000, { intervalMs: 20_000, lookbackMs: 20_000 });
    expect(asked.map(({ at, from }) => at - from)).toEqual([20_000, 40_000, 40_000, 40_000]);
  });

  it('looks back less than ten seconds where twice `lookbackMs` is less', () => {
    const { asked } = polled(35, { intervalMs: 10, lookbackMs: 2_000 });
    expect(asked.map(({ at, from }) => at - from)).toEqual([4_000, 4_010, 4_010, 4_010]);
    const none = polled(35, { intervalMs: 10, lookbackMs: 0 });
    expect(none.asked.map(({ at, from }) => at - from)).toEqual([0, 10, 10, 10]);
  });

  it('keeps its rhythm while it looks back, and from the first poll on', () => {
    const { newest, back } = polled(130_000, {
      intervalMs: 2_000,
      backPages: 10,
      backPageMs: 3_000,
    });
    expect(newest.map(({ at }) => at)).toEqual(Array.from({ length: 66 }, (_, k) => k * 2_000));
    expect(back.map(({ at }) => at)).toEqual([0, 60_000, 120_000]);
  });

  it('goes on after a restart where what looking back had not come to its end has to be done again', () => {
    const sinces: [at: number, since: number][] = [];
    const scheduler = virtualTime();
    const { scan, scanBack } = scans(scheduler, { backPages: 10, backPageMs: 2_000 });
    scheduler.run(() => {
      poll({ scan, scanBack, clock: punctualClock(), since: NOON, intervalMs: 5_000, scheduler })
        .pipe(tap(({ since, looksBack }) => looksBack && expect(since).toBeUndefined()))
        .subscribe(({ since }) => {
          if (since !== undefined) sinces.push([scheduler.now(), since - NOON]);
        });
      scheduler.maxFrames = 145_000;
    });
    // What looked back began at 0, 60 and 120 s, and has come to its end 20 s later.
    for (const [at, since] of sinces) {
      const ended = at < 20_000 ? -MINUTE : at < 80_000 ? 0 : at < 140_000 ? MINUTE : 2 * MINUTE;
      expect(since).toBe(Math.min(at - 5, ended + MINUTE));
    }
    expect(sinces.length).toBeGreaterThan(25);
  });

  it('takes the mark at the start of a scan, however long it runs and whatever it sees', () => {
    const clock = new ServerClock();
    clock.see([NOON - 7_001]); // the clock of the records is 7 s behind
    const scheduler = virtualTime();
    const { scan, asked } = scans(scheduler, { pages: 3, pageMs: 1_000 });
    const marks: (number | undefined)[] = [];
    scheduler.run(() => {
      const seeing = (dates: Window) => scan(dates).pipe(tap(() => clock.see([NOON - 6_000])));
      poll({ scan: seeing, clock, since: NOON - DAY, lookbackMs: 0, scheduler })
        .pipe(take(6))
        .subscribe(({ since }) => marks.push(since === undefined ? since : since - NOON));
    });
    expect(marks).toEqual([undefined, undefined, -7_001, undefined, undefined, -6_000]);
    expect(asked.map(({ from }) => from)).toEqual([-DAY, -7_001]);

    const told = punctualClock(); // by every page, as a pipeline does
    const onPage = ({ page }: PollPage) => told.tell(page.answer.serverTime);
    const options = { clock: told, onPage, lookbackMs: 0 };
    const long = polled(25_000, { pages: 10, pageMs: 1_000, ...options });
    expect(long.asked.map(({ at, from }) => [at, from])).toEqual([
      [0, 0],
      [10_000, 0], // by the Date of the first page, not of the tenth
      [20_000, 10_000],
    ]);
  });

  it('stays where it is while nothing is known of the time', () => {
    const scan = () => of(scanPage(true));
    const scheduler = virtualTime();
    scheduler.run(({ expectObservable }) => {
      const since$ = poll({
        scan,
        clock: new ServerClock(),
        since: NOON,
        lookbackMs: 0,
        intervalMs: 5,
        scheduler,
      }).pipe(
        take(3),
        map(({ since }) => since),
      );
      expectObservable(since$).toBe('a 4ms a 4ms (a|)', { a: NOON });
    });
  });

  it('goes by the records that it reads where no Date is sent', () => {
    const stamped = (ms: number) => ({ updated_at: new Date(NOON + ms).toISOString() });
    const pages = [
      scanPage(false, undefined, [stamped(1_000), null, {}]),
      scanPage(true, undefined, [stamped(2_000)]),
    ];
    const starts: number[] = [];
    const scheduler = virtualTime();
    scheduler.run(({ cold }) => {
      const scan = ({ from }: Window) => {
        starts.push(Date.parse(from) - NOON);
        return cold('a-(b|)', { a: pages[0]!, b: pages[1]! });
      };
      poll({ scan, since: NOON, lookbackMs: 0, intervalMs: 10, scheduler })
        .pipe(take(6))
        .subscribe();
    });
    expect(starts).toEqual([0, 0, 2_000]); // as of the start of the scan before
  });

  it('leaves no gap behind a window whose end a wrong local clock has set', () => {
    const { asked } = polled(25, { since: NOON - 400 * DAY, lookbackMs: 0, intervalMs: 10 });
    expect(asked.map(({ from, to }) => [from, to])).toEqual([
      [-400 * DAY, -398 * DAY], // virtual time begins in 1970
      [-399 * DAY, 2 * DAY],
      [10, 10 + 2 * DAY],
    ]);
  });

  it('finds what is committed up to `lookbackMs` late, within as long again', () => {
    const lookbackMs = 30_000;
    const intervalMs = 700;
    const { asked } = polled(200_000, { intervalMs, lookbackMs });
    for (let stamped = 0; stamped < 100_000; stamped += 331) {
      for (const late of [0, 9_000, 15_000, lookbackMs]) {
        const found = asked.find(({ at, from }) => at >= stamped + late && from <= stamped);
        const waited = found!.at - stamped - late;
        expect(waited).toBeLessThanOrEqual(late < 9_001 ? intervalMs : lookbackMs);
      }
    }
  });

  it('always asks for two days ahead of any time that is known', () => {
    const { asked } = polled(35_000, { intervalMs: 10_000 });
    for (const { at, to } of asked) expect(to).toBeGreaterThanOrEqual(at - 10_000 + 2 * DAY);

    const clock = new ServerClock();
    clock.see([NOON + 400 * DAY]);
    const ahead = polled(1, { clock, lookbackMs: 0 });
    expect(ahead.asked[0]!.to).toBe(402 * DAY);

    const unknown = polled(1, { since: NOON + 5 * DAY });
    expect(unknown.asked[0]!.to).toBe(7 * DAY);
  });

  describe('a window with a record that can not be had', () => {
    const withGap = (gapUntil: number) => (scheduler: TestScheduler) => (): Observable<ScanPage> =>
      defer(() => {
        const page = scanPage(true, NOON + scheduler.now());
        const hasGap = scheduler.now() < gapUntil;
        return of(hasGap ? { ...page, answer: { ...page.answer, hasGap: true as const } } : page);
      }).pipe(delay(5, scheduler));
    /** Where the windows begin, by when they were asked for: minutes. */
    const windows = (gapUntil: number, forMs: number) => {
      const scheduler = virtualTime();
      const begins: [at: number, from: number][] = [];
      scheduler.run(() => {
        const read = withGap(gapUntil)(scheduler);
        poll({
          scan: ({ from }) => {
            begins.push([scheduler.now() / MINUTE, (Date.parse(from) - NOON) / MINUTE]);
            return read();
          },
          clock: punctualClock(),
          since: NOON,
          lookbackMs: 0,
          intervalMs: MINUTE,
          scheduler,
        }).subscribe();
        scheduler.maxFrames = forMs;
      });
      return begins;
    };

    it('is read again from where it began until the record comes', () => {
      const begins = windows(4 * MINUTE, 6.5 * MINUTE);
      expect(begins.map(([, from]) => from)).toEqual([0, 0, 0, 0, 0, 4, 5]);
    });

    it('is given up after ten minutes', () => {
      const held = windows(Infinity, 13 * MINUTE).filter(([, from]) => from === 0);
      expect(held.map(([at]) => at)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });
  });

  describe('the time between polls', () => {
    const starts = (forMs: number, options: Parameters<typeof polled>[1]) =>
      polled(forMs, { lookbackMs: 0, ...options }).newest.map(({ at }) => at);

    it('is none by default', () => {
      expect(starts(22, { pageMs: 5 })).toEqual([0, 5, 10, 15, 20]);
    });

    it('is `spacingMs` for each page of the one before', () => {
      expect(starts(3_500, { spacingMs: () => 1_000 })).toEqual([0, 1_000, 2_000, 3_000]);
      expect(starts(6_500, { spacingMs: () => 1_000, pages: 3 })).toEqual([0, 3_000, 6_000]);
    });

    it('is at least `intervalMs`', () => {
      const options = { spacingMs: () => 1_000, intervalMs: 2_500 };
      expect(starts(6_000, options)).toEqual([0, 2_500, 5_000]);
      expect(starts(6_500, { ...options, pages: 3 })).toEqual([0, 3_000, 6_000]);
    });

    it('follows `spacingMs` as it changes', () => {
      const spacings = [100, 1_000, 10, 10_000];
      expect(starts(2_000, { spacingMs: () => spacings.shift()! })).toEqual([0, 100, 1_100, 1_110]);
    });

    it('is what a scan takes, if that is longer: no two run at once', () => {
      const options = { pages: 4, pageMs: 50, intervalMs: 10, spacingMs: () => 10 };
      expect(starts(650, options)).toEqual([0, 200, 400, 600]);
      expect(polled(650, options).maxAtOnce).toBe(1);
    });

    it('pays for what looks back, a little at each poll, up to a third', () => {
      const spacingMs = () => 2_000;
      const requests = (backPages: number) => {
        const { newest, back } = polled(10 * MINUTE, { lookbackMs: MINUTE, spacingMs, backPages });
        const gaps = newest.slice(1).map(({ at }, k) => at - newest[k]!.at);
        return { most: Math.max(...gaps), all: newest.length + back.length * backPages };
      };
      expect(requests(1).most).toBeCloseTo(2_000 * (30 / 29), 0);
      expect(requests(7).most).toBeCloseTo(2_000 * (30 / 23), 0);
      expect(requests(50).most).toBeCloseTo(3_000, 0); // its lane keeps it to a third
      for (const pages of [1, 7]) {
        expect(requests(pages).all).toBeLessThanOrEqual(10 * 30 + 2 * pages);
        expect(requests(pages).all).toBeGreaterThan(10 * 30 - 10);
      }
    });
  });

  it('mirrors never and error, and an unsubscription ends the scan', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const by = (source: Observable<ScanPage>) =>
        poll({
          scan: () => source,
          clock: new ServerClock(),
          since: NOON,
          lookbackMs: 0,
          intervalMs: 10,
          scheduler,
        });
      const endless = cold<ScanPage>('-');
      const failing = cold<ScanPage>('--#');

      expectObservable(by(endless), '^---!').toBe('-');
      expectSubscriptions(endless.subscriptions).toBe('^---!');
      expectObservable(by(failing)).toBe('--#');
      expectSubscriptions(failing.subscriptions).toBe('^-!');
    });
  });

  it('leaves no timer when unsubscribed between polls', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<ScanPage>('--|');
      const poll$ = poll({
        scan: () => source,
        clock: new ServerClock(),
        since: NOON,
        lookbackMs: 0,
        intervalMs: 10,
        scheduler,
      });
      expectObservable(poll$, '^----!').toBe('-');
      expectSubscriptions(source.subscriptions).toBe('^-!');
    });
  });
});

describe('window', () => {
  it('is from one instant to two days after another, in ISO 8601', () => {
    expect(window(NOON, NOON + 1)).toEqual({
      from: '2026-03-05T12:00:00.000Z',
      to: '2026-03-07T12:00:00.001Z',
    });
  });

  it('stays within four digits of a year', () => {
    expect(window(-1, 1e15)).toEqual({
      from: '1970-01-01T00:00:00.000Z',
      to: '9999-12-31T00:00:00.000Z',
    });
  });
});
