// How a list takes modification dates, as found out so far: the form of its windows, and a text about what is unusual.

import { DST_MS } from '../http/server-clock.ts';
import type { ServerClock } from '../http/server-clock.ts';
import { AHEAD_MS, dateText } from './poll.ts';
import type { SentWindow, Window } from './poll.ts';

/** How a request writes its modification dates. */
interface DateForm {
  /** `modifiedToDate`: two days ahead, the server's current time, or left out. */
  readonly end: 'ahead' | 'now' | 'none';
  /** `ms`: `2026-03-05T12:00:00.000Z`; `seconds`: without the fraction; `offset`: `+00:00` for `Z`; `day`: the date alone. */
  readonly text: 'ms' | 'seconds' | 'offset' | 'day';
}

/**
 * Why a list cannot be polled by dates: each dated request is refused, fails although requests without dates are answered, is answered
 * whatever its dates are, or is answered with nothing.
 */
export type NoDates = 'refused' | 'unanswered' | 'ignored' | 'empty';

/** Findings about a list's date parameters: how they differ from the documented behaviour. */
export interface DatesFound {
  /** The form that works; null while none does. */
  readonly form: string | null;
  /** Whether it is the first one tried. */
  readonly isUsualForm: boolean;
  /** Offset from stamps to parameters, in ms: see {@link ServerClock.shift}. */
  readonly offsetMs: number;
  /** The longest window accepted, in ms; null: no limit is known. */
  readonly longestMs: number | null;
  /** Set while the list is read as one without dates. */
  readonly noDates: NoDates | null;
  /** The error because of which `noDates` is set, on one line; undefined where there was none. */
  readonly reason?: string | undefined;
}

/** Forms in the order in which they are tried. A bare date as the end would leave out its own day. */
const FORMS: readonly DateForm[] = (['ms', 'seconds', 'offset', 'day'] as const).flatMap((text) =>
  (['ahead', 'now', 'none'] as const)
    .filter((end) => text !== 'day' || end !== 'now')
    .map((end) => ({ end, text })),
);

/** Shortest window worth splitting into, in ms. */
export const SHORTEST_MS = 86_400_000;

/**
 * Findings of this process about the date parameters of one list, and the windows that follow from them. Requests begin with
 * the first form; each refusal leads to the next one.
 */
export class ListDates {
  readonly #clock: Pick<ServerClock, 'now' | 'latest' | 'newest' | 'shift'>;
  readonly #localTime: () => number;
  readonly #onFound: (found: DatesFound) => void;
  #form = 0;
  #offsetMs = 0;
  #longestMs = Infinity;
  #noDates: NoDates | undefined;
  #reason: string | undefined;

  constructor(options: {
    readonly clock: Pick<ServerClock, 'now' | 'latest' | 'newest' | 'shift'>;
    readonly localTime: () => number;
    /** Called when something found out is new. */
    readonly onFound?: (found: DatesFound) => void;
  }) {
    this.#clock = options.clock;
    this.#localTime = options.localTime;
    this.#onFound = options.onFound ?? (() => undefined);
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
    return FORMS[this.#form]!;
  }

  /** Whether dates are written as in the first form. */
  get isUsualText(): boolean {
    return this.form.text === FORMS[0]!.text;
  }

  get found(): DatesFound {
    const { end, text } = this.form;
    return {
      form: this.#noDates ? null : `${END_TEXTS[end]}, ${TEXT_TEXTS[text]}`,
      isUsualForm: this.#form === 0,
      offsetMs: this.#offsetMs,
      longestMs: this.#longestMs === Infinity ? null : this.#longestMs,
      noDates: this.#noDates ?? null,
      ...(this.#noDates && this.#reason !== undefined && { reason: this.#reason }),
    };
  }

  /** Whether anything found differs from a list that reads dates as written. */
  get isUnusual(): boolean {
    const isPlain = this.#form === 0 && this.#longestMs === Infinity;
    return !isPlain || this.#offsetMs !== 0 || this.#noDates !== undefined;
  }

  /** The window from an instant to at least the latest time known, both in ms on the server's clock. */
  windowOf(from: number, latest: number): SentWindow {
    const { end, text } = this.form;
    const modifiedFromDate = written(from, text);
    if (end === 'ahead') {
      return {
        dates: { modifiedFromDate, modifiedToDate: written(latest + AHEAD_MS, text) },
        until: latest + AHEAD_MS / 2,
      };
    }
    const now = this.#clock.now(this.#localTime());
    // Where the default end is, is not known: a window counts as read up to the newest stamp seen.
    if (end === 'none' || now === undefined) {
      return { dates: { modifiedFromDate }, until: this.#clock.newest() ?? from };
    }
    const to = Math.max(now + this.#offsetMs, from);
    const dates = { modifiedFromDate, modifiedToDate: written(to, text) };
    return { dates, until: now - Math.max(0, this.#offsetMs) };
  }

  /** The server's time, in ms; before its first `Date` the latest time known. */
  get now(): number {
    const localTime = this.#localTime();
    return this.#clock.now(localTime) ?? this.#clock.latest(localTime);
  }

  /** The window that a poll would ask for, from an instant in ms. */
  polled(from: number): Window {
    return this.windowOf(from, this.#clock.latest(this.#localTime())).dates;
  }

  /** The parameter's time at which every record stamped at `stamp` or later is still in the window, in ms. */
  fromStamp(stamp: number): number {
    return stamp + (this.#offsetMs < 0 ? this.#offsetMs - DST_MS : 0);
  }

  /** The beginning of a window, in ms as the parameter says it. */
  from(at: number): Pick<Window, 'modifiedFromDate'> {
    return { modifiedFromDate: written(at, this.form.text) };
  }

  /** A closed window, in ms as the parameters say them. */
  closed(from: number, to: number): Window {
    const { text } = this.form;
    return { modifiedFromDate: written(from, text), modifiedToDate: written(to, text) };
  }

  /** A probe has found the offset from stamps to parameters. */
  offsetFound(ms: number): void {
    if (ms === this.#offsetMs) return;
    this.#offsetMs = ms;
    this.#clock.shift(ms);
    this.#tell();
  }

  /** The form in use is refused, or read as nothing. @returns whether there is another one to try. */
  nextForm(why: NoDates, what: 'form' | 'text' = 'form', reason?: string): boolean {
    const { text } = this.form;
    const next = FORMS.findIndex(
      (form, place) => place > this.#form && (what === 'form' || form.text !== text),
    );
    if (next < 0) return (this.without(why, reason), false);
    this.#form = next;
    return true;
  }

  /** The form in use has worked. */
  formWorks(): void {
    this.#tell();
  }

  /** Windows longer than this are refused. */
  longestFound(ms: number): void {
    this.#longestMs = ms;
    this.#tell();
  }

  /** Dates are of no use: the list is read as one without. @param reason The error that says so, on one line. */
  without(why: NoDates, reason?: string): void {
    if (this.#noDates === why) return;
    this.#noDates = why;
    this.#form = 0;
    this.#reason = reason;
    this.#tell();
  }

  /** Starts over with the first form, to find out whether dates are of use by now. */
  tryAgain(): void {
    this.#form = 0;
    this.#longestMs = Infinity;
    this.#noDates = undefined;
  }

  #told = '';
  #tell(): void {
    const text = JSON.stringify({ ...this.found, reason: undefined });
    if (text === this.#told || (this.#told === '' && !this.isUnusual)) return;
    this.#told = text;
    this.#onFound(this.found);
  }
}

const END_TEXTS = {
  ahead: 'modifiedToDate two days ahead',
  now: "modifiedToDate at the server's time",
  none: 'no modifiedToDate',
} as const;

const TEXT_TEXTS = {
  ms: 'dates with milliseconds',
  seconds: 'dates without milliseconds',
  offset: 'dates with +00:00',
  day: 'dates without a time',
} as const;

function written(ms: number, text: DateForm['text']): string {
  const whole = dateText(ms);
  switch (text) {
    case 'ms':
      return whole;
    case 'seconds':
      return whole.replace(/\.\d+Z$/, 'Z');
    case 'offset':
      return whole.replace(/\.\d+Z$/, '+00:00');
    case 'day':
      return whole.slice(0, 10);
  }
}

/** Describes the findings about the date parameters of a list; undefined where they work as documented. */
export function datesText(found: DatesFound): string | undefined {
  const { form, offsetMs, longestMs, noDates, isUsualForm, reason } = found;
  if (noDates !== null) {
    const why = reason === undefined ? '' : ` (${reason})`;
    return `${NO_DATES[noDates]}${why}: the list is not polled, but read whole again and again`;
  }
  const parts: string[] = [];
  if (offsetMs !== 0) {
    parts.push(
      `modifiedFromDate is read ${hours(offsetMs)} off the time zone of updated_at: windows are that much wider`,
    );
  }
  if (!isUsualForm) parts.push(`the list refuses or misreads the usual dates, and takes ${form}`);
  if (longestMs !== null) {
    const days = Math.floor(longestMs / 86_400_000);
    parts.push(`windows of more than ${days} ${days === 1 ? 'day' : 'days'} are read in parts`);
  }
  return parts.length > 0 ? parts.join('; ') : undefined;
}

const NO_DATES: Readonly<Record<NoDates, string>> = {
  refused: 'the list refuses modification dates in every form',
  unanswered:
    'requests with modification dates fail or have no answer, although those without are answered',
  ignored: 'the list ignores modification dates',
  empty: 'the list shows nothing when it is asked with modification dates',
};

function hours(ms: number): string {
  const minutes = Math.abs(ms) / 60_000;
  const rest = minutes % 60;
  return `${ms < 0 ? '-' : '+'}${Math.floor(minutes / 60)}:${String(rest).padStart(2, '0')} h`;
}
