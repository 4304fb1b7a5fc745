import { describeError, isRetryableAtApi } from '../core/errors.ts';
import { dateRefusal } from '../pipeline/reads/dated-scan.ts';
import { recordsOf } from '../streams/decode/response.ts';
import type { Answer } from '../streams/decode/response.ts';
import { ServerClock } from '../streams/http/server-clock.ts';
import { dateNegotiation, probedDates } from '../streams/paging/date-negotiation.ts';
import type { ProbeDates, ProbeReply } from '../streams/paging/date-probe.ts';
import { datesText, ListDates } from '../streams/paging/list-dates.ts';
import type { ListDatesOptions } from '../streams/paging/list-dates.ts';

const A_MINUTE_MS = 60_000;

export interface DatesCheck {
  readonly text: string;
  /** Whether polls have to use dates in another way than documented, or can't use dates at all. */
  readonly isUnusual: boolean;
}

/**
 * Checks the date parameters of a list: requests it with dates as polls do, and measures how the API interprets them.
 *
 * @param first The list's first page.
 * @param ask Requests a page of the list with the given dates.
 * @param options Date parameters and time fields of the list, notation of dates in requests, and the local clock, in epoch ms.
 */
export async function checkDates(
  first: Answer,
  ask: (dates: ProbeDates) => Promise<Answer>,
  options: Omit<ListDatesOptions, 'clock' | 'onFound'>,
): Promise<DatesCheck> {
  const clock = new ServerClock();
  clock.tell(first.serverTime, options.localTime());
  clock.see(recordsOf(first).updatedAt());
  const dates = new ListDates({ clock, ...options });
  let reason: string | undefined;
  const replyTo = async (question: ProbeDates): Promise<ProbeReply> => {
    try {
      const answer = await ask(question);
      const stamps = recordsOf(answer).updatedAt();
      return { stamps, isWhole: !answer.hasNext, isRefused: false };
    } catch (error) {
      // If only requests with dates get no response, the finding is that the API does not respond to requests with dates.
      const why = dateRefusal(error) ?? (isRetryableAtApi(error) ? 'unanswered' : undefined);
      if (question.from === undefined || why === undefined) throw error;
      reason ??= describeError(error);
      const isUnanswered = why === 'unanswered';
      return { stamps: [], isWhole: false, isRefused: true, isUnanswered };
    }
  };
  const resultOf = async <T>(steps: Generator<ProbeDates, T, ProbeReply>): Promise<T> => {
    let step = steps.next();
    while (!step.done) step = steps.next(await replyTo(step.value));
    return step.value;
  };
  const { now } = dates;
  const newest = clock.newestStamp();
  const { dates: window } = dates.windowOf(now - A_MINUTE_MS, now);
  if ((await replyTo(window)).isRefused) {
    await resultOf(dateNegotiation(dates, window, { now, newest, reason }));
  }
  let isProbed = true;
  if (!dates.noDates) {
    const finding = await resultOf(probedDates(dates, newest));
    if (finding.kind === 'no-dates') dates.without(finding.why);
    isProbed = finding.kind !== 'unknown';
  }
  const text = datesText(dates.found);
  if (text !== undefined) return { text, isUnusual: true };
  const plain = isProbed
    ? 'date parameters work as documented'
    : 'no record to test the date parameters with';
  return { text: plain, isUnusual: false };
}
