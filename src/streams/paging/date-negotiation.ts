import { dateProbe } from './date-probe.ts';
import type { ProbeQuestion, ProbeReply } from './date-probe.ts';
import { SHORTEST_MS } from './list-dates.ts';
import type { ListDates } from './list-dates.ts';
import type { Window } from './poll.ts';

/** The dates of a request; without any, the list's first page. */
export type ProbeDates = Partial<Window>;

const A_MINUTE_MS = 60_000;

/** What a negotiation begins with. */
export interface NegotiationStart {
  /** The server's time, in ms. */
  readonly now: number;
  /** The newest stamp seen, in ms. */
  readonly newest: number | undefined;
  /** The error of the refused request, on one line. */
  readonly reason?: string | undefined;
  /** Called once a request without dates was answered, and the refused one failed again. Default nothing. */
  readonly onConfirmed?: () => void;
}

/**
 * Finds out why a dated request was refused, by requests without dates, with the same dates, and with those of a minute; moves on from form to
 * form until one is accepted, and halves the longest window where only long ones are refused. If the server fails rather than refuses, other
 * forms are not tried. Ends with `dates` changed, unless the refusal has nothing to do with dates, or has passed.
 *
 * @returns Whether `dates` are changed; if not, the same request is accepted by now.
 */
export function* dateNegotiation(
  dates: ListDates,
  refused: Window,
  start: NegotiationStart,
): Generator<ProbeDates, boolean, ProbeReply> {
  const { now, newest, reason, onConfirmed } = start;
  yield {}; // what refuses this too is not about dates, and errors
  const again = yield refused;
  if (!again.isRefused) return false;
  onConfirmed?.();
  const { isUsualForm } = dates.found;
  const inForm = () => dates.windowOf(dates.fromStamp(now - A_MINUTE_MS), now).dates;
  const short = yield inForm();
  if (!short.isRefused) {
    const end = refused.modifiedToDate === undefined ? now : Date.parse(refused.modifiedToDate);
    const length = Math.min(dates.longestMs, end - Date.parse(refused.modifiedFromDate));
    if (length / 2 >= SHORTEST_MS) {
      dates.longestFound(length / 2);
      return true;
    }
  }
  if (again.isUnanswered && short.isUnanswered) {
    dates.without('unanswered', reason);
    return true;
  }
  // A bound may lie in the server's future only because of the zone that it is read in.
  const finding = yield* written(dateProbe(newest, dates.offsetMs), dates);
  if (finding.kind === 'offset' && finding.offsetMs !== dates.offsetMs) {
    dates.offsetFound(finding.offsetMs);
    const shifted = yield inForm();
    if (!shifted.isRefused) return true;
  }
  while (dates.nextForm('refused', 'form', reason)) {
    const reply = yield inForm();
    if (reply.isRefused) continue;
    // The usual form is kept if its refusal has passed meanwhile.
    const usual = isUsualForm ? yield refused : reply;
    if (isUsualForm && !usual.isRefused) dates.tryAgain();
    else dates.formWorks();
    return true;
  }
  return true;
}

/** The questions of a probe with dates as the list takes them. */
export function* written<Finding>(
  steps: Generator<ProbeQuestion, Finding, ProbeReply>,
  dates: ListDates,
): Generator<ProbeDates, Finding, ProbeReply> {
  let step = steps.next();
  while (!step.done) {
    const { value } = step;
    step = steps.next(yield value === 'undated' ? {} : dates.closed(value.from, value.to));
  }
  return step.value;
}
