// Adapts the date parameters of a list, by trial requests, to what its server accepts.

import { dateProbe, endProbe } from './date-probe.ts';
import type { ProbeDates, ProbeFinding, ProbeReply } from './date-probe.ts';
import { SHORTEST_MS } from './list-dates.ts';
import type { ListDates, NoDates } from './list-dates.ts';
import type { Window } from './poll.ts';

const A_MINUTE_MS = 60_000;

interface NegotiationStart {
  readonly now: number;
  /** The newest modification time seen in the list, in epoch ms; undefined if none was seen. */
  readonly newest: number | undefined;
  readonly reason?: string | undefined;
  /** Called when the refusal is confirmed: requests without dates succeed, and the same dates were refused again. */
  readonly onConfirmed?: () => void;
}

/**
 * Adapts `dates` to what the server accepts, after the server has refused a request with dates. A generator that yields the dates of one
 * trial request after another:
 *
 * 1. No dates. If this request fails as well, the dates are not the cause, and the caller does not resume the generator.
 * 2. The refused dates. If the server accepts them this time, nothing is changed.
 * 3. A window that begins a minute ago. If the server accepts it, and the refused window is at least two days long: the refused window
 *    again. If that is still refused, windows are limited to half its length from then on.
 * 4. Otherwise windows that measure the offset of the date parameters, and then one date format after the other. A date format is a
 *    notation of dates together with a kind of window end.
 *
 * If requests fail by server errors or timeouts instead of being refused, the offset is not measured, and fewer formats are tried.
 *
 * @param start `now` and `newest` (newest modification time) in epoch ms; `reason`: the error on one line.
 * @returns False if the server accepts the refused window after all; `dates` may then have a new offset, and no length limit. True if
 * `dates` was changed: to what the server accepts or, if it accepts nothing, to a list that is not polled by dates.
 */
export function* dateNegotiation(
  dates: ListDates,
  refused: Window,
  start: NegotiationStart,
): Generator<ProbeDates, boolean, ProbeReply> {
  const { now, newest, reason, onConfirmed } = start;
  yield {}; // if this is refused as well, the cause is not the dates, and the caller fails with the error
  const again = yield refused;
  if (!again.isRefused) return false;
  onConfirmed?.();
  const { isUsualForm } = dates.found;
  const inForm = () => dates.windowOf(dates.fromStamp(now - A_MINUTE_MS), now).dates;
  const short = yield inForm();
  if (!short.isRefused) {
    const end = refused.to === undefined ? now : dates.timeOf(refused.to);
    const length = Math.min(dates.longestMs, end - dates.timeOf(refused.from));
    if (length / 2 >= SHORTEST_MS) {
      const still = yield refused; // the refusal may have passed since
      if (!still.isRefused) return false;
      dates.longestFound(length / 2);
      return true;
    }
  }
  let why: NoDates = again.isUnanswered && short.isUnanswered ? 'unanswered' : 'refused';
  const isFailing = why === 'unanswered';
  if (isFailing) {
    // The format may still be the cause, but each trial takes a minute: the offset is not measured, and fewer formats are tried.
    dates.without(why, reason);
    dates.tryAgain();
  } else {
    // A bound may lie in the server's future only because the server parses it in another time zone.
    const finding = yield* dateProbe(dates, now, newest);
    if (finding.kind === 'offset' && finding.offsetMs !== dates.offsetMs) {
      dates.offsetFound(finding.offsetMs);
      const shifted = yield inForm();
      if (!shifted.isRefused) return true;
    }
  }
  while (dates.nextForm(why, isFailing && !dates.isUsualText ? 'text' : 'form', reason)) {
    const reply = yield inForm();
    if (reply.isRefused) {
      if (!reply.isUnanswered) why = 'refused';
      continue;
    }
    // Returns to the documented format if its refusal has passed in the meantime.
    if (isUsualForm && !(yield refused).isRefused) {
      dates.tryAgain();
      return false;
    }
    dates.report();
    return true;
  }
  return true;
}

/**
 * Measures how a list interprets dates, and stores the results in `dates`. A generator that yields the requests to send and returns the
 * finding.
 *
 * 1. Measures the offset between modification times and date parameters. If no offset is found, the generator ends and stores nothing.
 * 2. Tries date formats until one has no window end, or has a window end that the list interprets correctly.
 *
 * @param newest The newest modification time seen, in epoch ms.
 */
export function* probedDates(
  dates: ListDates,
  newest: number | undefined,
): Generator<ProbeDates, ProbeFinding, ProbeReply> {
  const finding = yield* dateProbe(dates, dates.now, newest);
  if (finding.kind !== 'offset') return finding;
  if (dates.noDates) dates.tryAgain();
  dates.offsetFound(finding.offsetMs);
  while (dates.form.end !== 'none') {
    const isMisread = yield* endProbe(dates, dates.now, newest);
    if (!isMisread) break;
    dates.nextForm('empty');
  }
  dates.report();
  return finding;
}
