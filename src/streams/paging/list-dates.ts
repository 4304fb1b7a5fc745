// How one list interprets date parameters, as detected so far.

import { DST_MS } from '../http/server-clock.ts';
import type { ServerClock } from '../http/server-clock.ts';
import { WINDOW_END_LEAD_MS, dateText } from './poll.ts';
import type { SentWindow, Window } from './poll.ts';

interface DateForm {
  /** Value of `modifiedToDate`: two days ahead (`ahead`), the server's current time (`now`), or left out (`none`). */
  readonly end: 'ahead' | 'now' | 'none';
  /** `ms`: `2026-03-05T12:00:00.000Z`; `seconds`: without the fraction; `offset`: `+00:00` for `Z`; `day`: the date alone. */
  readonly text: 'ms' | 'seconds' | 'offset' | 'day';
}

/**
 * Why a list cannot be polled by dates. `refused`: every request with dates is refused. `unanswered`: it fails although requests without
 * dates succeed. `ignored`: the dates have no effect. `empty`: the response has no records.
 */
export type NoDates = 'refused' | 'unanswered' | 'ignored' | 'empty';

/** How a list interprets date parameters. */
export interface DatesFound {
  /** The format that works; null while none does. */
  readonly form: string | null;
  /** Whether `form` is the documented format, which is tried first. */
  readonly isUsualForm: boolean;
  /** Offset from stamps to date parameters, in ms: see {@link ServerClock.shift}. */
  readonly offsetMs: number;
  /** Maximum length of windows, as the server refuses longer ones, in ms; null if no limit is known. */
  readonly longestMs: number | null;
  /** Null while the list is polled by dates. */
  readonly noDates: NoDates | null;
  /** The error that led to `noDates`, on one line. */
  readonly reason?: string | undefined;
}

/**
 * Date formats in the order in which they are tried. A bare date as the end may exclude the current day, so `day` and `now` are not
 * combined.
 */
const FORMS: readonly DateForm[] = (['ms', 'seconds', 'offset', 'day'] as const).flatMap((text) =>
  (['ahead', 'now', 'none'] as const)
    .filter((end) => text !== 'day' || end !== 'now')
    .map((end) => ({ end, text })),
);

/** Shortest length to which windows are limited when a server refuses long ones, in ms. */
export const SHORTEST_MS = 86_400_000;

/**
 * Findings of this process about the date parameters of one list, and the windows to request accordingly. The first date format is the
 * documented one; each refusal leads to the next.
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

  get isUnusual(): boolean {
    const isPlain = this.#form === 0 && this.#longestMs === Infinity;
    return !isPlain || this.#offsetMs !== 0 || this.#noDates !== undefined;
  }

  /** Returns the window from `from` to at least `latest`, both in epoch ms, in the current format. */
  windowOf(from: number, latest: number): SentWindow {
    const { end, text } = this.form;
    const modifiedFromDate = written(from, text);
    if (end === 'ahead') {
      return {
        dates: { modifiedFromDate, modifiedToDate: written(latest + WINDOW_END_LEAD_MS, text) },
        until: latest + WINDOW_END_LEAD_MS / 2,
      };
    }
    const now = this.#clock.now(this.#localTime());
    // The server's default end is unknown, so the window is certain to include only stamps up to the newest one seen.
    if (end === 'none' || now === undefined) {
      return { dates: { modifiedFromDate }, until: this.#clock.newest() ?? from };
    }
    const to = Math.max(now + this.#offsetMs, from);
    const dates = { modifiedFromDate, modifiedToDate: written(to, text) };
    return { dates, until: now - Math.max(0, this.#offsetMs) };
  }

  /** Estimate of the server's time, in epoch ms; before the first `Date`, the latest time that it may be. */
  get now(): number {
    const localTime = this.#localTime();
    return this.#clock.now(localTime) ?? this.#clock.latest(localTime);
  }

  polled(from: number): Window {
    return this.windowOf(from, this.#clock.latest(this.#localTime())).dates;
  }

  /** Converts a stamp to a parameter early enough to include every record stamped then or later; in epoch ms. */
  fromStamp(stamp: number): number {
    return stamp + (this.#offsetMs < 0 ? this.#offsetMs - DST_MS : 0);
  }

  /** Formats the start of a window, a parameter in epoch ms. */
  from(at: number): Pick<Window, 'modifiedFromDate'> {
    return { modifiedFromDate: written(at, this.form.text) };
  }

  /** Formats a window with both bounds, parameters in epoch ms. */
  closed(from: number, to: number): Window {
    const { text } = this.form;
    return { modifiedFromDate: written(from, text), modifiedToDate: written(to, text) };
  }

  /** Records the offset from stamps to date parameters, in ms. */
  offsetFound(ms: number): void {
    if (ms === this.#offsetMs) return;
    this.#offsetMs = ms;
    this.#clock.shift(ms);
    this.#tell();
  }

  /**
   * Moves on to the next format (`text`: to the next notation), because the current one is refused or matches nothing; calls `without` and
   * returns false if there is none.
   */
  nextForm(why: NoDates, what: 'form' | 'text' = 'form', reason?: string): boolean {
    const { text } = this.form;
    const next = FORMS.findIndex(
      (form, place) => place > this.#form && (what === 'form' || form.text !== text),
    );
    if (next < 0) return (this.without(why, reason), false);
    this.#form = next;
    return true;
  }

  /** Records that the current format works. */
  formWorks(): void {
    this.#tell();
  }

  /** Records that the server refuses longer windows. */
  longestFound(ms: number): void {
    this.#longestMs = ms;
    this.#tell();
  }

  /** Records that the list can't be polled by dates. @param reason The error, on one line. */
  without(why: NoDates, reason?: string): void {
    if (this.#noDates === why) return;
    this.#noDates = why;
    this.#form = 0;
    this.#reason = reason;
    this.#tell();
  }

  /** Starts over with the first format. */
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

/** Describes the findings about the date parameters of a list; undefined if they work as documented. */
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
