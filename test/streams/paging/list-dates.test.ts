import { describe, expect, it } from 'vitest';
import { ServerClock } from '../../../src/streams/http/server-clock.ts';
import { dateNegotiation, probedDates } from '../../../src/streams/paging/date-negotiation.ts';
import { datesText, ListDates } from '../../../src/streams/paging/list-dates.ts';
import { timeFormat } from '../../../src/description/time-format.ts';

const NOW = Date.UTC(2026, 2, 5, 12, 34, 56, 789);
const TWO_DAYS_MS = 2 * 86_400_000;

const BOTH = { changed_since: '{from}', changed_until: '{to}' };

function datesIn(times: Parameters<typeof timeFormat>[0], parameters: object = BOTH) {
  const clock = new ServerClock();
  clock.tell(NOW, NOW);
  const format = timeFormat(times);
  return new ListDates({
    ...{ clock, localTime: () => NOW, stamp: 'modified', times: format },
    parameters: { ...parameters },
  });
}

describe.each([
  ['epoch-s', '1772714096', '1772886896'],
  ['epoch-ms', '1772714096789', '1772886896789'],
  ['http-date', 'Thu, 05 Mar 2026 12:34:56 GMT', 'Sat, 07 Mar 2026 12:34:56 GMT'],
  [{ pattern: 'yyyyMMdd HHmmss', zone: 'UTC' }, '20260305 123456', '20260307 123456'],
] as const)('dates in %j', (times, from, to) => {
  it('are sent and read in that format', () => {
    const dates = datesIn(times);
    const both = Object.values(dates.windowOf(NOW, NOW).dates);
    expect(both).toEqual([from, to]);
    expect(Object.values(dates.closed(NOW, NOW + TWO_DAYS_MS))).toEqual([from, to]);
    expect(Object.values(dates.from(NOW))).toEqual([from]);
    expect(dates.timeOf(to) - dates.timeOf(from)).toBe(TWO_DAYS_MS);
  });

  it('have no other notation to try, only other ends of windows', () => {
    const dates = datesIn(times);
    const sent = [Object.values(dates.windowOf(NOW, NOW).dates)];
    while (dates.nextForm('refused')) sent.push(Object.values(dates.windowOf(NOW, NOW).dates));
    expect(sent).toEqual([[from, to], [from, from], [from]]);
    expect(dates.noDates).toBe('refused');
    expect(datesIn(times).nextForm('refused', 'text')).toBe(false);
  });
});

it('findings name the field of the stamps and the parameters', () => {
  const dates = datesIn('epoch-s');
  dates.offsetFound(3_600_000);
  expect(datesText(dates.found)).toContain(
    'the API reads changed_since with an offset of +1:00 h from the time zone of modified:',
  );
  expect(dates.found.form).toBe('changed_until two days ahead');
});

describe('without a parameter for the end of a window', () => {
  const SINCE = { changed_since: '{from}' };

  it('windows have no end, and include certainly what was seen alone', () => {
    const dates = datesIn('iso', SINCE);
    expect(dates.windowOf(NOW, NOW)).toEqual({
      dates: { from: '2026-03-05T12:34:56.789Z' },
      until: NOW,
    });
    expect(dates.nextForm('refused')).toBe(true);
    expect(dates.windowOf(NOW, NOW).dates).toEqual({ from: '2026-03-05T12:34:56Z' });
  });

  it('the time zone of dates is not probed: it can not be told from windows without an end', () => {
    const steps = probedDates(datesIn('iso', SINCE), NOW);
    expect(steps.next()).toEqual({ done: true, value: { kind: 'unknown' } });
  });
});

it('a window that is accepted again after another form was counts as a failed scan, and changes nothing', () => {
  const dates = datesIn('iso');
  const refused = dates.windowOf(NOW - 1_000, NOW).dates;
  const steps = dateNegotiation(dates, refused, { now: NOW, newest: undefined });
  const reply = (isRefused: boolean) => ({ stamps: [], isWhole: !isRefused, isRefused });
  steps.next();
  expect(steps.next(reply(false)).value).toEqual(refused);
  steps.next(reply(true)); // asks for a window of a minute
  expect(steps.next(reply(true)).value).toEqual({}); // looks for stamps to measure an offset with
  const { value } = steps.next(reply(false));
  expect(value).toEqual(dates.windowOf(NOW - 60_000, NOW).dates);
  expect(dates.form.end).toBe('now');
  expect(steps.next(reply(false)).value).toEqual(refused);
  expect(steps.next(reply(false))).toEqual({ done: true, value: false });
  expect(dates.found).toEqual(datesIn('iso').found);
});
