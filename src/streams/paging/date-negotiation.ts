import { dateProbe, endProbe } from './date-probe.ts';
import type { ProbeFinding, ProbeQuestion, ProbeReply } from './date-probe.ts';
import { SHORTEST_MS } from './list-dates.ts';
import type { ListDates, NoDates } from './list-dates.ts';
import type { Window } from './poll.ts';

/** The dates of a request; without any, the list's first page. */
export type ProbeDates = Partial<Window>;

const A_MINUTE_MS = 60_000;

/** Facts that a negotiation begins with. */
interface NegotiationStart {
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
 * Finds out why a dated request was refused, by requests without dates, with the same dates, and with those of a minute; moves on from form
 * to form until one is accepted, and halves the longest window where only long ones are refused. Ends with `dates` changed, unless the
 * refusal has nothing to do with dates, or has passed.
 *
 * A server that fails (5xx, no answer) may do so because of a form, too. Each form then takes a minute to be given up, so the list is
 * reported as one without dates meanwhile, and fewer forms are tried: each end, and each text.
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
      const still = yield refused; // the refusal may have passed since
      if (!still.isRefused) return false;
      dates.longestFound(length / 2);
      return true;
    }
  }
  let why: NoDates = again.isUnanswered && short.isUnanswered ? 'unanswered' : 'refused';
  const isFailing = why === 'unanswered';
  if (isFailing) {
    dates.without(why, reason);
    dates.tryAgain();
  } else {
    // A bound may lie in the server's future only because of the zone that it is read in.
    const finding = yield* written(dateProbe(now, newest, dates.offsetMs), dates);
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
    // The usual form is kept if its refusal has passed meanwhile.
    const usual = isUsualForm ? yield refused : reply;
    if (isUsualForm && !usual.isRefused) dates.tryAgain();
    else dates.formWorks();
    return true;
  }
  return true;
}

/**
 * Probes how a list reads its date parameters, and whether it reads the end of polls' windows; moves on to another end if it does not.
 * Without an end there is none to probe. Changes `dates`, unless dates are of no use: the caller decides about those.
 *
 * @param newest The newest stamp seen, in ms.
 */
export function* probedDates(
  dates: ListDates,
  newest: number | undefined,
): Generator<ProbeDates, ProbeFinding, ProbeReply> {
  const finding = yield* written(dateProbe(dates.now, newest, dates.offsetMs), dates);
  if (finding.kind !== 'offset') return finding;
  if (dates.noDates) dates.tryAgain();
  dates.offsetFound(finding.offsetMs);
  while (dates.form.end !== 'none') {
    const isMisread = yield* written(endProbe(dates.now, newest, dates.offsetMs), dates);
    if (!isMisread) break;
    dates.nextForm('empty');
  }
  dates.formWorks();
  return finding;
}

/** The questions of a probe with dates as the list takes them. */
function* written<Finding>(
  steps: Generator<ProbeQuestion, Finding, ProbeReply>,
  dates: ListDates,
): Generator<ProbeDates, Finding, ProbeReply> {
  let step = steps.next();
  while (!step.done) {
    const { value } = step;
    step = steps.next(yield value === 'undated' ? {} : windowOf(value, dates));
  }
  return step.value;
}

function windowOf({ from, to }: Exclude<ProbeQuestion, 'undated'>, dates: ListDates): Window {
  return to === 'poll-end' ? dates.polled(from) : dates.closed(from, to);
}
