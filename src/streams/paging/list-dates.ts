// How one list interprets date parameters, as detected so far.

import { variablesIn } from '../../description/template.ts';
import type { Parameters } from '../../description/template.ts';
import { DST_MS } from '../http/server-clock.ts';
import type { ServerClock } from '../http/server-clock.ts';
import { ISO } from '../../description/time-format.ts';
import type { TimeFormat } from '../../description/time-format.ts';
import { WINDOW_END_LEAD_MS } from './poll.ts';
import type { SentWindow, Window } from './poll.ts';

interface DateForm {
  /** End of a window: two days ahead (`ahead`), the server's current time (`now`), or none in the request (`none`). */
  readonly end: 'ahead' | 'now' | 'none';
  /**
   * Notation of dates in requests:
   *
   * - `ms`: `2026-03-05T12:00:00.000Z`;
   * - `seconds`: `2026-03-05T12:00:00Z`;
   * - `offset`: `2026-03-05T12:00:00+00:00`;
   * - `day`: `2026-03-05`;
   * - a {@link TimeFormat}: the format of the API's own times, if that is not ISO 8601.
   */
  readonly text: keyof typeof NOTATIONS | TimeFormat;
}

/**
 * Why a list cannot be polled by dates. `refused`: every request with dates is refused. `unanswered`: requests with dates fail although
 * requests without dates succeed. `ignored`: the dates have no effect. `empty`: responses to requests with dates have no records.
 */
export type NoDates = 'refused' | 'unanswered' | 'ignored' | 'empty';

/** How a list interprets date parameters. */
export interface DatesFound {
  /** Name of the parameter that sends the start of a window. */
  readonly parameter: string;
  /** Name of the field with the records' modification time. */
  readonly stamp: string;
  /** Description of the date format in use; null while the list cannot be polled by dates. */
  readonly form: string | null;
  /** Whether requests send dates in the documented format, which is tried before all other formats. */
  readonly isUsualForm: boolean;
  /** Offset to add to a modification time to get the matching date parameter, in ms: see {@link ServerClock.shift}. */
  readonly offsetMs: number;
  /** Maximum length of windows, in ms, because the server refuses longer ones; null if no limit is known. */
  readonly longestMs: number | null;
  /** Why the list cannot be polled by dates; null while it is polled by dates. */
  readonly noDates: NoDates | null;
  /** The error that led to `noDates`, on one line. */
  readonly reason?: string | undefined;
}

/** Returns the date formats (a notation of dates and a kind of window end) in the order in which they are tried. */
function formsOf(times: TimeFormat): readonly DateForm[] {
  const texts = times.isIso ? (['ms', 'seconds', 'offset', 'day'] as const) : [times];
  return texts.flatMap((text) =>
    (['ahead', 'now', 'none'] as const)
      // A window that ends at the date of today, without a time, may exclude what was modified today.
      .filter((end) => text !== 'day' || end !== 'now')
      .map((end) => ({ end, text })),
  );
}

/**
 * Lower bound for the maximum length of poll windows, in ms. If the server refuses long windows, their maximum length is halved, but never
 * to less than this.
 */
export const SHORTEST_MS = 86_400_000;

export interface ListDatesOptions {
  readonly clock: Pick<ServerClock, 'now' | 'latest' | 'newest' | 'shift'>;
  readonly localTime: () => number;
  readonly onFound?: (found: DatesFound) => void;
  /** Request parameters by name; `{from}` and `{to}` in their values are a window's bounds. Without `{to}`, windows have no end. */
  readonly parameters: Parameters;
  /** Name of the field with the records' modification time. */
  readonly stamp: string;
  /** Format of the API's times, from its description. If it is ISO 8601, several ISO notations are tried in requests. */
  readonly times: TimeFormat;
}

/**
 * Findings of this process about the date parameters of one list, and the windows that polls request accordingly. The first date format is
 * the documented one; {@link ListDates.nextForm} switches to the next.
 */
export class ListDates {
  readonly #options: ListDatesOptions;
  readonly #from: string;
  readonly #to: string | undefined;
  readonly #forms: readonly DateForm[];
  #form = 0;
  #offsetMs = 0;
  #longestMs = Infinity;
  #noDates: NoDates | undefined;
  #reason: string | undefined;
  /**
   * JSON of the findings that were last passed to `onFound`, without their reason. Initially the JSON of the findings for a list that
   * interprets dates as documented.
   */
  #reported: string;

  constructor(options: ListDatesOptions) {
    this.#options = options;
    this.#from = parameterWith('from', options.parameters) ?? 'from';
    this.#to = parameterWith('to', options.parameters);
    this.#forms = formsOf(options.times).filter(({ end }) => end === 'none' || this.canEnd);
    this.#reported = this.#foundText();
  }

  /** Whether the list has a parameter for the end of a window of modification dates. */
  get canEnd(): boolean {
    return this.#to !== undefined;
  }

  get noDates(): NoDates | undefined {
    return this.#noDates;
  }

  get offsetMs(): number {
    return this.#offsetMs;
  }

  get longestMs(): number {
    return this.#longestMs;
  }

  get form(): DateForm {
    return this.#forms[this.#form]!;
  }

  get isUsualText(): boolean {
    return this.form.text === this.#forms[0]!.text;
  }

  get found(): DatesFound {
    const { end, text } = this.form;
    const endText = this.#to === undefined ? 'no end' : END_TEXTS[end](this.#to);
    return {
      parameter: this.#from,
      stamp: this.#options.stamp,
      form: this.#noDates
        ? null
        : endText + (typeof text === 'object' ? '' : `, ${NOTATIONS[text].name}`),
      isUsualForm: this.#form === 0,
      offsetMs: this.#offsetMs,
      longestMs: this.#longestMs === Infinity ? null : this.#longestMs,
      noDates: this.#noDates ?? null,
      ...(this.#noDates && this.#reason !== undefined && { reason: this.#reason }),
    };
  }

  /**
   * Returns the window of a poll that begins at `from` (epoch ms), in the current date format (`form`). The end depends on the format:
   *
   * - `ahead`: two days after `latest` (epoch ms);
   * - `now`: the server's current time plus `offsetMs`, but not before `from`; no end if that time is unknown;
   * - `none`: no end.
   */
  windowOf(from: number, latest: number): SentWindow {
    const { end, text } = this.form;
    const start = { from: written(from, text) };
    if (end === 'ahead') {
      return {
        dates: { ...start, to: written(latest + WINDOW_END_LEAD_MS, text) },
        until: latest + WINDOW_END_LEAD_MS / 2,
      };
    }
    const { clock, localTime } = this.#options;
    const now = clock.now(localTime());
    // The server's default end is unknown, so the window is certain to include only stamps up to the newest one seen.
    if (end === 'none' || now === undefined) {
      return { dates: start, until: clock.newest() ?? from };
    }
    const to = Math.max(now + this.#offsetMs, from);
    const dates = { ...start, to: written(to, text) };
    return { dates, until: now - Math.max(0, this.#offsetMs) };
  }

  /** Estimate of the server's time, in epoch ms. Before the first `Date` header: the local time, or the newest stamp seen if later. */
  get now(): number {
    const { clock, localTime } = this.#options;
    return clock.now(localTime()) ?? clock.latest(localTime());
  }

  polled(from: number): Window {
    const { clock, localTime } = this.#options;
    return this.windowOf(from, clock.latest(localTime())).dates;
  }

  /** Returns the start (a date parameter in epoch ms) of a window that has every record modified at `stamp` (epoch ms) or later. */
  fromStamp(stamp: number): number {
    return stamp + (this.#offsetMs < 0 ? this.#offsetMs - DST_MS : 0);
  }

  /** Parses a date of a window that this object has formatted, to epoch ms. */
  timeOf(date: string): number {
    return this.#options.times.read(date)!;
  }

  /** Formats the start of a window without an end. `at` is a date parameter in epoch ms. */
  from(at: number): Pick<Window, 'from'> {
    return { from: written(at, this.form.text) };
  }

  /** Formats a window in the list's current date format. Both bounds are date parameters in epoch ms. */
  closed(from: number, to: number): Window {
    const { text } = this.form;
    return { from: written(from, text), to: written(to, text) };
  }

  /** Stores the offset to add to modification times to get the matching date parameters, in ms. */
  offsetFound(ms: number): void {
    if (ms === this.#offsetMs) return;
    this.#offsetMs = ms;
    this.#options.clock.shift(ms);
    this.report();
  }

  /**
   * Switches to the next date format, because the list refuses the current one or returns no records for it. If there is no further format,
   * returns false, and marks the list as one that cannot be polled by dates.
   *
   * @param why Reason to store if there is no further format.
   * @param what Which format comes next. `form`: the following one. `text`: the following one with another notation of dates.
   * @param reason The error that led here, on one line. Stored together with `why`.
   */
  nextForm(why: NoDates, what: 'form' | 'text' = 'form', reason?: string): boolean {
    const { text } = this.form;
    const next = this.#forms.findIndex(
      (form, place) => place > this.#form && (what === 'form' || form.text !== text),
    );
    if (next < 0) return (this.without(why, reason), false);
    this.#form = next;
    return true;
  }

  /** Sets the maximum length of the windows that polls request, in ms, because the server refuses longer ones. */
  longestFound(ms: number): void {
    this.#longestMs = ms;
    this.report();
  }

  /**
   * Marks the list as one that can't be polled by dates, and returns to the first date format. Does nothing if the list is marked with the
   * same `why` already.
   *
   * @param reason The error that showed this, on one line.
   */
  without(why: NoDates, reason?: string): void {
    if (this.#noDates === why) return;
    this.#noDates = why;
    this.#form = 0;
    this.#reason = reason;
    this.report();
  }

  /**
   * Lets the list be polled by dates again, with the first date format. Forgets the maximum length of windows, and the reason why the list
   * was not polled by dates.
   */
  tryAgain(): void {
    this.#form = 0;
    this.#longestMs = Infinity;
    this.#noDates = undefined;
  }

  /**
   * Reports the findings about the dates of the list to `onFound` if they have changed. To be called when a date format works; the methods
   * that store another finding call it themselves.
   */
  report(): void {
    const text = this.#foundText();
    if (text === this.#reported) return;
    this.#reported = text;
    this.#options.onFound?.(this.found);
  }

  #foundText(): string {
    return JSON.stringify({ ...this.found, reason: undefined });
  }
}

/** Returns the name of the request parameter whose value contains `variable` (a bound of a date window); undefined if none does. */
function parameterWith(variable: 'from' | 'to', parameters: Parameters): string | undefined {
  return Object.keys(parameters).find((name) =>
    variablesIn(String(parameters[name])).includes(variable),
  );
}

const END_TEXTS: Readonly<Record<DateForm['end'], (parameter: string) => string>> = {
  ahead: (parameter) => `${parameter} two days ahead`,
  now: (parameter) => `${parameter} set to the server's time`,
  none: (parameter) => `no ${parameter}`,
};

/** Notations of dates: a name for messages, and how a date in ISO 8601 with milliseconds is rewritten. */
const NOTATIONS = {
  ms: { name: 'dates with milliseconds', rewrite: (date: string) => date },
  seconds: {
    name: 'dates without milliseconds',
    rewrite: (date: string) => date.replace(/\.\d+Z$/, 'Z'),
  },
  offset: {
    name: 'dates with +00:00',
    rewrite: (date: string) => date.replace(/\.\d+Z$/, '+00:00'),
  },
  day: { name: 'dates without a time', rewrite: (date: string) => date.slice(0, 10) },
} as const;

function written(ms: number, text: DateForm['text']): string {
  return typeof text === 'object' ? text.write(ms) : NOTATIONS[text].rewrite(ISO.write(ms));
}

/** Returns a text that describes the findings about the date parameters of a list; undefined if they work as documented. */
export function datesText(found: DatesFound): string | undefined {
  const { parameter, stamp, form, offsetMs, longestMs, noDates, isUsualForm, reason } = found;
  if (noDates !== null) {
    const why = reason === undefined ? '' : ` (${reason})`;
    return `${NO_DATES[noDates]}${why}: the list is not polled; changes are found by repeated full scans`;
  }
  const parts: string[] = [];
  if (offsetMs !== 0) {
    parts.push(
      `the API reads ${parameter} with an offset of ${hours(offsetMs)} from the time zone of ${stamp}: windows are longer by as much`,
    );
  }
  if (!isUsualForm)
    parts.push(`the list refuses or misreads the usual dates, so requests have ${form}`);
  if (longestMs !== null) {
    const days = Math.floor(longestMs / 86_400_000);
    parts.push(`windows of more than ${days} ${days === 1 ? 'day' : 'days'} are read in parts`);
  }
  return parts.length > 0 ? parts.join('; ') : undefined;
}

const NO_DATES: Readonly<Record<NoDates, string>> = {
  refused: 'the list refuses modification dates in every form',
  unanswered:
    'requests that filter by modification date fail or get no response, although requests without this filter succeed',
  ignored: 'the list ignores modification dates',
  empty: 'the API returns no records to requests with modification dates',
};

function hours(ms: number): string {
  const minutes = Math.abs(ms) / 60_000;
  const rest = minutes % 60;
  return `${ms < 0 ? '-' : '+'}${Math.floor(minutes / 60)}:${String(rest).padStart(2, '0')} h`;
}
