const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' });

export function count(value: number): string {
  return WHOLE.format(value);
}

/** Formats a count in short: `9,999`, `12.3K`. */
export function compact(value: number): string {
  return value < 10_000 ? WHOLE.format(value) : COMPACT.format(value);
}

/** Formats a rate: `0`, `0.3`, `4.2`, `312`, `1,250`. */
export function rate(value: number): string {
  return value > 0 && value < 9.95 ? value.toFixed(1) : WHOLE.format(value);
}

/** Formats a fraction as a percentage, rounded down: `42 %`. */
export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.floor((100 * part) / whole)} %` : '0 %';
}

const A_MINUTE_MS = 60_000;
const AN_HOUR_MS = 60 * A_MINUTE_MS;
const A_DAY_MS = 24 * AN_HOUR_MS;

/** Formats a duration: `23 ms`, `0.8 s`, `42 s`, `24 min`, `3 h 12 min`, `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 99.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 59_500) return `${Math.round(ms / 1_000)} s`;
  if (ms < AN_HOUR_MS) return `${Math.round(ms / A_MINUTE_MS)} min`;
  if (ms < A_DAY_MS) {
    const minutes = Math.floor((ms % AN_HOUR_MS) / A_MINUTE_MS);
    return `${Math.floor(ms / AN_HOUR_MS)} h${minutes > 0 ? ` ${minutes} min` : ''}`;
  }
  const hours = Math.floor((ms % A_DAY_MS) / AN_HOUR_MS);
  return `${WHOLE.format(Math.floor(ms / A_DAY_MS))} d${hours > 0 ? ` ${hours} h` : ''}`;
}

/** Formats how long ago something happened: `now`, `3 s ago`, `2 h 4 min ago`. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 1) return 'now';
  return seconds < 60 ? `${seconds} s ago` : `${duration(ms)} ago`;
}

/** Formats a time as time of day in the browser's time zone: `14:03:22`. */
export function timeOfDay(at: number): string {
  return TIME.format(at);
}

/** Formats a time as time of day. The date is added if `at` is on another day than `now`. */
export function since(at: number, now: number): string {
  const day = DATE.format(at);
  return day === DATE.format(now) ? TIME.format(at) : `${day}, ${TIME.format(at)}`;
}

/** Returns the displayed name of a status field. For the field `status`, which several subjects have, the name includes the subject. */
export function fieldName(subject: string, field: string): string {
  return field === 'status' ? `${subject.replaceAll('_', ' ')} ${field}` : field;
}

/** Formats a count with its noun: `1 request`, `3 requests`. */
export function plural(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? '' : 's'}`;
}
