import { describe, expect, it } from 'vitest';
import { dateProbe, endProbe } from '../../../src/streams/paging/date-probe.ts';
import type {
  ProbeDates,
  ProbeFinding,
  ProbeReply,
} from '../../../src/streams/paging/date-probe.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NOW = Date.UTC(2026, 2, 5, 12, 34, 56, 789);

interface Server {
  /** True modification times of the records. */
  readonly times: readonly number[];
  /** How a parameter is turned into an instant, and an instant into a stamp. */
  readonly instantOf?: (parameter: number) => number;
  readonly stampOf?: (at: number) => number;
  readonly ignores?: boolean;
  readonly parses?: boolean;
  readonly refuses?: (from: number, to: number) => boolean;
  readonly pageSize?: number;
  /** Whether nothing is shown for a window that ends at this parameter. */
  readonly hides?: (to: number) => boolean;
  /** Whether a window that ends at this parameter is shown as the whole list. */
  readonly drops?: (to: number) => boolean;
}

/** Puts a probe's questions to a server; tells how many there were. */
function answers<Finding>(
  server: Server,
  steps: Generator<ProbeDates, Finding, ProbeReply>,
): { readonly found: Finding; readonly questions: number } {
  const { times, ignores = false, parses = true, refuses = () => false, pageSize = 100 } = server;
  const { instantOf = (ms) => ms, stampOf = (ms) => ms } = server;
  const { hides = () => false, drops = () => false } = server;
  const answer = (dates: ProbeDates): ProbeReply => {
    const isUndated = dates.from === undefined;
    const from = Number(dates.from ?? 0);
    const to = Number(dates.to ?? Infinity);
    const shown = times.filter((at) => {
      if (isUndated || ignores || drops(to)) return true;
      return parses && !hides(to) && at >= instantOf(from) && at <= instantOf(to);
    });
    const isRefused = !isUndated && refuses(instantOf(from), instantOf(to));
    const stamps = isRefused ? [] : shown.slice(0, pageSize).map(stampOf);
    return { stamps, isWhole: !isRefused && shown.length <= pageSize, isRefused };
  };
  let step = steps.next();
  let questions = 0;
  while (!step.done) {
    questions += 1;
    expect(questions).toBeLessThan(50);
    step = steps.next(answer(step.value));
  }
  return { found: step.value, questions };
}

/** Windows as the server reads them, by a list whose offset is known to be this. */
const datesWith = (offsetMs: number) => ({
  canEnd: true,
  offsetMs,
  closed: (from: number, to: number) => ({ from: String(from), to: String(to) }),
  polled: (from: number) => ({ from: String(from), to: String(NOW + 2 * DAY) }),
});

function probed(server: Server, newest?: number, known = 0) {
  return answers<ProbeFinding>(server, dateProbe(datesWith(known), NOW, newest));
}

const offset = (offsetMs: number) => ({ kind: 'offset', offsetMs });
const SPARSE = [NOW - 3 * HOUR, NOW - 40 * DAY - 17 * MINUTE, NOW - 400 * DAY + 5 * HOUR];
/** A record each 40 seconds for two months. */
const BUSY = Array.from({ length: 129_600 }, (_, n) => NOW - n * 40_000);
const zone = (minutes: number) => (ms: number) => ms - minutes * MINUTE;

describe('dateProbe', () => {
  it('takes one request of a list that reads dates as written', () => {
    for (const times of [SPARSE, BUSY, [NOW - 9 * 365 * DAY]]) {
      expect(probed({ times }, times[0])).toEqual({ found: offset(0), questions: 1 });
    }
  });

  it.each([-720, -480, -210, -60, 60, 330, 345, 780, 840])(
    'finds the zone of a server that reads dates as local time, %i minutes ahead of UTC',
    (minutes) => {
      for (const times of [SPARSE, BUSY]) {
        const { found, questions } = probed({ times, instantOf: zone(minutes) }, times[0]);
        expect(found).toEqual(offset(minutes * MINUTE));
        expect(questions).toBeLessThan(30);
      }
    },
  );

  it('finds the zone of stamps that are local times without a zone', () => {
    const stampOf = (at: number) => at - 8 * HOUR;
    for (const times of [SPARSE, BUSY])
      expect(probed({ times, stampOf }, times[0]! - 8 * HOUR).found).toEqual(offset(8 * HOUR));
  });

  it('finds no offset where dates and stamps are in the same zone, whichever that is', () => {
    const server = {
      times: SPARSE,
      instantOf: (ms: number) => ms + 8 * HOUR,
      stampOf: (at: number) => at - 8 * HOUR,
    };
    expect(probed(server, SPARSE[0]! - 8 * HOUR)).toEqual({ found: offset(0), questions: 1 });
  });

  it('takes one request again once the offset is known', () => {
    const server = { times: BUSY, instantOf: zone(-480) };
    expect(probed(server, BUSY[0], -8 * HOUR)).toEqual({ found: offset(-8 * HOUR), questions: 1 });
  });

  it('finds the offset though the newest stamps are in what the server takes for the future', () => {
    const refuses = (_: number, to: number) => to > NOW;
    const server = { times: SPARSE, instantOf: zone(-480), refuses };
    expect(probed(server, SPARSE[0]).found).toEqual(offset(-8 * HOUR));
  });

  it('finds that dates are ignored', () => {
    for (const times of [SPARSE, BUSY])
      expect(probed({ times, ignores: true }, times[0]).found).toEqual({
        kind: 'no-dates',
        why: 'ignored',
      });
  });

  it('finds that the form of dates is not understood, and answered with nothing', () => {
    expect(probed({ times: SPARSE, parses: false }, SPARSE[0]).found).toEqual({
      kind: 'no-dates',
      why: 'empty',
    });
  });

  it.each([
    ['has no modification time', { times: [] }, undefined],
    ['cuts dates to the day', { times: SPARSE, instantOf: (ms: number) => ms - (ms % DAY) }, NOW],
    ['refuses dates', { times: SPARSE, refuses: () => true }, SPARSE[0]],
  ])('concludes nothing of a list that %s', (_, server, newest) => {
    expect(probed(server, newest).found).toEqual({ kind: 'unknown' });
  });

  it('is not misled by stamps that are cut to the day, while the server compares by the true time', () => {
    const stampOf = (at: number) => at - (at % DAY);
    for (const times of [[NOW], SPARSE, SPARSE.map((at) => at + 3 * HOUR)]) {
      const { found } = probed({ times, stampOf }, stampOf(times[0]!));
      expect([offset(0), { kind: 'unknown' }]).toContainEqual(found);
    }
  });

  it('takes a record that was changed since for no evidence', () => {
    expect(probed({ times: SPARSE }, NOW - 5 * DAY).found).toEqual(offset(0));
  });

  it('finds the zone of a list whose records were all imported at once', () => {
    const times = Array<number>(500).fill(NOW - 9 * DAY);
    expect(probed({ times, instantOf: zone(-480) }, times[0]).found).toEqual(offset(-8 * HOUR));
  });
});

describe('endProbe', () => {
  const inFuture = (to: number) => to > NOW;
  const ended = (server: Server, newest?: number, known = 0) =>
    answers(server, endProbe(datesWith(known), NOW, newest));

  it('takes one request of a list that reads an end in the future as written', () => {
    for (const times of [SPARSE, BUSY, [NOW - 9 * 365 * DAY]])
      expect(ended({ times }, times[0])).toEqual({ found: false, questions: 1 });
  });

  it.each([
    ['nothing', { hides: inFuture }],
    ['the whole list', { drops: inFuture }],
  ])('finds that an end in the future is answered with %s', (_, server) => {
    for (const newest of [SPARSE[0], undefined])
      expect(ended({ times: SPARSE, ...server }, newest).found).toBe(true);
  });

  it('finds it in a server of another time zone', () => {
    const server = { times: SPARSE, instantOf: zone(-480), hides: inFuture };
    expect(ended(server, SPARSE[0], -8 * HOUR).found).toBe(true);
  });

  it.each<[string, Server, number | undefined]>([
    ['without records', { times: [] }, undefined],
    ['whose newest record was deleted', { times: SPARSE.slice(1) }, SPARSE[0]],
    ['whose newest record was changed', { times: [NOW, ...SPARSE.slice(1)] }, SPARSE[0]],
    ['that refuses the end', { times: SPARSE, refuses: (_, to) => to > NOW }, SPARSE[0]],
  ])('finds nothing wrong with a list %s', (_, server, newest) => {
    expect(ended(server, newest).found).toBe(false);
  });

  it('is not misled by an index that lags for one answer', () => {
    let left = 1;
    const server = { times: SPARSE, hides: (to: number) => inFuture(to) && left-- > 0 };
    expect(ended(server, SPARSE[0]).found).toBe(false);
  });
});
