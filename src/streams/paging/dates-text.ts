import type { DatesFound, NoDates } from './list-dates.ts';

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
